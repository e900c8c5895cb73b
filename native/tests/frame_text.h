// Frames for tests, made without the code under test: checksums bit by bit.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "tests/check.h"

namespace tfrkit::test {

inline uint32_t SlowMaskedCrc(ByteView bytes) {
  uint32_t crc = ~0u;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82f63b78u : 0);
  }
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

inline void AppendSlowHeader(uint64_t length, std::vector<uint8_t>* out) {
  const size_t start = out->size();
  out->resize(start + 12);
  StoreLE64(out->data() + start, length);
  StoreLE32(out->data() + start + 8, SlowMaskedCrc({out->data() + start, 8}));
}

inline void AppendSlowFrame(ByteView payload, std::vector<uint8_t>* out) {
  AppendSlowHeader(payload.size(), out);
  const size_t start = out->size();
  out->resize(start + payload.size() + 4);
  if (!payload.empty()) std::memcpy(out->data() + start, payload.data(), payload.size());
  StoreLE32(out->data() + start + payload.size(), SlowMaskedCrc(payload));
}

inline std::vector<uint8_t> SlowFrames(std::initializer_list<std::string_view> payloads) {
  std::vector<uint8_t> out;
  for (const std::string_view payload : payloads) AppendSlowFrame(View(payload), &out);
  out.shrink_to_fit();
  return out;
}

}  // namespace tfrkit::test
