#include "net.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define SOCKET_BUFFER (4 << 20)

ngtcp2_tstamp now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (ngtcp2_tstamp)time.tv_sec * NGTCP2_SECONDS + (ngtcp2_tstamp)time.tv_nsec;
}

void random_bytes(uint8_t *to, size_t length) {
  if (getrandom(to, length, 0) != (ssize_t)length) {
    perror("getrandom");
    exit(1);
  }
}

bool address_parse(struct address *to, const char *text) {
  char host[128];
  const char *colon = strrchr(text, ':');
  if (colon == NULL) {
    return false;
  }
  size_t length = (size_t)(colon - text);
  if (length >= 2 && text[0] == '[' && text[length - 1] == ']') {
    text++;
    length -= 2;
  }
  if (length >= sizeof host) {
    return false;
  }
  memcpy(host, text, length);
  host[length] = 0;
  struct addrinfo hints = {.ai_socktype = SOCK_DGRAM}, *found;
  if (getaddrinfo(host, colon + 1, &hints, &found) != 0) {
    return false;
  }
  memcpy(&to->storage, found->ai_addr, found->ai_addrlen);
  to->length = found->ai_addrlen;
  freeaddrinfo(found);
  return true;
}

bool address_towards(struct address *to, const struct address *remote) {
  int probe = socket(remote->storage.ss_family, SOCK_DGRAM, 0);
  to->length = sizeof to->storage;
  bool known = probe >= 0 && connect(probe, (const struct sockaddr *)&remote->storage, remote->length) == 0 &&
               getsockname(probe, (struct sockaddr *)&to->storage, &to->length) == 0;
  if (probe >= 0) {
    close(probe);
  }
  if (to->storage.ss_family == AF_INET6) {
    ((struct sockaddr_in6 *)&to->storage)->sin6_port = 0;
  } else {
    ((struct sockaddr_in *)&to->storage)->sin_port = 0;
  }
  return known;
}

int socket_open(struct address *local) {
  bool v6 = local->storage.ss_family == AF_INET6;
  int fd = socket(local->storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK, 0);
  int on = 1, size = SOCKET_BUFFER;
  // No fragments: path MTU discovery relies on it.
  int whole = v6 ? IPV6_PMTUDISC_PROBE : IP_PMTUDISC_PROBE;
  if (fd < 0) {
    return -1;
  }
  setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
  setsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_RECVTCLASS : IP_RECVTOS, &on, sizeof on);
  setsockopt(fd, v6 ? IPPROTO_IPV6 : IPPROTO_IP, v6 ? IPV6_MTU_DISCOVER : IP_MTU_DISCOVER, &whole, sizeof whole);
  if (bind(fd, (struct sockaddr *)&local->storage, local->length) != 0 ||
      getsockname(fd, (struct sockaddr *)&local->storage, &local->length) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

ssize_t socket_receive(int fd, uint8_t *to, struct address *from, ngtcp2_pkt_info *info) {
  struct iovec space = {to, MAX_DATAGRAM};
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control;
  struct msghdr message = {.msg_name = &from->storage,
                           .msg_namelen = sizeof from->storage,
                           .msg_iov = &space,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = sizeof control};
  ssize_t length;
  // An error is a port that was closed at the other end: the next datagram may be a good one.
  for (int tries = 0; (length = recvmsg(fd, &message, 0)) < 0 && tries < 2; tries++) {
  }
  from->length = message.msg_namelen;
  info->ecn = NGTCP2_ECN_NOT_ECT;
  if (length < 0) {
    return -1;
  }
  for (struct cmsghdr *part = CMSG_FIRSTHDR(&message); part != NULL; part = CMSG_NXTHDR(&message, part)) {
    bool v4 = part->cmsg_level == IPPROTO_IP && part->cmsg_type == IP_TOS;
    bool v6 = part->cmsg_level == IPPROTO_IPV6 && part->cmsg_type == IPV6_TCLASS;
    if (v4 || v6) {
      // One byte or an int; the marks are in the first byte of either here (little endian).
      info->ecn = *CMSG_DATA(part) & NGTCP2_ECN_MASK;
    }
  }
  return length;
}

void socket_send(int fd, const ngtcp2_addr *to, const ngtcp2_pkt_info *info, const uint8_t *data, size_t length) {
  struct iovec content = {(uint8_t *)data, length};
  union {
    struct cmsghdr header;
    char bytes[CMSG_SPACE(sizeof(int))];
  } control = {0};
  struct msghdr message = {.msg_name = to->addr,
                           .msg_namelen = to->addrlen,
                           .msg_iov = &content,
                           .msg_iovlen = 1,
                           .msg_control = &control,
                           .msg_controllen = sizeof control};
  int mark = (int)info->ecn;
  bool v6 = to->addr->sa_family == AF_INET6;
  struct cmsghdr *part = CMSG_FIRSTHDR(&message);
  part->cmsg_level = v6 ? IPPROTO_IPV6 : IPPROTO_IP;
  part->cmsg_type = v6 ? IPV6_TCLASS : IP_TOS;
  part->cmsg_len = CMSG_LEN(sizeof mark);
  memcpy(CMSG_DATA(part), &mark, sizeof mark);
  if (sendmsg(fd, &message, 0) < 0) {
    return;
  }
}
