// What the HTTP cases send, and CRC-32 of it; ../README.md has the contract.
#ifndef CONTENT_H
#define CONTENT_H

#include <stddef.h>
#include <stdint.h>

#define PARALLEL 1000
#define TURNS 20
#define TURN_SIZE 50000
#define HEADER_TURNS 3
#define LARGE_SIZE 20000
#define SMALL_COUNT 50
#define CANCEL_AFTER 100000
// Most content and the longest header that are made.
#define MOST (16u << 20)
#define LONGEST 60000
// A piece of the endless content, bytes.
#define PIECE 16384
#define SMALL "x-small-"
#define TRAILER "after all"
#define H3_NO_ERROR 0x100
#define H3_REQUEST_CANCELLED 0x10c

// Bytes that depend on their place, the first of which is at `from`.
void pattern(uint8_t *to, size_t from, size_t length);
void letters(uint8_t *to, size_t length);
// CRC-32 as in zlib, of what `crc` is of and the data after it.
uint32_t checksum(uint32_t crc, const uint8_t *data, size_t length);

#endif
