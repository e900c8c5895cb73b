// One input of a fuzz target. Aborts on a violated invariant; the sanitizers find the rest.
//
// Each target defines FuzzOne. Linked with driver.cc it is a libFuzzer program, linked with
// replay.cc it replays the stored corpus in the normal test run.
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
