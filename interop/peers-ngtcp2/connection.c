#include "connection.h"

#include <stdlib.h>
#include <string.h>

#include "content.h"
#include "http.h"
#include "net.h"
#include "options.h"

// A handshake may take long where many packets are lost.
#define IDLE (30 * NGTCP2_SECONDS)
#define STREAMS 100
// The fourth and more are the streams that some open to see what happens.
#define UNI_STREAMS 8
#define WINDOW (6u << 20)
// What Ethernet leaves for UDP over IPv6.
#define MAX_PAYLOAD 1452

static uint8_t secret[32];

static ngtcp2_conn *conn_of(ngtcp2_crypto_conn_ref *ref) {
  return ((struct connection *)ref->user_data)->quic;
}

void connection_init(struct connection *to, const struct options *options) {
  static bool seeded;
  if (!seeded) {
    random_bytes(secret, sizeof secret);
    seeded = true;
  }
  *to = (struct connection){.options = options};
  to->ref = (ngtcp2_crypto_conn_ref){.get_conn = conn_of, .user_data = to};
}

static void write_qlog(void *user_data, uint32_t flags, const void *data, size_t length) {
  struct connection *connection = user_data;
  fwrite(data, 1, length, connection->qlog);
  if (flags & NGTCP2_QLOG_WRITE_FLAG_FIN) {
    fclose(connection->qlog);
    connection->qlog = NULL;
  }
}

static void open_qlog(struct connection *connection, ngtcp2_settings *settings, const ngtcp2_cid *original) {
  char path[512], name[2 * NGTCP2_MAX_CIDLEN + 1] = "";
  for (size_t i = 0; i < original->datalen; i++) {
    sprintf(name + 2 * i, "%02x", original->data[i]);
  }
  snprintf(path, sizeof path, "%s/%s_%s.sqlog", connection->options->qlog, name,
           connection->options->is_server ? "server" : "client");
  connection->qlog = fopen(path, "w");
  if (connection->qlog == NULL) {
    perror(path);
    return;
  }
  settings->qlog.odcid = *original;
  settings->qlog.write = write_qlog;
}

void connection_settings(struct connection *connection, ngtcp2_settings *settings, ngtcp2_transport_params *params,
                         const ngtcp2_cid *original) {
  const struct options *options = connection->options;
  uint64_t window = options->window ? options->window : WINDOW;
  ngtcp2_settings_default(settings);
  settings->initial_ts = now();
  settings->handshake_timeout = IDLE;
  settings->max_tx_udp_payload_size = options->max_payload ? options->max_payload : MAX_PAYLOAD;
  settings->no_tx_udp_payload_size_shaping = options->max_payload > MAX_PAYLOAD;
  if (options->qlog != NULL) {
    open_qlog(connection, settings, original);
  }
  ngtcp2_transport_params_default(params);
  params->initial_max_stream_data_bidi_local = window;
  params->initial_max_stream_data_bidi_remote = window;
  params->initial_max_stream_data_uni = window;
  params->initial_max_data = options->window ? window : 2 * WINDOW;
  params->initial_max_streams_bidi = options->streams ? options->streams : STREAMS;
  params->initial_max_streams_uni = UNI_STREAMS;
  params->max_idle_timeout = IDLE;
  params->active_connection_id_limit = 7;
  if (options->max_payload) {
    params->max_udp_payload_size = options->max_payload;
  }
}

static void fill_random(uint8_t *to, size_t length, const ngtcp2_rand_ctx *context) {
  (void)context;
  random_bytes(to, length);
}

static int new_cid(ngtcp2_conn *quic, ngtcp2_cid *cid, uint8_t *token, size_t length, void *user_data) {
  (void)quic, (void)user_data;
  random_bytes(cid->data, length);
  cid->datalen = length;
  return ngtcp2_crypto_generate_stateless_reset_token(token, secret, sizeof secret, cid) == 0
             ? 0
             : NGTCP2_ERR_CALLBACK_FAILURE;
}

static int stream_has_room(ngtcp2_conn *quic, int64_t id, uint64_t limit, void *user_data, void *stream_data) {
  (void)quic, (void)limit, (void)stream_data;
  struct stream *stream = connection_stream(user_data, id);
  if (stream != NULL) {
    stream->blocked = false;
  }
  return 0;
}

void connection_callbacks(ngtcp2_callbacks *to) {
  *to = (ngtcp2_callbacks){
      .recv_crypto_data = ngtcp2_crypto_recv_crypto_data_cb,
      .encrypt = ngtcp2_crypto_encrypt_cb,
      .decrypt = ngtcp2_crypto_decrypt_cb,
      .hp_mask = ngtcp2_crypto_hp_mask_cb,
      .rand = fill_random,
      .get_new_connection_id = new_cid,
      .update_key = ngtcp2_crypto_update_key_cb,
      .extend_max_stream_data = stream_has_room,
      .delete_crypto_aead_ctx = ngtcp2_crypto_delete_crypto_aead_ctx_cb,
      .delete_crypto_cipher_ctx = ngtcp2_crypto_delete_crypto_cipher_ctx_cb,
      .get_path_challenge_data = ngtcp2_crypto_get_path_challenge_data_cb,
      .version_negotiation = ngtcp2_crypto_version_negotiation_cb,
  };
}

struct stream *connection_stream(struct connection *connection, int64_t id) {
  struct stream *found = connection->streams;
  while (found != NULL && found->id != id) {
    found = found->next;
  }
  return found;
}

struct stream *connection_add_stream(struct connection *connection, int64_t id) {
  struct stream **end = &connection->streams;
  struct stream *made = calloc(1, sizeof *made);
  if (made == NULL) {
    abort();
  }
  made->id = id;
  while (*end != NULL) {
    end = &(*end)->next;
  }
  return *end = made;
}

void connection_remove_stream(struct connection *connection, int64_t id) {
  struct stream **at = &connection->streams;
  while (*at != NULL && (*at)->id != id) {
    at = &(*at)->next;
  }
  struct stream *gone = *at;
  if (gone != NULL) {
    *at = gone->next;
    free(gone->in);
    free(gone->out);
    free(gone);
  }
}

void connection_free(struct connection *connection) {
  while (connection->streams != NULL) {
    connection_remove_stream(connection, connection->streams->id);
  }
  http_free(connection->http);
  ngtcp2_conn_del(connection->quic);
  if (connection->tls != NULL) {
    gnutls_deinit(connection->tls);
  }
}

void stream_append(struct stream *stream, const uint8_t *data, size_t length) {
  if (stream->in_length + length > stream->in_space) {
    stream->in_space = 2 * (stream->in_length + length);
    stream->in = realloc(stream->in, stream->in_space);
    if (stream->in == NULL) {
      abort();
    }
  }
  if (length > 0) {
    memcpy(stream->in + stream->in_length, data, length);
  }
  stream->in_length += length;
}

static struct stream *sendable(struct connection *connection) {
  struct stream *found = connection->streams;
  while (found != NULL && (!found->ready || found->fin_sent || found->blocked)) {
    found = found->next;
  }
  return found;
}

// One step of filling a packet: the bytes of a finished datagram, 0 if there is nothing to send, or
// NGTCP2_ERR_WRITE_MORE if the packet has room left.
static ngtcp2_ssize fill(struct connection *connection, ngtcp2_path *path, ngtcp2_pkt_info *info, uint8_t *to,
                         size_t space, ngtcp2_tstamp time) {
  if (connection->http != NULL) {
    return http_fill(connection->http, path, info, to, space, time);
  }
  struct stream *stream = sendable(connection);
  ngtcp2_vec rest = {0};
  ngtcp2_ssize taken = -1;
  uint32_t flags = NGTCP2_WRITE_STREAM_FLAG_NONE;
  if (stream != NULL) {
    rest = (ngtcp2_vec){stream->out + stream->out_offset, stream->out_length - stream->out_offset};
    flags = NGTCP2_WRITE_STREAM_FLAG_MORE | NGTCP2_WRITE_STREAM_FLAG_FIN;
  }
  ngtcp2_ssize result = ngtcp2_conn_writev_stream(connection->quic, path, info, to, space, &taken, flags,
                                                  stream ? stream->id : -1, &rest, stream ? 1 : 0, time);
  if (result == NGTCP2_ERR_STREAM_DATA_BLOCKED) {
    stream->blocked = true;
    return NGTCP2_ERR_WRITE_MORE;
  }
  if (result == NGTCP2_ERR_STREAM_SHUT_WR || result == NGTCP2_ERR_STREAM_NOT_FOUND) {
    stream->fin_sent = true;
    return NGTCP2_ERR_WRITE_MORE;
  }
  if (stream != NULL && taken >= 0) {
    stream->out_offset += (size_t)taken;
    stream->fin_sent = stream->out_offset == stream->out_length;
    connection_moved(connection, (size_t)taken);
  }
  return result;
}

int connection_send(struct connection *connection) {
  static uint8_t datagram[MAX_DATAGRAM];
  ngtcp2_tstamp time = now();
  size_t quantum = ngtcp2_conn_get_send_quantum(connection->quic), sent = 0;
  ngtcp2_path_storage path;
  ngtcp2_pkt_info info;
  ngtcp2_path_storage_zero(&path);
  // Connection-level credit may have come since.
  for (struct stream *each = connection->streams; each != NULL; each = each->next) {
    each->blocked = false;
  }
  while (sent < quantum || quantum == 0) {
    ngtcp2_ssize length = fill(connection, &path.path, &info, datagram,
                               ngtcp2_conn_get_max_tx_udp_payload_size(connection->quic), time);
    if (length == NGTCP2_ERR_WRITE_MORE) {
      continue;
    }
    if (length < 0) {
      return (int)length;
    }
    if (length == 0) {
      break;
    }
    int fd = connection->socket_of(connection, &path.path);
    socket_send(fd, &path.path.remote, &info, datagram, (size_t)length);
    sent += (size_t)length;
  }
  ngtcp2_conn_update_pkt_tx_time(connection->quic, time);
  return 0;
}

void connection_moved(struct connection *connection, size_t bytes) {
  connection->moved += bytes;
  if (!connection->options->key_update || connection->moved < KEY_UPDATE_AFTER) {
    return;
  }
  // Refused while the last update isn't confirmed: the next bytes try again.
  if (ngtcp2_conn_initiate_key_update(connection->quic, now()) == 0) {
    connection->moved = 0;
    connection->key_updates++;
    fprintf(stderr, "key update %u\n", connection->key_updates);
  }
}

void connection_close(struct connection *connection, int error) {
  static uint8_t datagram[MAX_DATAGRAM];
  ngtcp2_connection_close_error cause;
  ngtcp2_path_storage path;
  ngtcp2_pkt_info info;
  ngtcp2_path_storage_zero(&path);
  ngtcp2_connection_close_error_default(&cause);
  if (error == 0) {
    uint64_t code = connection->options->http ? H3_NO_ERROR : 0;
    ngtcp2_connection_close_error_set_application_error(&cause, code, NULL, 0);
  } else if (connection->http_error != 0) {
    ngtcp2_connection_close_error_set_application_error(&cause, connection->http_error, NULL, 0);
  } else if (error == NGTCP2_ERR_CRYPTO) {
    ngtcp2_connection_close_error_set_transport_error_tls_alert(
        &cause, ngtcp2_conn_get_tls_alert(connection->quic), NULL, 0);
  } else {
    ngtcp2_connection_close_error_set_transport_error_liberr(&cause, error, NULL, 0);
  }
  ngtcp2_ssize length = ngtcp2_conn_write_connection_close(connection->quic, &path.path, &info, datagram,
                                                           sizeof datagram, &cause, now());
  if (length > 0) {
    int fd = connection->socket_of(connection, &path.path);
    socket_send(fd, &path.path.remote, &info, datagram, (size_t)length);
  }
}

void connection_ending(struct connection *connection, int error, char *to, size_t length) {
  ngtcp2_connection_close_error cause;
  if (error != NGTCP2_ERR_DRAINING) {
    snprintf(to, length, "%s, TLS alert %u", ngtcp2_strerror(error),
             ngtcp2_conn_get_tls_alert(connection->quic));
    return;
  }
  ngtcp2_conn_get_connection_close_error(connection->quic, &cause);
  bool application = cause.type == NGTCP2_CONNECTION_CLOSE_ERROR_CODE_TYPE_APPLICATION;
  snprintf(to, length, "0x%llx of the %s, frame 0x%llx, '%.*s'", (unsigned long long)cause.error_code,
           application ? "application" : "transport", (unsigned long long)cause.frame_type, (int)cause.reasonlen,
           cause.reason ? (const char *)cause.reason : "");
}
