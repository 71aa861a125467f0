#include "content.h"

void pattern(uint8_t *to, size_t from, size_t length) {
  for (size_t i = 0; i < length; i++) {
    size_t at = from + i;
    to[i] = (uint8_t)(at ^ at >> 8 ^ at >> 16);
  }
}

void letters(uint8_t *to, size_t length) {
  for (size_t i = 0; i < length; i++) {
    to[i] = (uint8_t)('a' + i % 26);
  }
}

uint32_t checksum(uint32_t crc, const uint8_t *data, size_t length) {
  crc = ~crc;
  for (size_t i = 0; i < length; i++) {
    crc ^= data[i];
    for (int bit = 0; bit < 8; bit++) {
      crc = crc >> 1 ^ (0xedb88320u & (0u - (crc & 1)));
    }
  }
  return ~crc;
}
