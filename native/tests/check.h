// A small test harness: TEST registers a case, the CHECK macros record failures and continue.
//
//   TEST(FrameReader, BadLengthIsReported) {
//     CHECK_EQ(run.fault.kind, FaultKind::kLengthChecksum);
//     CHECK(run.num_frames == 1);
//     REQUIRE(!offsets.empty());   // ends the case when it fails
//   }
#pragma once

#include <cstdint>
#include <cstdio>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/base/bytes.h"

namespace tfrkit::test {

struct Case {
  const char* suite;
  const char* name;
  void (*run)();
};

// In the order of registration; main.cc runs them all.
std::vector<Case>& Cases();

// Prints the failure and marks the running case as failed.
void RecordFailure(const char* file, int line, const std::string& what);

struct Registration {
  Registration(const char* suite, const char* name, void (*run)()) { Cases().push_back({suite, name, run}); }
};

template <class T>
std::string Show(const T& value) {
  std::ostringstream out;
  if constexpr (std::is_same_v<T, bool>) {
    out << (value ? "true" : "false");
  } else if constexpr (std::is_enum_v<T>) {
    out << static_cast<int64_t>(value);
  } else if constexpr (std::is_integral_v<T>) {
    out << +value;
    if (value > 9) out << " (0x" << std::hex << +value << ")";
  } else if constexpr (requires { out << value; }) {
    out << value;
  } else if constexpr (requires {
                         value.begin();
                         value.end();
                       }) {
    out << "[";
    size_t index = 0;
    for (const auto& element : value) {
      if (index == 64) {
        out << " ...";
        break;
      }
      out << (index++ == 0 ? "" : " ") << Show(element);
    }
    out << "]";
  } else {
    out << "(value of " << sizeof(T) << " bytes)";
  }
  return out.str();
}

// Integers of different signedness compare by value.
template <class A, class B>
bool IsEqual(const A& a, const B& b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B> && !std::is_same_v<A, bool> &&
                !std::is_same_v<B, bool> && !std::is_same_v<A, char> && !std::is_same_v<B, char>) {
    return std::cmp_equal(a, b);
  } else {
    return a == b;
  }
}

template <class A, class B>
bool CheckEqual(const A& a, const B& b, const char* a_text, const char* b_text, const char* file, int line) {
  if (IsEqual(a, b)) return true;
  RecordFailure(file, line,
                std::string(a_text) + " == " + b_text + "\n    left  " + Show(a) + "\n    right " + Show(b));
  return false;
}

inline ByteView View(std::string_view text) {
  return {static_cast<const uint8_t*>(static_cast<const void*>(text.data())), text.size()};
}
inline ByteView View(const std::vector<uint8_t>& bytes) { return {bytes.data(), bytes.size()}; }
inline std::vector<uint8_t> Copy(ByteView bytes) { return {bytes.begin(), bytes.end()}; }

// A heap copy of exactly the given size: the address sanitizer sees the first byte read past it.
inline std::vector<uint8_t> ExactCopy(ByteView bytes) {
  std::vector<uint8_t> copy(bytes.begin(), bytes.end());
  copy.shrink_to_fit();
  return copy;
}

// A fixed pseudo-random sequence, so that failures are reproducible. The seed is part of the test.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t Next() {
    state_ += 0x9e3779b97f4a7c15u;
    uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  uint64_t Below(uint64_t bound) { return Next() % bound; }
  std::vector<uint8_t> Bytes(size_t size) {
    std::vector<uint8_t> bytes(size);
    for (auto& byte : bytes) byte = static_cast<uint8_t>(Next());
    return bytes;
  }

 private:
  uint64_t state_;
};

}  // namespace tfrkit::test

#define TEST(suite, name)                                                                                 \
  static void suite##_##name();                                                                           \
  static const ::tfrkit::test::Registration registration_##suite##_##name(#suite, #name, suite##_##name); \
  static void suite##_##name()

#define CHECK(condition) \
  ((condition) ? void() : ::tfrkit::test::RecordFailure(__FILE__, __LINE__, #condition))

#define CHECK_EQ(a, b) ::tfrkit::test::CheckEqual((a), (b), #a, #b, __FILE__, __LINE__)

#define REQUIRE(condition)                                           \
  do {                                                               \
    if (!(condition)) {                                              \
      ::tfrkit::test::RecordFailure(__FILE__, __LINE__, #condition); \
      return;                                                        \
    }                                                                \
  } while (false)
