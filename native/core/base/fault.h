// What a parser reports instead of throwing. The core detects; its callers decide whether to raise, skip or
// list.
#pragma once

#include <cstdint>

namespace tfrkit {

enum class FaultKind : uint8_t {
  kNone = 0,
  // Frames. `offset` is where the frame starts.
  kTruncatedHeader,   // stored: bytes needed, computed: bytes left
  kLengthChecksum,    // stored, computed: masked checksums of the length
  kTruncatedPayload,  // stored: length in the header, computed: bytes left after the header
  kPayloadChecksum,   // stored, computed: masked checksums of the payload
  kIndexPage,         // stored, computed: checksums of the page of an index that has the frame's offset
  // Records. `offset` is counted from the first byte of the record.
  kWire,         // not a well-formed protobuf message of the expected type
  kFeatureKind,  // stored: Kind found, computed: Kind expected, column: its index
  kLength,       // stored: number of values found, computed: number expected, column: its index
  kMissing,      // a required column is absent, or has no kind set; column: its index
  kUnknown,      // a name that is neither requested nor known; `offset`: of the name, stored: its bytes,
                 // computed: 1 for a feature list
  // Limits of this library. The record may be sound.
  kTooManyNames,  // stored: names in the record, computed: limit of a survey
  kNoMemory,      // `offset`: of the record at which memory ran out
};

struct Fault {
  FaultKind kind = FaultKind::kNone;
  int32_t column = -1;
  uint64_t offset = 0;
  uint64_t stored = 0;
  uint64_t computed = 0;

  explicit operator bool() const { return kind != FaultKind::kNone; }
};

// Memory ran out: no fault of the data. `ToPython` turns it into a MemoryError.
inline constexpr Fault kNoMemory{FaultKind::kNoMemory, -1, 0, 0, 0};

}  // namespace tfrkit
