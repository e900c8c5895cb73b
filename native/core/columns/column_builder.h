// Records in, columns out: the read side's hot loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/fault.h"
#include "core/base/pool.h"
#include "core/wire/record_types.h"

namespace tfrkit {

struct ColumnSpec {
  std::string name;
  Kind kind = Kind::kInt64;  // kBytes, kFloat or kInt64
  bool is_list = false;      // a SequenceExample feature list; otherwise an Example or context feature
  int64_t length = -1;       // values per row (per frame of a list); -1: varies
  bool is_viewed = false;    // kBytes: keep where values lie instead of copying them
  bool may_view = false;     // kBytes: the same, as long as the values before were large
};

// A name that records may have and that becomes no column.
struct KnownName {
  std::string name;
  bool is_list = false;
};

// One feature of many records.
//
//   values     ints | floats | bytes + byte_offsets (number of values + 1)
//              or views, which are valid as long as the records that were appended
//   splits     length == -1: where each row's (each frame's) values start; rows (frames) + 1 entries
//   list_splits  is_list: where each row's frames start; rows + 1 entries
//   presence   one Presence per row; empty when every row is kPresent
//   frame_presence  the same for the frames of a list: kUnset where a frame has no kind
struct Column {
  PoolVector<int64_t> ints;
  PoolVector<float> floats;
  PoolVector<uint8_t> bytes;
  PoolVector<int64_t> byte_offsets;
  PoolVector<ByteView> views;
  PoolVector<int64_t> splits;
  PoolVector<int64_t> list_splits;
  PoolVector<uint8_t> presence;
  PoolVector<uint8_t> frame_presence;
};

// Accumulates records into columns. One thread at a time.
//
// Protobuf's rules hold for any well-formed message: unknown fields are skipped, packed and unpacked
// values mix, repeated submessages merge, the last entry of a map key wins, a later member of a
// oneof replaces an earlier one. Feature order is predicted from the previous record, so records written by
// one program cost one comparison per feature.
class ColumnBuilder {
 public:
  // REQUIRES: no two specs share (name, is_list); kind is not kUnset; is_list only for kSequenceExample.
  ColumnBuilder(RecordKind kind, std::vector<ColumnSpec> specs);

  // The same, but a record with a name that is neither in `specs` nor in `known` is kUnknown.
  ColumnBuilder(RecordKind kind, std::vector<ColumnSpec> specs, const std::vector<KnownName>& known);
  ~ColumnBuilder();

  // Adds one row. On a fault the columns are as they were before the call.
  //   fixed length: absent or unset is kMissing, another number of values is kLength; a feature list
  //                 that is absent is a row without frames
  //   varying:      absent, unset and empty are rows without values, distinguished by `presence`
  //   another kind than the spec's is kFeatureKind
  [[nodiscard]] Fault Append(ByteView record);

  // The first bytes of the name in the last kUnknown.
  const std::string& unknown_name() const;

  size_t num_rows() const;

  // Do columns in progress hold views?
  bool has_views() const;

  // True if any record so far, also before Finish, had a name without a column.
  bool has_others() const;

  // Hands over the columns in the order of the specs and starts again at zero rows.
  std::vector<Column> Finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tfrkit
