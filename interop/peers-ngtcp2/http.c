#include "http.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connection.h"
#include "content.h"

#define MAX_PARTS 16

static struct http *http_of(void *user_data) {
  return ((struct connection *)user_data)->http;
}

struct exchange *http_find(struct http *http, int64_t id) {
  struct exchange *found = http ? http->exchanges : NULL;
  while (found != NULL && found->id != id) {
    found = found->next;
  }
  return found;
}

struct exchange *http_add(struct http *http, int64_t id) {
  struct exchange *made = calloc(1, sizeof *made);
  if (made == NULL) {
    abort();
  }
  made->id = id;
  made->next = http->exchanges;
  return http->exchanges = made;
}

static void remove_exchange(struct http *http, struct exchange *gone) {
  struct exchange **at = &http->exchanges;
  while (*at != gone) {
    at = &(*at)->next;
  }
  *at = gone->next;
  while (gone->chunks != NULL) {
    struct chunk *next = gone->chunks->next;
    free(gone->chunks);
    gone->chunks = next;
  }
  free(gone->large);
  free(gone);
}

struct chunk *exchange_append(struct http *http, struct exchange *exchange, size_t length) {
  struct chunk *made = malloc(sizeof *made + length), **end = &exchange->chunks;
  if (made == NULL) {
    abort();
  }
  made->next = NULL;
  made->length = length;
  while (*end != NULL) {
    end = &(*end)->next;
  }
  *end = made;
  exchange->unsent = exchange->unsent ? exchange->unsent : made;
  nghttp3_conn_resume_stream(http->h3, exchange->id);
  return made;
}

void exchange_complete(struct http *http, struct exchange *exchange) {
  exchange->complete = true;
  nghttp3_conn_resume_stream(http->h3, exchange->id);
}

nghttp3_nv http_field(const char *name, const char *value) {
  return (nghttp3_nv){(uint8_t *)name, (uint8_t *)value, strlen(name), strlen(value), NGHTTP3_NV_FLAG_NONE};
}

static nghttp3_ssize read_content(nghttp3_conn *h3, int64_t id, nghttp3_vec *parts, size_t space, uint32_t *flags,
                                  void *user_data, void *stream_data) {
  (void)space, (void)stream_data;
  struct exchange *exchange = http_find(http_of(user_data), id);
  nghttp3_ssize count = 0;
  if (exchange == NULL) {
    return NGHTTP3_ERR_CALLBACK_FAILURE;
  }
  if (exchange->unsent != NULL) {
    parts[count++] = (nghttp3_vec){exchange->unsent->data, exchange->unsent->length};
    exchange->unsent = exchange->endless ? exchange->unsent : exchange->unsent->next;
  }
  if (exchange->unsent == NULL && exchange->complete) {
    *flags |= NGHTTP3_DATA_FLAG_EOF;
    if (exchange->own_trailer[0] != 0) {
      nghttp3_nv field = http_field("x-trailer", exchange->own_trailer);
      *flags |= NGHTTP3_DATA_FLAG_NO_END_STREAM;
      return nghttp3_conn_submit_trailers(h3, id, &field, 1) == 0 ? count : NGHTTP3_ERR_CALLBACK_FAILURE;
    }
  } else if (count == 0) {
    return NGHTTP3_ERR_WOULDBLOCK;
  }
  return count;
}

const nghttp3_data_reader http_reader = {.read_data = read_content};

// --- What nghttp3 tells.

static int begin_headers(nghttp3_conn *h3, int64_t id, void *user_data, void *stream_data) {
  (void)h3, (void)stream_data;
  struct http *http = http_of(user_data);
  if (http_find(http, id) == NULL) {
    http_add(http, id);
  }
  return 0;
}

// Where a field's value is kept, if it is one of those that matter.
static char *place_of(struct exchange *exchange, const char *name, size_t *space) {
  struct {
    const char *name;
    char *place;
    size_t space;
  } known[] = {
      {":method", exchange->method, sizeof exchange->method}, {":path", exchange->path, sizeof exchange->path},
      {"x-size", exchange->size, sizeof exchange->size},      {"x-turn", exchange->turn, sizeof exchange->turn},
      {"x-digest", exchange->digest, sizeof exchange->digest}, {"x-count", exchange->count, sizeof exchange->count},
      {SMALL "49", exchange->last, sizeof exchange->last},
      {"x-trailer", exchange->trailer, sizeof exchange->trailer},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
    if (strcmp(known[i].name, name) == 0) {
      *space = known[i].space;
      return known[i].place;
    }
  }
  return NULL;
}

static int receive_header(nghttp3_conn *h3, int64_t id, int32_t token, nghttp3_rcbuf *name_buffer,
                          nghttp3_rcbuf *value_buffer, uint8_t flags, void *user_data, void *stream_data) {
  (void)h3, (void)token, (void)flags, (void)stream_data;
  struct exchange *exchange = http_find(http_of(user_data), id);
  nghttp3_vec name = nghttp3_rcbuf_get_buf(name_buffer), value = nghttp3_rcbuf_get_buf(value_buffer);
  char text[64];
  size_t space;
  if (exchange == NULL) {
    return 0;
  }
  snprintf(text, sizeof text, "%.*s", (int)name.len, (const char *)name.base);
  if (strcmp(text, ":status") == 0) {
    exchange->status = (unsigned)strtoul((const char *)value.base, NULL, 10);
  } else if (strcmp(text, "x-large") == 0 && exchange->large == NULL) {
    exchange->large = malloc(value.len + 1);
    if (exchange->large == NULL) {
      abort();
    }
    memcpy(exchange->large, value.base, value.len);
    exchange->large_length = value.len;
  }
  exchange->small += strncmp(text, SMALL, sizeof SMALL - 1) == 0;
  char *place = place_of(exchange, text, &space);
  if (place != NULL) {
    snprintf(place, space, "%.*s", (int)value.len, (const char *)value.base);
  }
  return 0;
}

static int end_headers(nghttp3_conn *h3, int64_t id, int end, void *user_data, void *stream_data) {
  (void)h3, (void)end, (void)stream_data;
  struct http *http = http_of(user_data);
  struct exchange *exchange = http_find(http, id);
  return http->respond && exchange ? http->respond(http, exchange) : 0;
}

static int receive_data(nghttp3_conn *h3, int64_t id, const uint8_t *data, size_t length, void *user_data,
                        void *stream_data) {
  (void)h3, (void)stream_data;
  struct http *http = http_of(user_data);
  struct exchange *exchange = http_find(http, id);
  ngtcp2_conn_extend_max_stream_offset(http->connection->quic, id, length);
  ngtcp2_conn_extend_max_offset(http->connection->quic, length);
  if (exchange != NULL) {
    exchange->bytes += length;
    exchange->crc = checksum(exchange->crc, data, length);
    if (exchange->echo) {
      memcpy(exchange_append(http, exchange, length)->data, data, length);
    }
  }
  return 0;
}

static int deferred_consume(nghttp3_conn *h3, int64_t id, size_t length, void *user_data, void *stream_data) {
  (void)h3, (void)stream_data;
  ngtcp2_conn *quic = http_of(user_data)->connection->quic;
  ngtcp2_conn_extend_max_stream_offset(quic, id, length);
  ngtcp2_conn_extend_max_offset(quic, length);
  return 0;
}

static int end_stream(nghttp3_conn *h3, int64_t id, void *user_data, void *stream_data) {
  (void)h3, (void)stream_data;
  struct http *http = http_of(user_data);
  struct exchange *exchange = http_find(http, id);
  if (exchange != NULL) {
    exchange->over = true;
    if (exchange->echo) {
      memcpy(exchange->own_trailer, exchange->trailer, sizeof exchange->own_trailer);
      exchange_complete(http, exchange);
    }
  }
  return 0;
}

static int stop_sending(nghttp3_conn *h3, int64_t id, uint64_t code, void *user_data, void *stream_data) {
  (void)h3, (void)stream_data;
  int result = ngtcp2_conn_shutdown_stream_read(http_of(user_data)->connection->quic, id, code);
  return result == 0 ? 0 : NGHTTP3_ERR_CALLBACK_FAILURE;
}

static int reset_stream(nghttp3_conn *h3, int64_t id, uint64_t code, void *user_data, void *stream_data) {
  (void)h3, (void)stream_data;
  int result = ngtcp2_conn_shutdown_stream_write(http_of(user_data)->connection->quic, id, code);
  return result == 0 ? 0 : NGHTTP3_ERR_CALLBACK_FAILURE;
}

struct http *http_new(struct connection *connection, int (*respond)(struct http *, struct exchange *)) {
  static const nghttp3_callbacks functions = {
      .recv_data = receive_data,
      .deferred_consume = deferred_consume,
      .begin_headers = begin_headers,
      .recv_header = receive_header,
      .end_headers = end_headers,
      .recv_trailer = receive_header,
      .stop_sending = stop_sending,
      .end_stream = end_stream,
      .reset_stream = reset_stream,
  };
  nghttp3_settings settings;
  int64_t control, encoder, decoder;
  ngtcp2_conn *quic = connection->quic;
  struct http *http = calloc(1, sizeof *http);
  nghttp3_settings_default(&settings);
  settings.qpack_max_dtable_capacity = 4096;
  settings.qpack_encoder_max_dtable_capacity = 4096;
  settings.qpack_blocked_streams = 16;
  if (http == NULL || ngtcp2_conn_get_streams_uni_left(quic) < 3) {
    free(http);
    return NULL;
  }
  http->connection = connection;
  http->respond = respond;
  int result = respond ? nghttp3_conn_server_new(&http->h3, &functions, &settings, NULL, connection)
                       : nghttp3_conn_client_new(&http->h3, &functions, &settings, NULL, connection);
  if (respond && result == 0) {
    nghttp3_conn_set_max_client_streams_bidi(http->h3,
                                             ngtcp2_conn_get_local_transport_params(quic)->initial_max_streams_bidi);
  }
  if (result != 0 || ngtcp2_conn_open_uni_stream(quic, &control, NULL) != 0 ||
      ngtcp2_conn_open_uni_stream(quic, &encoder, NULL) != 0 ||
      ngtcp2_conn_open_uni_stream(quic, &decoder, NULL) != 0 ||
      nghttp3_conn_bind_control_stream(http->h3, control) != 0 ||
      nghttp3_conn_bind_qpack_streams(http->h3, encoder, decoder) != 0) {
    http_free(http);
    return NULL;
  }
  return http;
}

void http_free(struct http *http) {
  if (http != NULL) {
    while (http->exchanges != NULL) {
      remove_exchange(http, http->exchanges);
    }
    nghttp3_conn_del(http->h3);
    free(http);
  }
}

// --- What ngtcp2 tells.

static int receive(ngtcp2_conn *quic, uint32_t flags, int64_t id, uint64_t offset, const uint8_t *data,
                   size_t length, void *user_data, void *stream_data) {
  (void)offset, (void)stream_data;
  struct connection *connection = user_data;
  if (connection->http == NULL && (connection->http = http_new(connection, connection->respond)) == NULL) {
    return NGTCP2_ERR_CALLBACK_FAILURE;
  }
  nghttp3_ssize used = nghttp3_conn_read_stream(connection->http->h3, id, data, length,
                                                (flags & NGTCP2_STREAM_DATA_FLAG_FIN) != 0);
  if (used < 0) {
    fprintf(stderr, "nghttp3: %s on stream %lld\n", nghttp3_strerror((int)used), (long long)id);
    connection->http_error = nghttp3_err_infer_quic_app_error_code((int)used);
    return NGTCP2_ERR_CALLBACK_FAILURE;
  }
  ngtcp2_conn_extend_max_stream_offset(quic, id, (uint64_t)used);
  ngtcp2_conn_extend_max_offset(quic, (uint64_t)used);
  return 0;
}

static int acknowledged(ngtcp2_conn *quic, int64_t id, uint64_t offset, uint64_t length, void *user_data,
                        void *stream_data) {
  (void)quic, (void)offset, (void)stream_data;
  struct http *http = http_of(user_data);
  int result = http ? nghttp3_conn_add_ack_offset(http->h3, id, length) : 0;
  return result == 0 ? 0 : NGTCP2_ERR_CALLBACK_FAILURE;
}

static int has_room(ngtcp2_conn *quic, int64_t id, uint64_t limit, void *user_data, void *stream_data) {
  (void)quic, (void)limit, (void)stream_data;
  struct http *http = http_of(user_data);
  return http && nghttp3_conn_unblock_stream(http->h3, id) != 0 ? NGTCP2_ERR_CALLBACK_FAILURE : 0;
}

static int more_requests(ngtcp2_conn *quic, uint64_t limit, void *user_data) {
  (void)quic;
  struct http *http = http_of(user_data);
  if (http != NULL && http->respond != NULL) {
    nghttp3_conn_set_max_client_streams_bidi(http->h3, limit);
  }
  return 0;
}

static int peer_reset(ngtcp2_conn *quic, int64_t id, uint64_t size, uint64_t code, void *user_data,
                      void *stream_data) {
  (void)quic, (void)size, (void)stream_data;
  struct http *http = http_of(user_data);
  struct exchange *exchange = http_find(http, id);
  if (exchange != NULL) {
    exchange->reset = true;
    exchange->reset_code = code;
  }
  return http && nghttp3_conn_shutdown_stream_read(http->h3, id) != 0 ? NGTCP2_ERR_CALLBACK_FAILURE : 0;
}

static int closed(ngtcp2_conn *quic, uint32_t flags, int64_t id, uint64_t code, void *user_data, void *stream_data) {
  (void)stream_data;
  struct http *http = http_of(user_data);
  struct exchange *exchange = http_find(http, id);
  bool has_code = (flags & NGTCP2_STREAM_CLOSE_FLAG_APP_ERROR_CODE_SET) != 0;
  if (http != NULL) {
    nghttp3_conn_close_stream(http->h3, id, has_code ? code : H3_NO_ERROR);
    // A client still looks at its responses.
    if (http->respond != NULL && exchange != NULL) {
      remove_exchange(http, exchange);
    }
  }
  if (!ngtcp2_conn_is_local_stream(quic, id)) {
    if (ngtcp2_is_bidi_stream(id)) {
      ngtcp2_conn_extend_max_streams_bidi(quic, 1);
    } else {
      ngtcp2_conn_extend_max_streams_uni(quic, 1);
    }
  }
  return 0;
}

void http_callbacks(ngtcp2_callbacks *to) {
  to->recv_stream_data = receive;
  to->acked_stream_data_offset = acknowledged;
  to->extend_max_stream_data = has_room;
  to->extend_max_remote_streams_bidi = more_requests;
  to->stream_open = NULL;
  to->stream_reset = peer_reset;
  to->stream_close = closed;
}

ngtcp2_ssize http_fill(struct http *http, ngtcp2_path *path, ngtcp2_pkt_info *info, uint8_t *to, size_t space,
                       ngtcp2_tstamp time) {
  nghttp3_vec parts[MAX_PARTS];
  ngtcp2_vec same[MAX_PARTS];
  int64_t id = -1;
  int end = 0;
  ngtcp2_conn *quic = http->connection->quic;
  nghttp3_ssize count = 0;
  if (ngtcp2_conn_get_max_data_left(quic) > 0) {
    count = nghttp3_conn_writev_stream(http->h3, &id, &end, parts, MAX_PARTS);
  }
  if (count < 0) {
    fprintf(stderr, "nghttp3: %s\n", nghttp3_strerror((int)count));
    return NGTCP2_ERR_CALLBACK_FAILURE;
  }
  for (nghttp3_ssize i = 0; i < count; i++) {
    same[i] = (ngtcp2_vec){parts[i].base, parts[i].len};
  }
  ngtcp2_ssize taken = -1;
  uint32_t flags = NGTCP2_WRITE_STREAM_FLAG_MORE | (end ? NGTCP2_WRITE_STREAM_FLAG_FIN : 0);
  ngtcp2_ssize result = ngtcp2_conn_writev_stream(quic, path, info, to, space, &taken, flags, id, same,
                                                  (size_t)count, time);
  if (result == NGTCP2_ERR_STREAM_DATA_BLOCKED) {
    nghttp3_conn_block_stream(http->h3, id);
    return NGTCP2_ERR_WRITE_MORE;
  }
  if (result == NGTCP2_ERR_STREAM_SHUT_WR || result == NGTCP2_ERR_STREAM_NOT_FOUND) {
    struct exchange *exchange = http_find(http, id);
    nghttp3_conn_shutdown_stream_write(http->h3, id);
    if (exchange != NULL && exchange->endless) {
      // All that ngtcp2 0.12 tells of STOP_SENDING; it keeps the code to itself.
      exchange->endless = false;
      printf("cancelled\n");
    }
    return NGTCP2_ERR_WRITE_MORE;
  }
  if (id >= 0 && taken >= 0 && nghttp3_conn_add_write_offset(http->h3, id, (size_t)taken) != 0) {
    return NGTCP2_ERR_CALLBACK_FAILURE;
  }
  return result;
}
