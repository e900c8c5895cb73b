// The message type of a record, from its bytes alone.
#pragma once

#include <cstdint>

#include "core/base/bytes.h"

namespace tfrkit {

// The type of a record, where every field must be one that tf.train.Example or SequenceExample
// defines, every map entry must hold exactly one key and one value (as every protobuf writer
// produces), and every key must be UTF-8. Trial parsing is not enough: protobuf accepts an Event or
// an ExampleListWithContext as an Example whose fields are all unknown.
enum class RecordShape : uint8_t {
  kEmpty,            // no bytes: an empty Example or SequenceExample
  kExample,          // features and nothing else; also a SequenceExample that has only a context
  kSequenceExample,  // has feature_lists, perhaps empty
  kLooseExample,     // well-formed, at least one complete entry, but with unknown or repeated fields
  kLooseSequence,    // the same with a feature_lists field
  kOther,
};
RecordShape ClassifyRecord(ByteView record);
// The same without the fast path for Examples of the usual layout.
RecordShape ClassifyClosely(ByteView record);

}  // namespace tfrkit
