// nghttp3 on a connection: requests with both their messages, for either role.
#ifndef HTTP_H
#define HTTP_H

#include <nghttp3/nghttp3.h>
#include <ngtcp2/ngtcp2.h>
#include <stdbool.h>

struct connection;

// Content to be sent, which nghttp3 wants to stay where it is.
struct chunk {
  struct chunk *next;
  size_t length;
  uint8_t data[];
};

// A request and its response, as one side sees them.
struct exchange {
  struct exchange *next;
  int64_t id;
  // Of the peer's message. Texts are empty if the field wasn't there.
  char method[16], path[64], size[16], turn[16], digest[16], count[16], last[64], trailer[64];
  unsigned status, small;
  uint8_t *large;
  size_t large_length;
  uint64_t bytes;
  uint32_t crc;
  bool over, reset;
  uint64_t reset_code;
  // Of ours.
  struct chunk *chunks, *unsent;
  bool echo, endless, complete;
  // Sent after the content if it isn't empty.
  char own_trailer[64];
};

struct http {
  nghttp3_conn *h3;
  struct connection *connection;
  struct exchange *exchanges;
  // Of a server: answers a request whose head has come.
  int (*respond)(struct http *, struct exchange *);
};

// Opens the control and QPACK streams; NULL if that can't be done yet. `respond` makes it a server.
struct http *http_new(struct connection *connection, int (*respond)(struct http *, struct exchange *));
void http_free(struct http *http);
// The callbacks of a connection that has, or will have, `connection->http`.
void http_callbacks(ngtcp2_callbacks *to);
// One step of filling a packet, as connection.c has it.
ngtcp2_ssize http_fill(struct http *http, ngtcp2_path *path, ngtcp2_pkt_info *info, uint8_t *to, size_t space,
                       ngtcp2_tstamp time);

struct exchange *http_find(struct http *http, int64_t id);
struct exchange *http_add(struct http *http, int64_t id);
// Content to be sent; the bytes are still to be written.
struct chunk *exchange_append(struct http *http, struct exchange *exchange, size_t length);
// No more content is appended.
void exchange_complete(struct http *http, struct exchange *exchange);
// Reads content from the exchange's chunks, for nghttp3.
extern const nghttp3_data_reader http_reader;
nghttp3_nv http_field(const char *name, const char *value);

#endif
