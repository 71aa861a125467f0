// UDP sockets with ECN, and clocks. Nothing here knows QUIC's packets.
#ifndef NET_H
#define NET_H

#include <ngtcp2/ngtcp2.h>
#include <stdbool.h>
#include <sys/socket.h>

#define MAX_DATAGRAM 65536

struct address {
  struct sockaddr_storage storage;
  socklen_t length;
};

// Of CLOCK_MONOTONIC, ns.
ngtcp2_tstamp now(void);
void random_bytes(uint8_t *to, size_t length);

// "host:port" or "[host]:port" with numbers; false if it isn't that.
bool address_parse(struct address *to, const char *text);
// The local address that packets to `remote` leave from, with port 0.
bool address_towards(struct address *to, const struct address *remote);

// A bound, non-blocking socket; `local` becomes what it is bound to. -1 on an error.
int socket_open(struct address *local);
// The length of one datagram, or -1 if there is none.
ssize_t socket_receive(int fd, uint8_t *to, struct address *from, ngtcp2_pkt_info *info);
// What can't be sent is lost, as on any network.
void socket_send(int fd, const ngtcp2_addr *to, const ngtcp2_pkt_info *info, const uint8_t *data, size_t length);

#endif
