// CRC-32C: every variant against one bit at a time, in one call and in pieces.
#include <vector>

#include "core/frames/crc32c.h"
#include "core/frames/crc32c_algebra.h"
#include "core/frames/frame_format.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/input.h"

namespace tfrkit::fuzz {
namespace {

uint32_t ExtendSlowly(uint32_t crc, ByteView bytes) {
  crc = ~crc;
  for (const uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc32c_internal::TimesX(crc);
  }
  return ~crc;
}

}  // namespace

// Input: two bytes where to cut, how often to repeat the rest (the wide variants start at hundreds of bytes).
int FuzzOne(ByteView bytes) {
  Input input(bytes);
  const size_t place = input.Number(2), times = 1 + input.Byte() % 32u;
  const std::vector<uint8_t> piece = input.Rest();
  std::vector<uint8_t> data;
  for (size_t i = 0; i < times && data.size() + piece.size() <= 2048; ++i)
    data.insert(data.end(), piece.begin(), piece.end());
  data.shrink_to_fit();
  const size_t cut = data.empty() ? 0 : place % data.size();
  const ByteView whole(data), first = whole.first(cut), second = whole.subspan(cut);
  const uint32_t expected = ExtendSlowly(0, whole), of_first = ExtendSlowly(0, first);
  uint64_t number = 0;
  for (size_t i = 0; i < 8 && i < data.size(); ++i) number |= static_cast<uint64_t>(data[i]) << (8 * i);
  uint8_t stored[8];
  StoreLE64(stored, number);
  const uint32_t of_number = ExtendSlowly(0, stored);
  for (const Crc32cVariant& variant : Crc32cVariants()) {
    if (!variant.is_supported()) continue;
    Require(variant.extend(0, data.data(), data.size()) == expected, "variants agree");
    Require(variant.extend(0, first.data(), first.size()) == of_first, "variants agree on a part");
    Require(variant.extend(of_first, second.data(), second.size()) == expected, "pieces give the whole");
    Require(variant.of_u64(number) == of_number, "variants agree on a length");
  }
  Require((crc32c_internal::AppendZeros(of_first, second.size()) ^ ExtendSlowly(0, second)) == expected,
          "two checksums make that of the whole");
  Require(UnmaskCrc(MaskCrc(expected)) == expected, "a mask can be taken off");
  return 0;
}

}  // namespace tfrkit::fuzz
