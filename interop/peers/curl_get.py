#!/usr/bin/env python3
"""Gets a URL with libcurl through a proxy over TLS, by HTTP/1.1 or HTTP/2 (which curl's program has as `--proxy-http2`
since 8.1), and prints the version of libcurl."""

import argparse

import pycurl

# CURLPROXY_HTTPS and CURLPROXY_HTTPS2 of curl.h, which pycurl does not name.
PROXY_TYPES = {"https": 2, "https2": 3}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("url")
    parser.add_argument("--out", required=True, help="where the content goes")
    parser.add_argument("--proxy", required=True, metavar="HOST:PORT")
    parser.add_argument("--type", required=True, choices=PROXY_TYPES)
    parser.add_argument("--ca", required=True, help="what is trusted, as proxy and as server")
    parser.add_argument("--proxy-header", required=True)
    arguments = parser.parse_args()
    curl = pycurl.Curl()
    with open(arguments.out, "wb") as out:
        curl.setopt(pycurl.URL, arguments.url)
        curl.setopt(pycurl.PROXY, arguments.proxy)
        curl.setopt(pycurl.PROXYTYPE, PROXY_TYPES[arguments.type])
        curl.setopt(pycurl.HTTPPROXYTUNNEL, 1)
        curl.setopt(pycurl.PROXYHEADER, [arguments.proxy_header])
        curl.setopt(pycurl.PROXY_CAINFO, arguments.ca)
        curl.setopt(pycurl.CAINFO, arguments.ca)
        curl.setopt(pycurl.FAILONERROR, 1)
        curl.setopt(pycurl.WRITEDATA, out)
        curl.perform()
    print("libcurl", pycurl.version_info()[1])


if __name__ == "__main__":
    main()
