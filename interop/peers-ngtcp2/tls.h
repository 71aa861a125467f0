// GnuTLS as ngtcp2 needs it: credentials, sessions, resumption.
#ifndef TLS_H
#define TLS_H

#include <gnutls/gnutls.h>
#include <ngtcp2/ngtcp2_crypto.h>
#include <stdbool.h>

struct options;

// What a program's sessions share.
struct tls {
  const struct options *options;
  gnutls_certificate_credentials_t credentials;
  gnutls_datum_t ticket_key;
  gnutls_anti_replay_t anti_replay;
  // The client's last ticket; empty if there is none.
  gnutls_datum_t ticket;
};

bool tls_init(struct tls *to, const struct options *options);
// A session for a connection that `ref` leads to; NULL on an error. `name` is the server's, for a client.
gnutls_session_t tls_session(struct tls *tls, ngtcp2_crypto_conn_ref *ref, const char *name);
bool tls_early_accepted(gnutls_session_t session);
// Whether a client's ticket allows 0-RTT.
bool tls_early_possible(gnutls_session_t session);

#endif
