// Serves files to any number of connections on one socket.
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "connection.h"
#include "http.h"
#include "net.h"
#include "options.h"
#include "roles.h"
#include "tls.h"

#define MAX_REQUEST 8192
// Datagrams that are read before anything is sent.
#define BATCH 64
#define TOKEN_LIFE (60 * NGTCP2_SECONDS)
#define OLD_TOKEN_LIFE (3600 * NGTCP2_SECONDS)

struct server {
  const struct options *options;
  struct tls tls;
  struct address address;
  int socket;
  uint8_t secret[32];
  struct session *sessions;
};

// A connection of the server's, with the IDs that lead to it.
struct session {
  // First: callbacks get the connection.
  struct connection connection;
  struct server *server;
  struct session *next;
  ngtcp2_cid *cids;
  size_t cid_count;
  // When it may be forgotten; 0 while it lives.
  ngtcp2_tstamp gone_at;
};

static void add_cid(struct session *session, const ngtcp2_cid *cid) {
  session->cids = realloc(session->cids, (session->cid_count + 1) * sizeof *cid);
  if (session->cids == NULL) {
    abort();
  }
  session->cids[session->cid_count++] = *cid;
}

static struct session *find(struct server *server, const uint8_t *id, size_t length) {
  for (struct session *each = server->sessions; each != NULL; each = each->next) {
    for (size_t i = 0; i < each->cid_count; i++) {
      if (each->cids[i].datalen == length && memcmp(each->cids[i].data, id, length) == 0) {
        return each;
      }
    }
  }
  return NULL;
}

static int new_cid(ngtcp2_conn *quic, ngtcp2_cid *cid, uint8_t *token, size_t length, void *user_data) {
  struct session *session = user_data;
  ngtcp2_callbacks common;
  connection_callbacks(&common);
  int result = common.get_new_connection_id(quic, cid, token, length, user_data);
  if (result == 0) {
    add_cid(session, cid);
  }
  return result;
}

static int remove_cid(ngtcp2_conn *quic, const ngtcp2_cid *cid, void *user_data) {
  (void)quic;
  struct session *session = user_data;
  for (size_t i = 0; i < session->cid_count; i++) {
    if (ngtcp2_cid_eq(&session->cids[i], cid)) {
      session->cids[i] = session->cids[--session->cid_count];
      break;
    }
  }
  return 0;
}

static int handshake_completed(ngtcp2_conn *quic, void *user_data) {
  struct session *session = user_data;
  gnutls_session_t tls = session->connection.tls;
  const ngtcp2_path *path = ngtcp2_conn_get_path(quic);
  uint8_t token[NGTCP2_CRYPTO_MAX_REGULAR_TOKENLEN];
  printf("connection, ALPN %s, version %x, resumed %d, 0-RTT %d\n", ALPN,
         ngtcp2_conn_get_negotiated_version(quic), gnutls_session_is_resumed(tls), tls_early_accepted(tls));
  if (gnutls_session_ticket_send(tls, 1, 0) != 0) {
    return NGTCP2_ERR_CALLBACK_FAILURE;
  }
  ngtcp2_ssize length =
      ngtcp2_crypto_generate_regular_token(token, session->server->secret, sizeof session->server->secret,
                                           path->remote.addr, path->remote.addrlen, (ngtcp2_tstamp)time(NULL) * NGTCP2_SECONDS);
  return length < 0 ? NGTCP2_ERR_CALLBACK_FAILURE : ngtcp2_conn_submit_new_token(quic, token, (size_t)length);
}

// Reads the requested file into `stream`; false if there is no such file.
static bool load(struct session *session, struct stream *stream) {
  char path[MAX_REQUEST + 512];
  size_t length = stream->in_length;
  while (length > 0 && (stream->in[length - 1] == '\n' || stream->in[length - 1] == '\r')) {
    length--;
  }
  if (length < 5 || memcmp(stream->in, "GET /", 5) != 0) {
    return false;
  }
  snprintf(path, sizeof path, "%s/%.*s", session->server->options->dir, (int)(length - 5),
           (const char *)stream->in + 5);
  if (strstr(path, "..") != NULL) {
    return false;
  }
  FILE *file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
    return false;
  }
  stream->out_length = (size_t)ftell(file);
  rewind(file);
  stream->out = malloc(stream->out_length + 1);
  bool whole = stream->out != NULL && fread(stream->out, 1, stream->out_length, file) == stream->out_length;
  fclose(file);
  return whole;
}

static int receive(ngtcp2_conn *quic, uint32_t flags, int64_t id, uint64_t offset, const uint8_t *data,
                   size_t length, void *user_data, void *stream_data) {
  (void)offset, (void)stream_data;
  struct session *session = user_data;
  struct stream *stream = connection_stream(&session->connection, id);
  ngtcp2_conn_extend_max_stream_offset(quic, id, length);
  ngtcp2_conn_extend_max_offset(quic, length);
  if (stream == NULL || !ngtcp2_is_bidi_stream(id)) {
    return 0;
  }
  stream_append(stream, data, length);
  bool whole = (flags & NGTCP2_STREAM_DATA_FLAG_FIN) != 0;
  if (whole) {
    printf("request '%.*s'\n", (int)strcspn((const char *)stream->in, "\r\n"), (const char *)stream->in);
  }
  if (stream->in_length > MAX_REQUEST || (whole && !load(session, stream))) {
    stream->fin_sent = true;
    return ngtcp2_conn_shutdown_stream_write(quic, id, NOT_FOUND);
  }
  stream->ready = whole;
  return 0;
}

static int stream_open(ngtcp2_conn *quic, int64_t id, void *user_data) {
  (void)quic;
  // One byte beyond the request, so that text functions find an end.
  stream_append(connection_add_stream(user_data, id), (const uint8_t *)"", 1);
  connection_stream(user_data, id)->in_length = 0;
  return 0;
}

static int stream_close(ngtcp2_conn *quic, uint32_t flags, int64_t id, uint64_t code, void *user_data,
                        void *stream_data) {
  (void)flags, (void)code, (void)stream_data;
  connection_remove_stream(user_data, id);
  if (ngtcp2_is_bidi_stream(id)) {
    ngtcp2_conn_extend_max_streams_bidi(quic, 1);
  } else {
    ngtcp2_conn_extend_max_streams_uni(quic, 1);
  }
  return 0;
}

static int server_socket(struct connection *connection, const ngtcp2_path *path) {
  (void)path;
  return ((struct session *)connection)->server->socket;
}

// Replies with a datagram that belongs to no connection.
static void reply(struct server *server, const ngtcp2_path *path, const uint8_t *data, ngtcp2_ssize length) {
  ngtcp2_pkt_info info = {NGTCP2_ECN_NOT_ECT};
  if (length > 0) {
    socket_send(server->socket, &path->remote, &info, data, (size_t)length);
  }
}

static void negotiate_version(struct server *server, const ngtcp2_path *path, const ngtcp2_version_cid *seen) {
  uint8_t packet[1200], unused;
  uint32_t versions[] = {0x1a2a3a4a, server->options->version};
  random_bytes(&unused, 1);
  // The asked-for version must not be among the offered ones, not even as grease.
  size_t from = seen->version == versions[0] ? 1 : 0;
  reply(server, path, packet,
        ngtcp2_pkt_write_version_negotiation(packet, sizeof packet, unused, seen->scid, seen->scidlen, seen->dcid,
                                             seen->dcidlen, versions + from, 2 - from));
}

static void send_retry(struct server *server, const ngtcp2_path *path, const ngtcp2_pkt_hd *header) {
  uint8_t packet[1200], token[NGTCP2_CRYPTO_MAX_RETRY_TOKENLEN];
  ngtcp2_cid id = {.datalen = server->options->cid_length};
  random_bytes(id.data, id.datalen);
  ngtcp2_ssize length = ngtcp2_crypto_generate_retry_token(
      token, server->secret, sizeof server->secret, header->version, path->remote.addr, path->remote.addrlen, &id,
      &header->dcid, (ngtcp2_tstamp)time(NULL) * NGTCP2_SECONDS);
  if (length > 0) {
    reply(server, path, packet,
          ngtcp2_crypto_write_retry(packet, sizeof packet, header->version, &header->scid, &id, &header->dcid,
                                    token, (size_t)length));
  }
}

// Whether a client may go on with this first packet; if it has come back after a Retry, `original`
// becomes the first ID that it made up.
static bool admit(struct server *server, const ngtcp2_path *path, const ngtcp2_pkt_hd *header, ngtcp2_cid *original) {
  const ngtcp2_vec *token = &header->token;
  ngtcp2_tstamp date = (ngtcp2_tstamp)time(NULL) * NGTCP2_SECONDS;
  uint8_t packet[1200];
  if (token->len > 0 && token->base[0] == NGTCP2_CRYPTO_TOKEN_MAGIC_RETRY) {
    if (ngtcp2_crypto_verify_retry_token(original, token->base, token->len, server->secret, sizeof server->secret,
                                         header->version, path->remote.addr, path->remote.addrlen, &header->dcid,
                                         TOKEN_LIFE, date) == 0) {
      return true;
    }
    reply(server, path, packet,
          ngtcp2_crypto_write_connection_close(packet, sizeof packet, header->version, &header->scid, &header->dcid,
                                               NGTCP2_INVALID_TOKEN, NULL, 0));
    return false;
  }
  bool known = token->len > 0 && ngtcp2_crypto_verify_regular_token(
                                     token->base, token->len, server->secret, sizeof server->secret,
                                     path->remote.addr, path->remote.addrlen, OLD_TOKEN_LIFE, date) == 0;
  if (server->options->retry && !known) {
    send_retry(server, path, header);
    return false;
  }
  return true;
}

static void callbacks(ngtcp2_callbacks *to) {
  connection_callbacks(to);
  to->recv_client_initial = ngtcp2_crypto_recv_client_initial_cb;
  to->handshake_completed = handshake_completed;
  to->get_new_connection_id = new_cid;
  to->remove_connection_id = remove_cid;
  to->recv_stream_data = receive;
  to->stream_open = stream_open;
  to->stream_close = stream_close;
}

static struct session *accept_session(struct server *server, const ngtcp2_path *path, const uint8_t *data,
                                      size_t length) {
  ngtcp2_pkt_hd header;
  ngtcp2_cid original = {0}, own = {.datalen = server->options->cid_length};
  if (ngtcp2_accept(&header, data, length) != 0 || !admit(server, path, &header, &original)) {
    return NULL;
  }
  struct session *session = calloc(1, sizeof *session);
  if (session == NULL) {
    abort();
  }
  ngtcp2_settings settings;
  ngtcp2_transport_params params;
  ngtcp2_callbacks functions;
  bool retried = original.datalen > 0;
  connection_init(&session->connection, server->options);
  session->server = server;
  session->connection.socket_of = server_socket;
  connection_settings(&session->connection, &settings, &params, retried ? &original : &header.dcid);
  settings.token = header.token;
  params.original_dcid = retried ? original : header.dcid;
  params.retry_scid_present = retried;
  params.retry_scid = header.dcid;
  callbacks(&functions);
  if (server->options->http) {
    session->connection.respond = http_respond;
    http_callbacks(&functions);
  }
  random_bytes(own.data, own.datalen);
  session->connection.tls = tls_session(&server->tls, &session->connection.ref, NULL);
  if (session->connection.tls == NULL ||
      ngtcp2_conn_server_new(&session->connection.quic, &header.scid, &own, path, header.version, &functions,
                             &settings, &params, NULL, session) != 0) {
    free(session);
    return NULL;
  }
  ngtcp2_conn_set_tls_native_handle(session->connection.quic, session->connection.tls);
  add_cid(session, &own);
  add_cid(session, &header.dcid);
  session->next = server->sessions;
  server->sessions = session;
  return session;
}

// Ends a session for an error of ngtcp2's; it is kept for a while, to be deaf to late packets.
static void finish(struct session *session, int error) {
  char text[256];
  ngtcp2_duration wait = 3 * ngtcp2_conn_get_pto(session->connection.quic);
  connection_ending(&session->connection, error, text, sizeof text);
  printf("connection ended: %s\n", text);
  bool silent = error == NGTCP2_ERR_DRAINING || error == NGTCP2_ERR_IDLE_CLOSE ||
                error == NGTCP2_ERR_HANDSHAKE_TIMEOUT || error == NGTCP2_ERR_DROP_CONN;
  if (!silent) {
    connection_close(&session->connection, error);
  }
  // ngtcp2 wants to hear no more of a connection that didn't begin properly; the client's next packet
  // may be the first of a good one.
  session->gone_at = now() + (error == NGTCP2_ERR_DROP_CONN ? 0 : wait);
}

static void on_datagram(struct server *server, struct address *from, const ngtcp2_pkt_info *info,
                        const uint8_t *data, size_t length) {
  ngtcp2_path path = {{(struct sockaddr *)&server->address.storage, server->address.length},
                      {(struct sockaddr *)&from->storage, from->length},
                      NULL};
  ngtcp2_version_cid ids;
  int result = ngtcp2_pkt_decode_version_cid(&ids, data, length, server->options->cid_length);
  bool foreign = ids.version != 0 && ids.version != server->options->version;
  if (result == NGTCP2_ERR_VERSION_NEGOTIATION || (result == 0 && foreign)) {
    // Only a full-size datagram is answered (RFC 9000, section 6.1).
    if (length >= NGTCP2_MAX_UDP_PAYLOAD_SIZE) {
      negotiate_version(server, &path, &ids);
    }
    return;
  }
  if (result != 0) {
    return;
  }
  struct session *session = find(server, ids.dcid, ids.dcidlen);
  if (session == NULL) {
    session = accept_session(server, &path, data, length);
  }
  if (session == NULL || session->gone_at != 0) {
    return;
  }
  result = ngtcp2_conn_read_pkt(session->connection.quic, &path, info, data, length, now());
  if (result != 0) {
    finish(session, result);
  }
}

static void run_timers(struct server *server) {
  struct session **at = &server->sessions;
  while (*at != NULL) {
    struct session *session = *at;
    int result = 0;
    if (session->gone_at == 0) {
      if (ngtcp2_conn_get_expiry(session->connection.quic) <= now()) {
        result = ngtcp2_conn_handle_expiry(session->connection.quic, now());
      }
      result = result == 0 ? connection_send(&session->connection) : result;
      if (result != 0) {
        finish(session, result);
      }
    } else if (session->gone_at <= now()) {
      *at = session->next;
      connection_free(&session->connection);
      free(session->cids);
      free(session);
      continue;
    }
    at = &session->next;
  }
}

static void wait_for_work(struct server *server) {
  ngtcp2_tstamp next = UINT64_MAX, time = now();
  for (struct session *each = server->sessions; each != NULL; each = each->next) {
    ngtcp2_tstamp due = each->gone_at ? each->gone_at : ngtcp2_conn_get_expiry(each->connection.quic);
    next = due < next ? due : next;
  }
  ngtcp2_duration left = next > time ? next - time : 0;
  struct timespec limit = {(time_t)(left / NGTCP2_SECONDS), (long)(left % NGTCP2_SECONDS)};
  struct pollfd wanted = {server->socket, POLLIN, 0};
  ppoll(&wanted, 1, next == UINT64_MAX ? NULL : &limit, NULL);
}

int server_run(const struct options *options) {
  static uint8_t datagram[MAX_DATAGRAM];
  struct server server = {.options = options};
  if (!address_parse(&server.address, options->listen) || !tls_init(&server.tls, options)) {
    fprintf(stderr, "can't serve on %s\n", options->listen);
    return 1;
  }
  server.socket = socket_open(&server.address);
  if (server.socket < 0) {
    perror(options->listen);
    return 1;
  }
  random_bytes(server.secret, sizeof server.secret);
  printf("listening on %s\n", options->listen);
  for (;;) {
    struct address from;
    ngtcp2_pkt_info info;
    ssize_t length;
    wait_for_work(&server);
    for (int i = 0; i < BATCH && (length = socket_receive(server.socket, datagram, &from, &info)) >= 0; i++) {
      on_datagram(&server, &from, &info, datagram, (size_t)length);
    }
    run_timers(&server);
  }
}
