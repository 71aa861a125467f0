//! HTTP/1.1 and HTTP/2 over TLS and TCP, through hyper.
