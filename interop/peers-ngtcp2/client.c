// Downloads files over one connection, or over several one after another.
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "connection.h"
#include "net.h"
#include "options.h"
#include "roles.h"
#include "tls.h"

// How long a session ticket may take after the first file.
#define TICKET_WAIT (3 * NGTCP2_SECONDS)
#define MAX_SOCKETS 2

// A file to get.
struct request {
  char *url;
  const char *path;
  int64_t stream;
  bool asked, done;
};

// What outlasts a connection.
struct client {
  const struct options *options;
  struct tls tls;
  struct address server;
  char host[128];
  uint8_t *token;
  size_t token_length;
  bool have_params;
  ngtcp2_transport_params params;
  // For the report.
  size_t files, connections;
  uint64_t bytes;
  ngtcp2_duration handshake;
  unsigned key_updates;
  bool resumed, migrated, ecn;
  // -1: none was sent.
  int early_accepted;
};

struct download {
  // First: callbacks get the connection.
  struct connection connection;
  struct client *client;
  struct request *requests;
  size_t count, left;
  struct address local[MAX_SOCKETS];
  int sockets[MAX_SOCKETS], socket_count;
  ngtcp2_tstamp started;
  uint64_t received;
  bool early, completed, moving, moved;
  // Empty while nothing is wrong.
  char failure[256];
};

static int handshake_completed(ngtcp2_conn *quic, void *user_data) {
  struct download *download = user_data;
  bool accepted = tls_early_accepted(download->connection.tls);
  download->completed = true;
  download->client->handshake = now() - download->started;
  download->client->resumed = gnutls_session_is_resumed(download->connection.tls) != 0;
  if (download->early) {
    download->client->early_accepted = accepted;
  }
  return download->early && !accepted ? ngtcp2_conn_early_data_rejected(quic) : 0;
}

// All streams are gone with the rejected 0-RTT; the requests are made again.
static int early_data_rejected(ngtcp2_conn *quic, void *user_data) {
  (void)quic;
  struct download *download = user_data;
  while (download->connection.streams != NULL) {
    connection_remove_stream(&download->connection, download->connection.streams->id);
  }
  for (size_t i = 0; i < download->count; i++) {
    download->requests[i].asked = false;
  }
  return 0;
}

static int keep_token(ngtcp2_conn *quic, const ngtcp2_vec *token, void *user_data) {
  (void)quic;
  struct client *client = ((struct download *)user_data)->client;
  free(client->token);
  client->token = malloc(token->len);
  if (client->token == NULL) {
    abort();
  }
  memcpy(client->token, token->base, token->len);
  client->token_length = token->len;
  return 0;
}

static struct request *request_of(struct download *download, int64_t stream) {
  for (size_t i = 0; i < download->count; i++) {
    if (download->requests[i].asked && download->requests[i].stream == stream) {
      return &download->requests[i];
    }
  }
  return NULL;
}

static bool store(struct download *download, const struct request *request, const struct stream *stream) {
  char path[1024];
  const char *name = strrchr(request->path, '/');
  snprintf(path, sizeof path, "%s%s", download->client->options->out, name);
  FILE *file = fopen(path, "wb");
  bool whole = file != NULL && fwrite(stream->in, 1, stream->in_length, file) == stream->in_length;
  if (file == NULL || fclose(file) != 0 || !whole) {
    perror(path);
    return false;
  }
  return true;
}

static int receive(ngtcp2_conn *quic, uint32_t flags, int64_t id, uint64_t offset, const uint8_t *data,
                   size_t length, void *user_data, void *stream_data) {
  (void)offset, (void)stream_data;
  struct download *download = user_data;
  struct stream *stream = connection_stream(&download->connection, id);
  struct request *request = request_of(download, id);
  ngtcp2_conn_extend_max_stream_offset(quic, id, length);
  ngtcp2_conn_extend_max_offset(quic, length);
  if (stream == NULL || request == NULL) {
    return 0;
  }
  stream_append(stream, data, length);
  download->received += length;
  connection_moved(&download->connection, length);
  if (flags & NGTCP2_STREAM_DATA_FLAG_FIN) {
    if (!store(download, request, stream)) {
      snprintf(download->failure, sizeof download->failure, "%s can't be written", request->path);
    }
    request->done = true;
    download->left--;
    download->client->files++;
    download->client->bytes += stream->in_length;
  }
  return 0;
}

static int stream_reset(ngtcp2_conn *quic, int64_t id, uint64_t size, uint64_t code, void *user_data,
                        void *stream_data) {
  (void)quic, (void)size, (void)stream_data;
  struct download *download = user_data;
  struct request *request = request_of(download, id);
  snprintf(download->failure, sizeof download->failure, "%s: the server reset the stream with code %llu",
           request ? request->path : "?", (unsigned long long)code);
  return 0;
}

static int stream_close(ngtcp2_conn *quic, uint32_t flags, int64_t id, uint64_t code, void *user_data,
                        void *stream_data) {
  (void)quic, (void)flags, (void)code, (void)stream_data;
  connection_remove_stream(user_data, id);
  return 0;
}

static int path_validated(ngtcp2_conn *quic, uint32_t flags, const ngtcp2_path *path,
                          ngtcp2_path_validation_result result, void *user_data) {
  (void)quic, (void)flags, (void)path;
  struct download *download = user_data;
  bool good = result == NGTCP2_PATH_VALIDATION_RESULT_SUCCESS;
  fprintf(stderr, "path validation %s\n", good ? "succeeded" : "failed");
  download->moved = download->moved || (good && download->moving);
  if (!good && download->moving) {
    snprintf(download->failure, sizeof download->failure, "the new path could not be validated");
  }
  return 0;
}

// Follows the server to its preferred address, if it has one of the same family.
static int select_address(ngtcp2_conn *quic, ngtcp2_path *to, const ngtcp2_preferred_addr *offered, void *user_data) {
  (void)quic;
  struct download *download = user_data;
  bool v6 = download->client->server.storage.ss_family == AF_INET6;
  if (v6 && offered->ipv6_present) {
    memcpy(to->remote.addr, &offered->ipv6, sizeof offered->ipv6);
    to->remote.addrlen = sizeof offered->ipv6;
  } else if (!v6 && offered->ipv4_present) {
    memcpy(to->remote.addr, &offered->ipv4, sizeof offered->ipv4);
    to->remote.addrlen = sizeof offered->ipv4;
  }
  return 0;
}

static int client_socket(struct connection *connection, const ngtcp2_path *path) {
  struct download *download = (struct download *)connection;
  for (int i = 0; i < download->socket_count; i++) {
    if (download->local[i].length == path->local.addrlen &&
        memcmp(&download->local[i].storage, path->local.addr, path->local.addrlen) == 0) {
      return download->sockets[i];
    }
  }
  return download->sockets[0];
}

static ngtcp2_path path_from(struct download *download, int index) {
  struct address *local = &download->local[index], *remote = &download->client->server;
  return (ngtcp2_path){{(struct sockaddr *)&local->storage, local->length},
                       {(struct sockaddr *)&remote->storage, remote->length},
                       NULL};
}

static bool add_socket(struct download *download) {
  int index = download->socket_count, fd;
  if (index == MAX_SOCKETS || (fd = socket_open(&download->local[index])) < 0) {
    return false;
  }
  download->sockets[index] = fd;
  download->socket_count++;
  return true;
}

// Moves to another address of the loopback network if the server is there, else to another port.
static void migrate(struct download *download) {
  struct sockaddr_in *address = (struct sockaddr_in *)&download->local[1].storage;
  if (download->socket_count == 1) {
    address_towards(&download->local[1], &download->client->server);
    if (address->sin_family == AF_INET && ntohl(address->sin_addr.s_addr) >> 24 == 127) {
      address->sin_addr.s_addr = htonl(0x7f000002);
    }
    if (!add_socket(download)) {
      snprintf(download->failure, sizeof download->failure, "no second socket");
      return;
    }
  }
  ngtcp2_path path = path_from(download, 1);
  // Not possible yet without the server's next ID, or before the handshake is confirmed.
  int result = ngtcp2_conn_initiate_migration(download->connection.quic, &path, now());
  download->moving = result == 0;
  if (result != 0 && result != NGTCP2_ERR_CONN_ID_BLOCKED && result != NGTCP2_ERR_INVALID_STATE) {
    snprintf(download->failure, sizeof download->failure, "migration: %s", ngtcp2_strerror(result));
  }
}

static void ask(struct download *download) {
  for (size_t i = 0; i < download->count; i++) {
    struct request *request = &download->requests[i];
    if (request->asked) {
      continue;
    }
    if (ngtcp2_conn_open_bidi_stream(download->connection.quic, &request->stream, NULL) != 0) {
      return;
    }
    struct stream *stream = connection_add_stream(&download->connection, request->stream);
    size_t length = strlen(request->path) + 8;
    stream->out = malloc(length);
    if (stream->out == NULL) {
      abort();
    }
    stream->out_length = (size_t)snprintf((char *)stream->out, length, "GET %s\r\n", request->path);
    stream->ready = request->asked = true;
  }
}

static bool start(struct download *download) {
  struct client *client = download->client;
  ngtcp2_cid theirs = {.datalen = 18}, own = {.datalen = client->options->cid_length};
  ngtcp2_settings settings;
  ngtcp2_transport_params params;
  ngtcp2_callbacks functions;
  struct connection *connection = &download->connection;
  connection_init(connection, client->options);
  connection->socket_of = client_socket;
  if (!address_towards(&download->local[0], &client->server) || !add_socket(download)) {
    return false;
  }
  random_bytes(theirs.data, theirs.datalen);
  random_bytes(own.data, own.datalen);
  connection_settings(connection, &settings, &params, &theirs);
  // Probes for larger packets would count among the 1-RTT bytes, of which the case allows few.
  settings.no_pmtud = client->options->zero_rtt;
  // Connections of their own are full handshakes each.
  if (client->options->per_connection) {
    gnutls_free(client->tls.ticket.data);
    client->tls.ticket = (gnutls_datum_t){0};
  } else {
    settings.token = (ngtcp2_vec){client->token, client->token_length};
  }
  connection_callbacks(&functions);
  functions.client_initial = ngtcp2_crypto_client_initial_cb;
  functions.recv_retry = ngtcp2_crypto_recv_retry_cb;
  functions.handshake_completed = handshake_completed;
  functions.early_data_rejected = early_data_rejected;
  functions.recv_new_token = keep_token;
  functions.recv_stream_data = receive;
  functions.stream_reset = stream_reset;
  functions.stream_close = stream_close;
  functions.path_validation = path_validated;
  functions.select_preferred_addr = select_address;
  ngtcp2_path path = path_from(download, 0);
  connection->tls = tls_session(&client->tls, &connection->ref, client->host);
  download->started = now();
  if (connection->tls == NULL ||
      ngtcp2_conn_client_new(&connection->quic, &theirs, &own, &path, client->options->version, &functions,
                             &settings, &params, NULL, download) != 0) {
    return false;
  }
  ngtcp2_conn_set_tls_native_handle(connection->quic, connection->tls);
  download->early = client->options->zero_rtt && client->have_params && tls_early_possible(connection->tls);
  if (download->early) {
    ngtcp2_conn_set_early_remote_transport_params(connection->quic, &client->params);
  }
  return true;
}

static void read_sockets(struct download *download) {
  static uint8_t datagram[MAX_DATAGRAM];
  for (int i = 0; i < download->socket_count; i++) {
    struct address from;
    ngtcp2_pkt_info info;
    ssize_t length;
    while (download->failure[0] == 0 &&
           (length = socket_receive(download->sockets[i], datagram, &from, &info)) >= 0) {
      ngtcp2_path path = path_from(download, i);
      path.remote = (ngtcp2_addr){(struct sockaddr *)&from.storage, from.length};
      download->client->ecn = download->client->ecn || info.ecn != NGTCP2_ECN_NOT_ECT;
      int result =
          ngtcp2_conn_read_pkt(download->connection.quic, &path, &info, datagram, (size_t)length, now());
      if (result != 0) {
        connection_ending(&download->connection, result, download->failure, sizeof download->failure);
        if (result != NGTCP2_ERR_DRAINING && result != NGTCP2_ERR_RECV_VERSION_NEGOTIATION) {
          connection_close(&download->connection, result);
        }
      }
    }
  }
}

// One turn of the loop: sends, waits, reads, lets timers run.
static void turn(struct download *download, ngtcp2_tstamp until) {
  ngtcp2_conn *quic = download->connection.quic;
  int result = connection_send(&download->connection);
  ngtcp2_tstamp time = now(), due = ngtcp2_conn_get_expiry(quic);
  due = due < until ? due : until;
  ngtcp2_duration left = due > time ? due - time : 0;
  struct timespec limit = {(time_t)(left / NGTCP2_SECONDS), (long)(left % NGTCP2_SECONDS)};
  struct pollfd wanted[MAX_SOCKETS];
  for (int i = 0; i < download->socket_count; i++) {
    wanted[i] = (struct pollfd){download->sockets[i], POLLIN, 0};
  }
  if (result == 0) {
    ppoll(wanted, (nfds_t)download->socket_count, &limit, NULL);
    read_sockets(download);
  }
  if (result == 0 && download->failure[0] == 0 && ngtcp2_conn_get_expiry(quic) <= now()) {
    result = ngtcp2_conn_handle_expiry(quic, now());
  }
  if (result != 0) {
    connection_ending(&download->connection, result, download->failure, sizeof download->failure);
  }
}

static void transfer(struct download *download, bool ticket) {
  struct client *client = download->client;
  ngtcp2_tstamp patience = UINT64_MAX;
  for (;;) {
    bool moved = download->moved || !client->options->migrate || ticket;
    if (download->left == 0 && moved && download->completed) {
      if (!ticket || client->tls.ticket.size > 0) {
        return;
      }
      patience = patience == UINT64_MAX ? now() + TICKET_WAIT : patience;
      if (now() >= patience) {
        snprintf(download->failure, sizeof download->failure, "no session ticket came");
      }
    }
    if (download->failure[0] != 0) {
      return;
    }
    ask(download);
    if (client->options->migrate && !ticket && !download->moving && download->received >= MIGRATE_AFTER) {
      migrate(download);
    }
    turn(download, patience);
  }
}

static bool run_connection(struct client *client, struct request *requests, size_t count, bool ticket) {
  struct download download = {.client = client, .requests = requests, .count = count, .left = count};
  if (!start(&download)) {
    fprintf(stderr, "can't start a connection to %s\n", client->host);
    return false;
  }
  transfer(&download, ticket);
  if (download.failure[0] == 0 || !download.completed) {
    client->connections++;
  }
  if (download.failure[0] == 0) {
    const ngtcp2_transport_params *params = ngtcp2_conn_get_remote_transport_params(download.connection.quic);
    client->have_params = params != NULL;
    client->params = params != NULL ? *params : client->params;
    connection_close(&download.connection, 0);
  } else {
    fprintf(stderr, "%s\n", download.failure);
  }
  client->key_updates += download.connection.key_updates;
  client->migrated = client->migrated || download.moved;
  connection_free(&download.connection);
  for (int i = 0; i < download.socket_count; i++) {
    close(download.sockets[i]);
  }
  return download.failure[0] == 0;
}

// Splits "https://host:port/path".
static bool read_url(struct client *client, struct request *request, char *url) {
  char authority[160];
  const char *host = strstr(url, "://");
  const char *path = host ? strchr(host + 3, '/') : NULL;
  if (path == NULL || (size_t)(path - host - 3) >= sizeof authority) {
    return false;
  }
  snprintf(authority, sizeof authority, "%.*s", (int)(path - host - 3), host + 3);
  *request = (struct request){.url = url, .path = path};
  if (client->host[0] != 0) {
    return true;
  }
  char *colon = strrchr(authority, ':');
  if (colon == NULL || !address_parse(&client->server, authority)) {
    return false;
  }
  *colon = 0;
  bool bracketed = authority[0] == '[';
  snprintf(client->host, sizeof client->host, "%.*s", (int)(strlen(authority) - 2 * bracketed),
           authority + bracketed);
  return true;
}

static bool run_all(struct client *client, struct request *requests, size_t count) {
  const struct options *options = client->options;
  if (options->per_connection) {
    for (size_t i = 0; i < count; i++) {
      if (!run_connection(client, requests + i, 1, false)) {
        return false;
      }
    }
    return true;
  }
  if ((options->resume || options->zero_rtt) && count > 1) {
    return run_connection(client, requests, 1, true) && run_connection(client, requests + 1, count - 1, false);
  }
  return run_connection(client, requests, count, false);
}

static const char *truth(bool value) {
  return value ? "true" : "false";
}

int client_run(const struct options *options) {
  struct client client = {.options = options, .early_accepted = -1};
  struct request *requests = calloc(options->url_count, sizeof *requests);
  for (size_t i = 0; i < options->url_count; i++) {
    if (requests == NULL || !read_url(&client, &requests[i], options->urls[i])) {
      fprintf(stderr, "%s is no URL with a host, a port and a path\n", options->urls[i]);
      return 1;
    }
  }
  if (!tls_init(&client.tls, options)) {
    return 1;
  }
  ngtcp2_tstamp begin = now();
  if (!run_all(&client, requests, options->url_count)) {
    return 1;
  }
  printf("{\"files\": %zu, \"bytes\": %llu, \"handshake_ms\": %.3f, \"seconds\": %.6f, \"key_updates\": %u, "
         "\"connections\": %zu, \"resumed\": %s, \"early_accepted\": %s, \"migrated\": %s, \"ecn\": %s}\n",
         client.files, (unsigned long long)client.bytes, (double)client.handshake / 1e6,
         (double)(now() - begin) / 1e9, client.key_updates, client.connections, truth(client.resumed),
         client.early_accepted < 0 ? "null" : truth(client.early_accepted == 1), truth(client.migrated),
         truth(client.ecn));
  free(requests);
  return 0;
}
