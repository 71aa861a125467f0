// Answers the requests of the HTTP cases.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "content.h"
#include "http.h"
#include "roles.h"

// Headers of the `headers` case at most.
#define MAX_FIELDS 256

static int answer(struct http *http, struct exchange *exchange, const char *status, bool has_content) {
  nghttp3_nv field = http_field(":status", status);
  return nghttp3_conn_submit_response(http->h3, exchange->id, &field, 1, has_content ? &http_reader : NULL);
}

static int answer_headers(struct http *http, struct exchange *exchange) {
  char names[MAX_FIELDS][32], values[MAX_FIELDS][48], digest[16], count[16];
  size_t size = strtoul(exchange->size, NULL, 10), length = 0;
  if (size > LONGEST || exchange->small > MAX_FIELDS - 4) {
    return answer(http, exchange, "400", false);
  }
  nghttp3_nv fields[MAX_FIELDS];
  uint8_t *large = malloc(size + 1);
  if (large == NULL) {
    abort();
  }
  letters(large, size);
  snprintf(digest, sizeof digest, "%u", checksum(0, exchange->large, exchange->large_length));
  snprintf(count, sizeof count, "%u", exchange->small);
  fields[length++] = http_field(":status", "200");
  fields[length++] = (nghttp3_nv){(uint8_t *)"x-large", large, 7, size, NGHTTP3_NV_FLAG_NONE};
  fields[length++] = http_field("x-digest", digest);
  fields[length++] = http_field("x-count", count);
  for (unsigned i = 0; i < exchange->small; i++) {
    snprintf(names[i], sizeof names[i], SMALL "%u", i);
    snprintf(values[i], sizeof values[i], "value %u of turn %s", i, exchange->turn);
    fields[length++] = http_field(names[i], values[i]);
  }
  int result = nghttp3_conn_submit_response(http->h3, exchange->id, fields, length, NULL);
  free(large);
  return result;
}

int http_respond(struct http *http, struct exchange *exchange) {
  const char *path = exchange->path;
  size_t size;
  char rest;
  printf("request %s %s\n", exchange->method, path);
  if (strcmp(exchange->method, "POST") == 0) {
    exchange->echo = true;
    return answer(http, exchange, "200", true);
  }
  if (strcmp(path, "/headers") == 0) {
    return answer_headers(http, exchange);
  }
  if (strcmp(path, "/slow") == 0) {
    exchange->endless = true;
    memset(exchange_append(http, exchange, PIECE)->data, '.', PIECE);
    return answer(http, exchange, "200", true);
  }
  if (strcmp(path, "/goaway") == 0) {
    memcpy(exchange_append(http, exchange, 5)->data, "going", 5);
    exchange_complete(http, exchange);
    int result = answer(http, exchange, "200", true);
    result = result ? result : nghttp3_conn_submit_shutdown_notice(http->h3);
    return result ? result : nghttp3_conn_shutdown(http->h3);
  }
  if (sscanf(path, "/bytes/%zu%c", &size, &rest) != 1 || size > MOST) {
    return answer(http, exchange, "404", false);
  }
  if (size > 0) {
    pattern(exchange_append(http, exchange, size)->data, 0, size);
  }
  exchange_complete(http, exchange);
  return answer(http, exchange, "200", size > 0);
}
