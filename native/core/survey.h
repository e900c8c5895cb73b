// What is in these records? One pass that gathers, per feature, what a schema is inferred from.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/bytes.h"
#include "core/fault.h"
#include "core/record_types.h"

namespace tfrkit {

// How a record looks when every field of it must be one that tf.train.Example or SequenceExample
// defines, every map entry must hold exactly one key and one value (as every protobuf writer
// produces), and every key must be UTF-8. Trial parsing is not enough: protobuf accepts an Event or
// an ExampleListWithContext as an Example whose fields are all unknown.
enum class RecordShape : uint8_t {
  kEmpty,            // no bytes: an Example, or a SequenceExample, of nothing
  kExample,          // features and nothing else; also a SequenceExample that has only a context
  kSequenceExample,  // has feature_lists, perhaps empty
  kLooseExample,     // well-formed, at least one complete entry, but with unknown or repeated fields
  kLooseSequence,    // the same with a feature_lists field
  kOther,
};
RecordShape ClassifyRecord(ByteView record);
// The same without the short cut for Examples of the usual layout.
RecordShape ClassifyClosely(ByteView record);

struct FeatureStats {
  std::string name;
  bool is_list = false;
  uint64_t present = 0;                     // rows where the key is there, kind set or not
  uint64_t num_unset = 0;                   // rows (frames) where no kind is set
  uint64_t kind_counts[4] = {};             // by Kind, rows (frames)
  uint64_t min_length = 0, max_length = 0;  // values per row (per frame), over those with a kind set
  uint64_t min_frames = 0, max_frames = 0;  // is_list only
  int64_t min_int = 0, max_int = 0;         // over all int64 values; meaningless when there are none
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

// A survey takes this many different names of features, and as many of feature lists: a record of a few
// megabytes can hold more of them than memory holds statistics.
inline constexpr uint32_t kMaxNames = 1u << 18;

// How many entries the maps of a record have; up to the first byte that is not well-formed.
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
