// What both roles do with one connection: settings, streams, sending, key updates, closing.
#ifndef CONNECTION_H
#define CONNECTION_H

#include <gnutls/gnutls.h>
#include <ngtcp2/ngtcp2.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <stdbool.h>
#include <stdio.h>

struct options;
struct http;
struct exchange;

// A stream with its bytes of both directions, all of which stay in memory.
struct stream {
  struct stream *next;
  int64_t id;
  uint8_t *out, *in;
  size_t out_length, out_offset, in_length, in_space;
  // `ready`: `out` is complete and may be sent.
  bool ready, fin_sent, blocked;
};

struct connection {
  // First, so that TLS finds the connection.
  ngtcp2_crypto_conn_ref ref;
  ngtcp2_conn *quic;
  gnutls_session_t tls;
  const struct options *options;
  struct stream *streams;
  // Application bytes since the last key update, and the updates made.
  uint64_t moved;
  unsigned key_updates;
  FILE *qlog;
  // HTTP/3, in the roles that speak it; and the application's code for what it has found wrong.
  struct http *http;
  int (*respond)(struct http *, struct exchange *);
  uint64_t http_error;
  // The socket that sends on a path.
  int (*socket_of)(struct connection *, const ngtcp2_path *);
};

void connection_init(struct connection *to, const struct options *options);
void connection_settings(struct connection *connection, ngtcp2_settings *settings, ngtcp2_transport_params *params,
                         const ngtcp2_cid *original);
// The callbacks that need no knowledge of the role.
void connection_callbacks(ngtcp2_callbacks *to);
void connection_free(struct connection *connection);

struct stream *connection_stream(struct connection *connection, int64_t id);
struct stream *connection_add_stream(struct connection *connection, int64_t id);
void connection_remove_stream(struct connection *connection, int64_t id);
void stream_append(struct stream *stream, const uint8_t *data, size_t length);

// Sends what there is to send and may be sent; 0, or ngtcp2's error.
int connection_send(struct connection *connection);
// Counts application bytes, and updates keys if it is time and the program was told to.
void connection_moved(struct connection *connection, size_t bytes);
// Writes a packet with CONNECTION_CLOSE for an error of ngtcp2's, or with the application's code for a good
// end if the error is 0, and sends it.
void connection_close(struct connection *connection, int error);
// How the peer has closed, or how ngtcp2 calls the error, for a log line.
void connection_ending(struct connection *connection, int error, char *to, size_t length);

#endif
