// CRC-32C with tables only: eight bytes per step, one table for each.
#include <array>

#include "core/base/bytes.h"
#include "core/frames/crc32c_algebra.h"
#include "core/frames/crc32c_variants.h"

namespace tfrkit::crc32c_internal {
namespace {

using SliceTables = std::array<std::array<uint32_t, 256>, 8>;

// tables[k][b] is the checksum of byte b followed by k zero bytes.
constexpr SliceTables MakeSliceTables() {
  SliceTables tables = {};
  for (uint32_t value = 0; value < 256; ++value) {
    uint32_t crc = value;
    for (int bit = 0; bit < 8; ++bit) crc = TimesX(crc);
    tables[0][value] = crc;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t value = 0; value < 256; ++value) {
      const uint32_t shorter = tables[k - 1][value];
      tables[k][value] = (shorter >> 8) ^ tables[0][shorter & 0xff];
    }
  }
  return tables;
}

constexpr SliceTables kTables = MakeSliceTables();

inline uint32_t Step64(uint64_t word) {
  return kTables[7][word & 0xff] ^ kTables[6][(word >> 8) & 0xff] ^ kTables[5][(word >> 16) & 0xff] ^
         kTables[4][(word >> 24) & 0xff] ^ kTables[3][(word >> 32) & 0xff] ^ kTables[2][(word >> 40) & 0xff] ^
         kTables[1][(word >> 48) & 0xff] ^ kTables[0][word >> 56];
}

}  // namespace

uint32_t ExtendPortable(uint32_t crc, const uint8_t* data, size_t size) {
  uint32_t state = ~crc;
  for (; size >= 8; data += 8, size -= 8) state = Step64(LoadLE64(data) ^ state);
  for (; size != 0; ++data, --size) state = (state >> 8) ^ kTables[0][(state ^ *data) & 0xff];
  return ~state;
}

uint32_t OfU64Portable(uint64_t value) { return ~Step64(value ^ 0xffffffffu); }

}  // namespace tfrkit::crc32c_internal
