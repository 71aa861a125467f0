// Runs one of the HTTP cases as a client.
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "connection.h"
#include "content.h"
#include "http.h"
#include "net.h"
#include "options.h"
#include "roles.h"
#include "tls.h"

#define NAME "localhost"
// How long what follows a response may take, how long the server may take to close, and how long
// anything may take.
#define SOON (NGTCP2_SECONDS / 2)
#define CLOSE (3 * NGTCP2_SECONDS)
#define PATIENCE (50 * NGTCP2_SECONDS)

struct visit {
  // First: callbacks get the connection.
  struct connection connection;
  struct address server, local;
  int socket;
  bool completed, ended, early, early_accepted;
};

static const struct options *options;
static struct tls tls;
static bool have_params;
static ngtcp2_transport_params server_params;

static void fail(const char *what) {
  fprintf(stderr, "error: %s\n", what);
  exit(1);
}

static int handshake_completed(ngtcp2_conn *quic, void *user_data) {
  (void)quic;
  struct visit *visit = user_data;
  visit->completed = true;
  visit->early_accepted = tls_early_accepted(visit->connection.tls);
  // Requests are not made again.
  return visit->early && !visit->early_accepted ? NGTCP2_ERR_CALLBACK_FAILURE : 0;
}

static int visit_socket(struct connection *connection, const ngtcp2_path *path) {
  (void)path;
  return ((struct visit *)connection)->socket;
}

static ngtcp2_path visit_path(struct visit *visit) {
  return (ngtcp2_path){{(struct sockaddr *)&visit->local.storage, visit->local.length},
                       {(struct sockaddr *)&visit->server.storage, visit->server.length},
                       NULL};
}

static void start(struct visit *visit) {
  ngtcp2_cid theirs = {.datalen = 18}, own = {.datalen = options->cid_length};
  ngtcp2_settings settings;
  ngtcp2_transport_params params;
  ngtcp2_callbacks functions;
  struct connection *connection = &visit->connection;
  *visit = (struct visit){.socket = -1};
  connection_init(connection, options);
  connection->socket_of = visit_socket;
  if (!address_parse(&visit->server, options->connect) || !address_towards(&visit->local, &visit->server) ||
      (visit->socket = socket_open(&visit->local)) < 0) {
    fail("no socket");
  }
  random_bytes(theirs.data, theirs.datalen);
  random_bytes(own.data, own.datalen);
  connection_settings(connection, &settings, &params, &theirs);
  connection_callbacks(&functions);
  http_callbacks(&functions);
  functions.client_initial = ngtcp2_crypto_client_initial_cb;
  functions.recv_retry = ngtcp2_crypto_recv_retry_cb;
  functions.handshake_completed = handshake_completed;
  ngtcp2_path path = visit_path(visit);
  connection->tls = tls_session(&tls, &connection->ref, NAME);
  if (connection->tls == NULL ||
      ngtcp2_conn_client_new(&connection->quic, &theirs, &own, &path, options->version, &functions, &settings,
                             &params, NULL, visit) != 0) {
    fail("no connection");
  }
  ngtcp2_conn_set_tls_native_handle(connection->quic, connection->tls);
  visit->early = have_params && tls_early_possible(connection->tls);
  if (visit->early) {
    ngtcp2_conn_set_early_remote_transport_params(connection->quic, &server_params);
  }
}

static void read_socket(struct visit *visit) {
  static uint8_t datagram[MAX_DATAGRAM];
  char text[256];
  struct address from;
  ngtcp2_pkt_info info;
  ssize_t length;
  while (!visit->ended && (length = socket_receive(visit->socket, datagram, &from, &info)) >= 0) {
    ngtcp2_path path = visit_path(visit);
    path.remote = (ngtcp2_addr){(struct sockaddr *)&from.storage, from.length};
    int result = ngtcp2_conn_read_pkt(visit->connection.quic, &path, &info, datagram, (size_t)length, now());
    if (result != 0) {
      connection_ending(&visit->connection, result, text, sizeof text);
      fprintf(stderr, "connection ended: %s\n", text);
      visit->ended = true;
      if (result != NGTCP2_ERR_DRAINING) {
        connection_close(&visit->connection, result);
      }
    }
  }
}

// Sends, waits, reads, lets timers run.
static void turn(struct visit *visit, ngtcp2_tstamp until) {
  ngtcp2_conn *quic = visit->connection.quic;
  if (connection_send(&visit->connection) != 0) {
    fail("sending failed");
  }
  ngtcp2_tstamp time = now(), due = ngtcp2_conn_get_expiry(quic);
  due = due < until ? due : until;
  ngtcp2_duration left = due > time ? due - time : 0;
  struct timespec limit = {(time_t)(left / NGTCP2_SECONDS), (long)(left % NGTCP2_SECONDS)};
  struct pollfd wanted = {visit->socket, POLLIN, 0};
  ppoll(&wanted, 1, &limit, NULL);
  read_socket(visit);
  if (!visit->ended && ngtcp2_conn_get_expiry(quic) <= now() && ngtcp2_conn_handle_expiry(quic, now()) != 0) {
    fail("a timer ended the connection");
  }
}

static void linger(struct visit *visit, ngtcp2_duration duration) {
  ngtcp2_tstamp end = now() + duration;
  while (!visit->ended && now() < end) {
    turn(visit, end);
  }
}

// A turn of waiting for something.
static void await(struct visit *visit, ngtcp2_tstamp begun) {
  if (visit->ended) {
    fail("the connection ended too early");
  }
  if (now() > begun + PATIENCE) {
    fail("waited in vain");
  }
  turn(visit, begun + PATIENCE);
}

static void establish(struct visit *visit) {
  ngtcp2_tstamp begun = now();
  start(visit);
  while (!visit->early && !visit->completed) {
    await(visit, begun);
  }
  // The server's first streams may have come before, and made it.
  if (visit->connection.http == NULL && (visit->connection.http = http_new(&visit->connection, NULL)) == NULL) {
    fail("no streams for HTTP/3");
  }
}

static void leave(struct visit *visit) {
  if (!visit->ended) {
    connection_send(&visit->connection);
    connection_close(&visit->connection, 0);
  }
  connection_free(&visit->connection);
  close(visit->socket);
}

// A new request; NULL if the server is going away. Fields beyond the usual ones may be given.
static struct exchange *try_request(struct visit *visit, const char *method, const char *path,
                                    const nghttp3_nv *more, size_t count) {
  nghttp3_nv fields[SMALL_COUNT + 8] = {http_field(":method", method), http_field(":scheme", "https"),
                                        http_field(":authority", NAME), http_field(":path", path)};
  bool has_content = strcmp(method, "POST") == 0;
  ngtcp2_tstamp begun = now();
  struct http *http = visit->connection.http;
  int64_t id;
  if (count > 0) {
    memcpy(fields + 4, more, count * sizeof *more);
  }
  while (ngtcp2_conn_open_bidi_stream(visit->connection.quic, &id, NULL) == NGTCP2_ERR_STREAM_ID_BLOCKED) {
    await(visit, begun);
  }
  struct exchange *exchange = http_add(http, id);
  int result =
      nghttp3_conn_submit_request(http->h3, id, fields, 4 + count, has_content ? &http_reader : NULL, NULL);
  if (result == NGHTTP3_ERR_CONN_CLOSING) {
    return NULL;
  }
  if (result != 0) {
    fail(nghttp3_strerror(result));
  }
  return exchange;
}

static struct exchange *request(struct visit *visit, const char *method, const char *path) {
  struct exchange *exchange = try_request(visit, method, path, NULL, 0);
  if (exchange == NULL) {
    fail("the server is going away");
  }
  return exchange;
}

static void read_until(struct visit *visit, const struct exchange *exchange, uint64_t size) {
  ngtcp2_tstamp begun = now();
  while (exchange->bytes < size) {
    if (exchange->reset || exchange->over) {
      fail("the response ended too early");
    }
    await(visit, begun);
  }
}

static void finish(struct visit *visit, const struct exchange *exchange) {
  ngtcp2_tstamp begun = now();
  while (!exchange->over) {
    if (exchange->reset) {
      fail("the response was reset");
    }
    await(visit, begun);
  }
}

static void send_pattern(struct visit *visit, struct exchange *exchange, size_t from, size_t size) {
  pattern(exchange_append(visit->connection.http, exchange, size)->data, from, size);
}

static void tell(const struct exchange *exchange, const char *more) {
  printf("{\"status\": %u, \"bytes\": %llu, \"crc\": %u%s}", exchange->status, (unsigned long long)exchange->bytes,
         exchange->crc, more);
}

static struct exchange *get(struct visit *visit, const char *path) {
  struct exchange *exchange = request(visit, "GET", path);
  finish(visit, exchange);
  return exchange;
}

static void gets(struct visit *visit) {
  const char *paths[] = {"/bytes/0", "/bytes/1", "/bytes/100000", "/bytes/1000000", "/nothing"};
  printf("{\"responses\": [");
  for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
    printf(i > 0 ? ", " : "");
    tell(get(visit, paths[i]), "");
  }
  printf("]}\n");
}

// A thousand, as many at the same time as the server permits.
static void parallel(struct visit *visit) {
  static struct exchange *exchanges[PARALLEL];
  char path[32];
  unsigned good = 0;
  uint64_t bytes = 0;
  uint32_t sum = 0;
  for (int i = 0; i < PARALLEL; i++) {
    snprintf(path, sizeof path, "/bytes/%d", i);
    exchanges[i] = request(visit, "GET", path);
  }
  for (int i = 0; i < PARALLEL; i++) {
    finish(visit, exchanges[i]);
    good += exchanges[i]->status == 200;
    bytes += exchanges[i]->bytes;
    sum ^= exchanges[i]->crc;
  }
  printf("{\"good\": %u, \"bytes\": %llu, \"crc\": %u}\n", good, (unsigned long long)bytes, sum);
}

// Each piece comes back before the next is sent.
static void post(struct visit *visit) {
  char more[32];
  struct exchange *exchange = request(visit, "POST", "/echo");
  for (int i = 0; i < TURNS; i++) {
    send_pattern(visit, exchange, (size_t)i * TURN_SIZE, TURN_SIZE);
    read_until(visit, exchange, (uint64_t)(i + 1) * TURN_SIZE);
  }
  exchange_complete(visit->connection.http, exchange);
  finish(visit, exchange);
  snprintf(more, sizeof more, ", \"turns\": %d", TURNS);
  tell(exchange, more);
  printf("\n");
}

static void headers(struct visit *visit) {
  static uint8_t large[LARGE_SIZE];
  letters(large, LARGE_SIZE);
  printf("{\"responses\": [");
  for (int i = 0; i < HEADER_TURNS; i++) {
    char size[16], number[16], names[SMALL_COUNT][32], values[SMALL_COUNT][48];
    nghttp3_nv fields[SMALL_COUNT + 3];
    snprintf(size, sizeof size, "%d", LARGE_SIZE);
    snprintf(number, sizeof number, "%d", i);
    fields[0] = http_field("x-size", size);
    fields[1] = http_field("x-turn", number);
    fields[2] = (nghttp3_nv){(uint8_t *)"x-large", large, 7, LARGE_SIZE, NGHTTP3_NV_FLAG_NONE};
    for (int nth = 0; nth < SMALL_COUNT; nth++) {
      snprintf(names[nth], sizeof names[nth], SMALL "%d", nth);
      snprintf(values[nth], sizeof values[nth], "value %d of turn %d", nth, i);
      fields[3 + nth] = http_field(names[nth], values[nth]);
    }
    struct exchange *exchange = try_request(visit, "GET", "/headers", fields, SMALL_COUNT + 3);
    if (exchange == NULL) {
      fail("the server is going away");
    }
    finish(visit, exchange);
    printf("%s{\"status\": %u, \"digest\": \"%s\", \"count\": \"%s\", \"large\": %zu, \"large_crc\": %u, "
           "\"small\": %u, \"last\": \"%s\"}",
           i > 0 ? ", " : "", exchange->status, exchange->digest, exchange->count, exchange->large_length,
           checksum(0, exchange->large, exchange->large_length), exchange->small, exchange->last);
  }
  printf("]}\n");
}

static void trailers(struct visit *visit) {
  char more[128];
  struct exchange *exchange = request(visit, "POST", "/trailers");
  snprintf(exchange->own_trailer, sizeof exchange->own_trailer, TRAILER);
  send_pattern(visit, exchange, 0, TURN_SIZE);
  exchange_complete(visit->connection.http, exchange);
  finish(visit, exchange);
  snprintf(more, sizeof more, ", \"trailer\": \"%s\"", exchange->trailer);
  tell(exchange, more);
  printf("\n");
}

// Gives up an endless response, and goes on.
static void cancel(struct visit *visit) {
  struct exchange *exchange = request(visit, "GET", "/slow");
  read_until(visit, exchange, CANCEL_AFTER);
  printf("{\"read\": %llu, \"after\": ", (unsigned long long)exchange->bytes);
  ngtcp2_conn_shutdown_stream_read(visit->connection.quic, exchange->id, H3_REQUEST_CANCELLED);
  nghttp3_conn_shutdown_stream_read(visit->connection.http->h3, exchange->id);
  tell(get(visit, "/bytes/10000"), "");
  printf("}\n");
}

// The server goes away while a request is under way: it finishes, and no other is sent.
static void go_away(struct visit *visit) {
  struct exchange *exchange = request(visit, "POST", "/echo");
  send_pattern(visit, exchange, 0, TURN_SIZE);
  read_until(visit, exchange, TURN_SIZE);
  unsigned status = get(visit, "/goaway")->status;
  linger(visit, SOON);
  bool refused = try_request(visit, "GET", "/bytes/1", NULL, 0) == NULL;
  send_pattern(visit, exchange, TURN_SIZE, TURN_SIZE);
  exchange_complete(visit->connection.http, exchange);
  finish(visit, exchange);
  printf("{\"goaway\": %u, \"refused\": %s, \"echo\": ", status, refused ? "true" : "false");
  tell(exchange, "");
  printf("}\n");
  linger(visit, CLOSE);
}

static void zero_rtt(struct visit *visit) {
  ngtcp2_tstamp begun = now();
  printf("{\"responses\": [");
  tell(get(visit, "/bytes/1000"), "");
  linger(visit, SOON);
  const ngtcp2_transport_params *params = ngtcp2_conn_get_remote_transport_params(visit->connection.quic);
  if (params == NULL || tls.ticket.size == 0) {
    fail("no session ticket came");
  }
  server_params = *params;
  have_params = true;
  leave(visit);
  establish(visit);
  if (!visit->early) {
    fail("the session permits no early data");
  }
  printf(", ");
  tell(get(visit, "/bytes/2000"), "");
  while (!visit->completed) {
    await(visit, begun);
  }
  printf("], \"early_accepted\": %s}\n", visit->early_accepted ? "true" : "false");
}

int http_client_run(const struct options *chosen) {
  static const struct {
    const char *name;
    void (*run)(struct visit *);
  } cases[] = {{"get", gets},           {"parallel", parallel}, {"post", post},       {"headers", headers},
               {"trailers", trailers}, {"cancel", cancel},     {"goaway", go_away}, {"zerortt", zero_rtt}};
  struct visit visit;
  options = chosen;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    if (strcmp(cases[i].name, options->http_case) == 0) {
      if (!tls_init(&tls, options)) {
        return 1;
      }
      establish(&visit);
      cases[i].run(&visit);
      leave(&visit);
      return 0;
    }
  }
  fprintf(stderr, "error: no case %s\n", options->http_case);
  return 2;
}
