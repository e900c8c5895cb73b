#include "core/wire/packed_varint.h"

#include <bit>

#include "core/base/cpu_x86.h"

namespace tfrkit {
namespace {

bool AlwaysSupported() { return true; }

#if defined(__x86_64__)
bool HasBmi2() { return GetX86Features().has_bmi2 && GetX86Features().has_avx2; }
#endif

constexpr PackedVarintVariant kVariants[] = {
    {"portable", AlwaysSupported, DecodePackedVarintsPortable},
#if defined(__x86_64__)
    {"bmi2", HasBmi2, DecodePackedVarintsBmi2},
#endif
};

PackedVarintVariant ChooseVariant() {
  PackedVarintVariant chosen = kVariants[0];
  for (const PackedVarintVariant& variant : kVariants) {
    if (variant.is_supported()) chosen = variant;
  }
  return chosen;
}

}  // namespace

std::span<const PackedVarintVariant> PackedVarintVariants() { return kVariants; }

size_t DecodePackedVarints(ByteView packed, int64_t* out) {
  static const PackedVarintVariant chosen = ChooseVariant();
  return chosen.decode(packed.data(), packed.data() + packed.size(), out);
}

size_t CountVarints(ByteView packed) {
  size_t count = 0;
  for (const uint8_t byte : packed) count += byte < 0x80;  // vectorised by the compiler
  return count;
}

}  // namespace tfrkit
