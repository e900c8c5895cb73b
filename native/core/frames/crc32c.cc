// Choosing the CRC-32C variant for this CPU.
#include "core/frames/crc32c.h"

#include <array>
#include <atomic>

#include "core/frames/crc32c_variants.h"

namespace tfrkit {
namespace {

using Extend = uint32_t (*)(uint32_t, const uint8_t*, size_t);
using OfU64 = uint32_t (*)(uint64_t);

struct VariantList {
  std::array<Crc32cVariant, 8> variants;
  size_t size = 0;
};

VariantList ListVariants() {
  VariantList list;
  list.variants[list.size++] = {"portable", [] { return true; }, crc32c_internal::ExtendPortable,
                                crc32c_internal::OfU64Portable};
  for (const auto& variant : crc32c_internal::X86Variants()) list.variants[list.size++] = variant;
  for (const auto& variant : crc32c_internal::Arm64Variants()) list.variants[list.size++] = variant;
  return list;
}

const Crc32cVariant& FastestVariant() {
  const auto variants = Crc32cVariants();
  size_t index = variants.size() - 1;
  while (!variants[index].is_supported()) --index;  // ends at "portable"
  return variants[index];
}

uint32_t ChooseAndExtend(uint32_t crc, const uint8_t* data, size_t size);
uint32_t ChooseAndTakeU64(uint64_t value);

// Constant-initialised, so a call from another file's static initialiser works; relaxed, because
// every thread that races here stores the same pointer.
constinit std::atomic<Extend> g_extend{ChooseAndExtend};
constinit std::atomic<OfU64> g_of_u64{ChooseAndTakeU64};

void Choose() {
  const Crc32cVariant& variant = FastestVariant();
  g_of_u64.store(variant.of_u64, std::memory_order_relaxed);
  g_extend.store(variant.extend, std::memory_order_relaxed);
}

uint32_t ChooseAndExtend(uint32_t crc, const uint8_t* data, size_t size) {
  Choose();
  return ExtendCrc32c(crc, data, size);
}

uint32_t ChooseAndTakeU64(uint64_t value) {
  Choose();
  return Crc32cOfU64(value);
}

}  // namespace

uint32_t ExtendCrc32c(uint32_t crc, const uint8_t* data, size_t size) {
  return g_extend.load(std::memory_order_relaxed)(crc, data, size);
}

uint32_t Crc32cOfU64(uint64_t value) { return g_of_u64.load(std::memory_order_relaxed)(value); }

std::span<const Crc32cVariant> Crc32cVariants() {
  static const VariantList list = ListVariants();
  return {list.variants.data(), list.size};
}

const char* Crc32cVariantInUse() { return FastestVariant().name; }

}  // namespace tfrkit
