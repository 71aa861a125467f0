// ngtcp2 as a file server and as a downloader over `hq-interop`, and with nghttp3 as server and client of the
// HTTP cases (`h3-server`, `h3-client`).
//
// `server` runs until it is killed; `client` prints one JSON object about its connections and exits
// with 1 if anything went wrong. Both exit with 3, and a last line that begins with "unsupported:",
// if the installed ngtcp2 can't do what was asked. The options are those of the other peers.
#include <getopt.h>
#include <inttypes.h>
#include <ngtcp2/ngtcp2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "roles.h"

// RFC 9369; ngtcp2 before 0.18 knows only a draft's number, salt and labels for it.
#define QUIC_V2 0x6b3343cfu

static void unsupported(const char *what) {
  fprintf(stderr, "unsupported: ngtcp2 %s %s\n", NGTCP2_VERSION, what);
  exit(EXIT_UNSUPPORTED);
}

static void usage(void) {
  fprintf(stderr, "usage: ngtcp2-peer server --dir DIR --listen HOST:PORT --cert PEM --key PEM [--retry] ...\n"
                  "       ngtcp2-peer client --out DIR --ca PEM [--resume | --zero-rtt | --per-connection] "
                  "[--migrate] ... URL...\n"
                  "       ngtcp2-peer h3-server --listen HOST:PORT --cert PEM --key PEM [--zero-rtt]\n"
                  "       ngtcp2-peer h3-client --connect HOST:PORT --ca PEM --case NAME\n"
                  "both:  [--suite any|aes128|aes256|chacha20] [--quic-version HEX] [--key-update] [--qlog DIR]\n"
                  "       [--keylog FILE] [--window BYTES] [--streams N] [--cid-length N] [--max-udp-payload N]\n");
  exit(2);
}

static const struct option LONG[] = {
    {"dir", 1, 0, 'd'},        {"listen", 1, 0, 'l'},   {"cert", 1, 0, 'c'},
    {"key", 1, 0, 'k'},        {"out", 1, 0, 'o'},      {"ca", 1, 0, 'a'},
    {"suite", 1, 0, 's'},      {"qlog", 1, 0, 'q'},     {"keylog", 1, 0, 'K'},
    {"quic-version", 1, 0, 'v'}, {"window", 1, 0, 'w'}, {"streams", 1, 0, 'n'},
    {"cid-length", 1, 0, 'i'}, {"max-udp-payload", 1, 0, 'p'},
    {"key-update", 0, 0, 'u'}, {"retry", 0, 0, 'r'},    {"zero-rtt", 0, 0, 'z'},
    {"resume", 0, 0, 'R'},     {"migrate", 0, 0, 'm'},  {"per-connection", 0, 0, 'C'},
    {"v2", 0, 0, '2'},         {"connect", 1, 0, 'h'},  {"case", 1, 0, 'x'},
    {0, 0, 0, 0},
};

static void apply(struct options *to, int option, char *value) {
  switch (option) {
  case 'd': to->dir = value; break;
  case 'l': to->listen = value; break;
  case 'c': to->cert = value; break;
  case 'k': to->key = value; break;
  case 'o': to->out = value; break;
  case 'a': to->ca = value; break;
  case 's': to->suite = value; break;
  case 'q': to->qlog = value; break;
  case 'K': to->keylog = value; break;
  case 'v': to->version = (uint32_t)strtoul(value, NULL, 16); break;
  case 'w': to->window = strtoull(value, NULL, 10); break;
  case 'n': to->streams = strtoull(value, NULL, 10); break;
  case 'i': to->cid_length = strtoul(value, NULL, 10); break;
  case 'p': to->max_payload = strtoull(value, NULL, 10); break;
  case 'u': to->key_update = true; break;
  case 'r': to->retry = true; break;
  case 'z': to->zero_rtt = true; break;
  case 'R': to->resume = true; break;
  case 'm': to->migrate = true; break;
  case 'C': to->per_connection = true; break;
  case '2': to->version = QUIC_V2; break;
  case 'h': to->connect = value; break;
  case 'x': to->http_case = value; break;
  default: usage();
  }
}

void options_parse(struct options *to, int argc, char **argv) {
  int option;
  const char *role = argc < 2 ? "" : argv[1];
  bool http = strncmp(role, "h3-", 3) == 0;
  role += http ? 3 : 0;
  if (strcmp(role, "server") != 0 && strcmp(role, "client") != 0) {
    usage();
  }
  *to = (struct options){
      .is_server = role[0] == 's', .http = http, .suite = "any", .version = NGTCP2_PROTO_VER_V1, .cid_length = 16};
  while ((option = getopt_long(argc - 1, argv + 1, "", LONG, NULL)) != -1) {
    apply(to, option, optarg);
  }
  to->urls = argv + 1 + optind;
  to->url_count = (size_t)(argc - 1 - optind);
  bool complete = to->is_server ? (to->dir || http) && to->listen && to->cert && to->key
                  : http        ? to->connect && to->ca && to->http_case
                                : to->out && to->ca && to->url_count > 0;
  if (http) {
    to->keylog = getenv("SSLKEYLOGFILE");
    to->zero_rtt = to->zero_rtt || (to->http_case && strcmp(to->http_case, "zerortt") == 0);
  }
  if (!complete || to->cid_length > NGTCP2_MAX_CIDLEN) {
    usage();
  }
  if (to->version == QUIC_V2) {
    unsupported("knows a draft of QUIC version 2 only, with another number than RFC 9369's");
  }
  if (to->is_server && to->cid_length == 0) {
    unsupported("can't tell a server's connections apart without connection IDs");
  }
  if (to->is_server && !ngtcp2_is_supported_version(to->version)) {
    unsupported("doesn't speak this version");
  }
}

int main(int argc, char **argv) {
  struct options options;
  setvbuf(stdout, NULL, _IOLBF, 0);
  options_parse(&options, argc, argv);
  return options.is_server ? server_run(&options) : options.http ? http_client_run(&options) : client_run(&options);
}
