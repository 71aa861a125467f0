// The command line, which is the same for every peer.
#ifndef OPTIONS_H
#define OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ALPN "hq-interop"
#define ALPN_HTTP "h3"
// Stream error code for whatever can't be served.
#define NOT_FOUND 404
// The exit code for what this library can't do at all.
#define EXIT_UNSUPPORTED 3
// A client that is to migrate does so when it has received this many bytes.
#define MIGRATE_AFTER 200000
// A side that is to update its keys does so each time it has moved this many bytes.
#define KEY_UPDATE_AFTER 100000

struct options {
  // `http`: the roles of the HTTP cases.
  bool is_server, http;
  const char *dir, *listen, *cert, *key;
  const char *out, *ca;
  const char *connect, *http_case;
  char **urls;
  size_t url_count;
  const char *suite;
  uint32_t version;
  bool key_update, retry, zero_rtt, resume, migrate, per_connection;
  const char *qlog, *keylog;
  // 0 stands for the usual value.
  uint64_t window, streams, max_payload;
  size_t cid_length;
};

// Ends the program if the arguments make no sense, or ask for what the library can't do.
void options_parse(struct options *to, int argc, char **argv);

#endif
