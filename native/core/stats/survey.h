// One pass over records that gathers, per feature, the figures a schema is inferred from.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/fault.h"
#include "core/wire/record_types.h"

namespace tfrkit {

struct FeatureStats {
  std::string name;
  bool is_list = false;
  uint64_t present = 0;                     // rows with the key, kind set or not
  uint64_t num_unset = 0;                   // rows (frames) where no kind is set
  uint64_t kind_counts[4] = {};             // by Kind, rows (frames)
  uint64_t min_length = 0, max_length = 0;  // values per row (per frame), over those with a kind set
  uint64_t min_frames = 0, max_frames = 0;  // is_list only
  int64_t min_int = 0, max_int = 0;         // over all int64 values; undefined without any
  float min_float = 0, max_float = 0;       // over all values that are not NaN
  uint64_t num_values = 0, num_nan = 0;
  uint64_t min_bytes = 0, max_bytes = 0;  // size of one bytes value
  uint64_t num_text = 0;                  // bytes values that are UTF-8 without control characters
                                          // other than tab, line feed and carriage return
  uint64_t num_tensors = 0;               // bytes values that pass ReadStrictTensor (tensor_proto.h)
  int32_t tensor_dtype = 0;               // of the first one; -1 once two differ
  std::vector<int64_t> tensor_shape;      // of the first one; a size that varies becomes -1
  int32_t tensor_rank = 0;                // of the first one; -1 once two differ
  std::vector<std::string> heads;         // the first 4096 bytes of the first 3 bytes values
};

// Limit of distinct feature names, and of feature list names: a record of a few megabytes can hold more names
// than statistics fit in memory.
inline constexpr uint32_t kMaxNames = 1u << 18;

// Number of entries in the maps of a record, up to the first malformed byte.
uint64_t CountNames(ByteView record);

class Survey {
 public:
  explicit Survey(RecordKind kind);
  ~Survey();

  // Adds one record with protobuf's rules (not the strict ones of ClassifyRecord). More than kMaxNames names
  // in all records is kTooManyNames.
  [[nodiscard]] Fault Add(ByteView record);

  uint64_t num_records() const;
  // Sorted by (is_list, name).
  std::vector<FeatureStats> Features() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tfrkit
