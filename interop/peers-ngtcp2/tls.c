#include "tls.h"

#include <arpa/inet.h>
#include <ngtcp2/ngtcp2_crypto_gnutls.h>
#include <stdio.h>
#include <string.h>

#include "options.h"

// The largest that TLS can say; QUIC needs this value (RFC 9001, section 4.6.1).
#define EARLY_DATA 0xffffffffu

static struct tls *shared;

static bool failed(int result, const char *what) {
  if (result < 0) {
    fprintf(stderr, "%s: %s\n", what, gnutls_strerror(result));
  }
  return result < 0;
}

// A test program that runs for seconds and whose answers change nothing takes replays.
static int remember_nothing(void *data, time_t expires, const gnutls_datum_t *key, const gnutls_datum_t *value) {
  (void)data, (void)expires, (void)key, (void)value;
  return 0;
}

bool tls_init(struct tls *to, const struct options *options) {
  *to = (struct tls){.options = options};
  shared = to;
  if (failed(gnutls_certificate_allocate_credentials(&to->credentials), "credentials")) {
    return false;
  }
  if (!options->is_server) {
    return !failed(gnutls_certificate_set_x509_trust_file(to->credentials, options->ca, GNUTLS_X509_FMT_PEM),
                   options->ca);
  }
  if (failed(gnutls_certificate_set_x509_key_file(to->credentials, options->cert, options->key,
                                                  GNUTLS_X509_FMT_PEM),
             options->cert) ||
      failed(gnutls_session_ticket_key_generate(&to->ticket_key), "ticket key") ||
      failed(gnutls_anti_replay_init(&to->anti_replay), "anti-replay")) {
    return false;
  }
  gnutls_anti_replay_set_add_function(to->anti_replay, remember_nothing);
  return true;
}

static const char *ciphers(const char *suite) {
  if (strcmp(suite, "aes128") == 0) {
    return "+AES-128-GCM";
  }
  if (strcmp(suite, "aes256") == 0) {
    return "+AES-256-GCM";
  }
  if (strcmp(suite, "chacha20") == 0) {
    return "+CHACHA20-POLY1305";
  }
  return "+AES-128-GCM:+AES-256-GCM:+CHACHA20-POLY1305";
}

static int write_secret(gnutls_session_t session, const char *label, const gnutls_datum_t *secret) {
  gnutls_datum_t random, server, hex_random = {0}, hex_secret = {0};
  FILE *file = fopen(shared->options->keylog, "a");
  gnutls_session_get_random(session, &random, &server);
  if (file != NULL && gnutls_hex_encode2(&random, &hex_random) == 0 &&
      gnutls_hex_encode2(secret, &hex_secret) == 0) {
    fprintf(file, "%s %s %s\n", label, hex_random.data, hex_secret.data);
  }
  gnutls_free(hex_random.data);
  gnutls_free(hex_secret.data);
  if (file != NULL) {
    fclose(file);
  }
  return 0;
}

static int keep_ticket(gnutls_session_t session, unsigned type, unsigned when, unsigned incoming,
                       const gnutls_datum_t *message) {
  (void)type, (void)message;
  if (incoming && when == GNUTLS_HOOK_POST) {
    gnutls_free(shared->ticket.data);
    shared->ticket = (gnutls_datum_t){0};
    gnutls_session_get_data2(session, &shared->ticket);
  }
  return 0;
}

static bool configure_server(struct tls *tls, gnutls_session_t session) {
  if (ngtcp2_crypto_gnutls_configure_server_session(session) != 0 ||
      failed(gnutls_session_ticket_enable_server(session, &tls->ticket_key), "tickets")) {
    return false;
  }
  if (tls->options->zero_rtt) {
    gnutls_anti_replay_enable(session, tls->anti_replay);
    gnutls_record_set_max_early_data_size(session, EARLY_DATA);
  }
  return true;
}

static bool configure_client(struct tls *tls, gnutls_session_t session, const char *name) {
  struct in6_addr number;
  if (ngtcp2_crypto_gnutls_configure_client_session(session) != 0) {
    return false;
  }
  if (inet_pton(AF_INET, name, &number) != 1 && inet_pton(AF_INET6, name, &number) != 1) {
    gnutls_server_name_set(session, GNUTLS_NAME_DNS, name, strlen(name));
  }
  gnutls_session_set_verify_cert(session, name, 0);
  gnutls_handshake_set_hook_function(session, GNUTLS_HANDSHAKE_NEW_SESSION_TICKET, GNUTLS_HOOK_POST, keep_ticket);
  return tls->ticket.size == 0 ||
         !failed(gnutls_session_set_data(session, tls->ticket.data, tls->ticket.size), "ticket");
}

gnutls_session_t tls_session(struct tls *tls, ngtcp2_crypto_conn_ref *ref, const char *name) {
  bool server = tls->options->is_server;
  gnutls_session_t session;
  char priority[256];
  // The server's ticket goes out when the handshake is over; see connection.c.
  unsigned flags = server ? GNUTLS_SERVER | GNUTLS_NO_AUTO_SEND_TICKET : GNUTLS_CLIENT;
  flags |= GNUTLS_NO_END_OF_EARLY_DATA;
  flags |= tls->options->zero_rtt ? GNUTLS_ENABLE_EARLY_DATA : 0;
  if (failed(gnutls_init(&session, flags), "session")) {
    return NULL;
  }
  snprintf(priority, sizeof priority,
           "%%DISABLE_TLS13_COMPAT_MODE:NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:%s:-GROUP-ALL:"
           "+GROUP-X25519:+GROUP-SECP256R1:+GROUP-SECP384R1",
           ciphers(tls->options->suite));
  const char *name_of_protocol = tls->options->http ? ALPN_HTTP : ALPN;
  gnutls_datum_t protocol = {(unsigned char *)name_of_protocol, (unsigned)strlen(name_of_protocol)};
  gnutls_session_set_ptr(session, ref);
  if (failed(gnutls_priority_set_direct(session, priority, NULL), "priority") ||
      failed(gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, tls->credentials), "credentials") ||
      failed(gnutls_alpn_set_protocols(session, &protocol, 1, GNUTLS_ALPN_MANDATORY), "ALPN") ||
      !(server ? configure_server(tls, session) : configure_client(tls, session, name))) {
    gnutls_deinit(session);
    return NULL;
  }
  if (tls->options->keylog != NULL) {
    gnutls_session_set_keylog_function(session, write_secret);
  }
  return session;
}

bool tls_early_accepted(gnutls_session_t session) {
  return (gnutls_session_get_flags(session) & GNUTLS_SFLAGS_EARLY_DATA) != 0;
}

bool tls_early_possible(gnutls_session_t session) {
  return gnutls_record_get_max_early_data_size(session) > 0;
}
