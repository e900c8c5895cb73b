// Arithmetic with CRC-32C states as polynomials over GF(2), modulo the CRC's own. Private to core.
//
// Reflected: bit 31 of a state is the coefficient of x^0. Appending n zero bits multiplies by x^n.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace tfrkit::crc32c_internal {

inline constexpr uint32_t kPolynomial = 0x82f63b78u;

constexpr uint32_t TimesX(uint32_t value) { return (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0); }

constexpr uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (uint32_t bit = 0x80000000u; bit != 0; bit >>= 1) {
    if ((a & bit) != 0) product ^= b;
    b = TimesX(b);
  }
  return product;
}

// x^n modulo the polynomial.
constexpr uint32_t PowerOfX(uint64_t n) {
  uint32_t power = 0x80000000u;
  uint32_t square = 0x40000000u;  // x, x^2, x^4, ...
  for (; n != 0; n >>= 1) {
    if ((n & 1) != 0) power = Multiply(power, square);
    square = Multiply(square, square);
  }
  return power;
}

// x^8, x^16, x^32, ...: the factors for appending 1, 2, 4, ... zero bytes.
inline constexpr auto kZerosPowers = [] {
  std::array<uint32_t, 61> powers = {};
  powers[0] = PowerOfX(8);
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = Multiply(powers[i - 1], powers[i - 1]);
  return powers;
}();

// crc(a + b) == AppendZeros(crc(a), size of b) ^ crc(b). REQUIRES: num_zeros < 2^61.
constexpr uint32_t AppendZeros(uint32_t crc, uint64_t num_zeros) {
  for (size_t i = 0; num_zeros != 0; ++i, num_zeros >>= 1) {
    if ((num_zeros & 1) != 0) crc = Multiply(crc, kZerosPowers[i]);
  }
  return crc;
}

// The factor that moves 64 bits forward by n bits in a carry-less multiplication of reflected
// operands, whose product is one bit to the right of where it should be.
constexpr uint64_t FoldFactor(uint64_t n) { return static_cast<uint64_t>(PowerOfX(n)) << 1; }

// Where folding by D bits is needed: the low half of a 128-bit lane is 64 bits further from the end
// than the high half, and a reduction of 32 bits is still to come.
constexpr uint64_t FoldLow(uint64_t bits) { return FoldFactor(bits + 32); }
constexpr uint64_t FoldHigh(uint64_t bits) { return FoldFactor(bits - 32); }

// Tables that append `num_zeros` zero bytes to a checksum, one byte of the checksum at a time.
struct ZerosTable {
  std::array<std::array<uint32_t, 256>, 4> bytes;

  constexpr uint32_t Apply(uint32_t crc) const {
    return bytes[0][crc & 0xff] ^ bytes[1][(crc >> 8) & 0xff] ^ bytes[2][(crc >> 16) & 0xff] ^
           bytes[3][crc >> 24];
  }
};

constexpr ZerosTable MakeZerosTable(uint64_t num_zeros) {
  // The map is linear, so the images of single bits give all others.
  ZerosTable table = {};
  uint32_t image = PowerOfX(8 * num_zeros);  // of bit 31, then of each bit below it
  std::array<uint32_t, 32> images = {};
  for (int bit = 31; bit >= 0; --bit) {
    images[static_cast<size_t>(bit)] = image;
    image = TimesX(image);
  }
  for (size_t part = 0; part < 4; ++part) {
    for (size_t value = 1; value < 256; ++value) {
      const size_t low_bit = value & (~value + 1);
      size_t index = 0;
      while ((low_bit >> index) != 1) ++index;
      table.bytes[part][value] = table.bytes[part][value ^ low_bit] ^ images[part * 8 + index];
    }
  }
  return table;
}

}  // namespace tfrkit::crc32c_internal
