// Kinds and presence, shared by readers, writers and columns.
#pragma once

#include <cstdint>
#include <string>

namespace tfrkit {

enum class RecordKind : uint8_t { kExample, kSequenceExample };

// Numbered as the fields of tf.train.Feature.
enum class Kind : uint8_t { kUnset = 0, kBytes = 1, kFloat = 2, kInt64 = 3 };

// A missing key, a Feature without a list, and a list (perhaps empty) are distinct.
enum class Presence : uint8_t { kAbsent = 0, kUnset = 1, kPresent = 2 };

}  // namespace tfrkit
