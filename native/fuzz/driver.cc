// Entry point for libFuzzer.
#include <cstddef>
#include <cstdint>

#include "fuzz/fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return tfrkit::fuzz::FuzzOne({data, size});
}
