// One input of a fuzz target. Aborts on a broken promise; the sanitizers see the rest.
//
// Each target defines FuzzOne. Linked with driver.cc it is a libFuzzer program, linked with
// replay.cc it runs the kept corpus in the ordinary test run.
#pragma once

#include <cstdio>
#include <cstdlib>

#include "core/base/bytes.h"

namespace tfrkit::fuzz {

int FuzzOne(ByteView input);

inline void Require(bool condition, const char* promise) {
  if (condition) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

}  // namespace tfrkit::fuzz
