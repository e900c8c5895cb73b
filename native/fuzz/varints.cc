// Packed varints: every variant against a reader of one at a time, and what is written reads the same.
#include <vector>

#include "core/base/varint.h"
#include "core/wire/packed_varint.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/input.h"

namespace tfrkit::fuzz {
namespace {

// kBadVarints as the fast ones.
size_t DecodeSlowly(ByteView packed, std::vector<int64_t>* values) {
  const uint8_t* const end = packed.data() + packed.size();
  for (const uint8_t* p = packed.data(); p < end;) {
    uint64_t value;
    p = ReadVarint(p, end, &value);
    if (p == nullptr) return kBadVarints;
    values->push_back(static_cast<int64_t>(value));
  }
  return values->size();
}

void CheckRoundTrip(const std::vector<int64_t>& values) {
  std::vector<uint8_t> plain(values.size() * kMaxVarintSize), any(plain.size());
  uint8_t *plain_stop = plain.data(), *any_stop = any.data();
  for (const int64_t value : values) {
    const auto bits = static_cast<uint64_t>(value);
    uint8_t* const start = plain_stop;
    plain_stop = WriteVarint(plain_stop, bits);
    any_stop = WriteAnyVarint(any_stop, bits);
    const auto size = static_cast<size_t>(plain_stop - start);
    Require(size == VarintSize(bits), "a varint has the size that was computed");
    if (size <= 8) {
      uint64_t whole;
      Require(ReadWholeVarint(LoadShort(start, size), size, &whole) && whole == bits, "a whole varint reads");
    }
  }
  plain.resize(static_cast<size_t>(plain_stop - plain.data()));
  any.resize(static_cast<size_t>(any_stop - any.data()));
  Require(plain == any, "both writers agree");
  std::vector<int64_t> again;
  Require(DecodeSlowly(plain, &again) == values.size() && again == values, "what is written reads the same");
}

}  // namespace

int FuzzOne(ByteView input) {
  const std::vector<uint8_t> packed(input.begin(), input.end());
  std::vector<int64_t> expected;
  const size_t count = DecodeSlowly(packed, &expected);
  const size_t most = CountVarints(packed);
  Require(count == kBadVarints || count == most, "values are counted by their last bytes");
  for (const PackedVarintVariant& variant : PackedVarintVariants()) {
    if (!variant.is_supported()) continue;
    std::vector<int64_t> values(most);
    Require(variant.decode(packed.data(), packed.data() + packed.size(), values.data()) == count,
            "variants agree on the number of values");
    if (count != kBadVarints) Require(values == expected, "variants agree on the values");
  }
  CheckRoundTrip(expected);
  return 0;
}

}  // namespace tfrkit::fuzz
