#include <cstring>

#include "core/base/varint.h"
#include "core/frames/frame_format.h"
#include "core/frames/frame_writer.h"
#include "core/wire/example_writer.h"
#include "core/wire/feature_encoding.h"

namespace tfrkit {
namespace {

constexpr size_t kCopySize = 32;
// tag, length, tag, length | name | tag, then length, tag, length, tag, length of the value
constexpr size_t kMaxShortName = kCopySize - 4 - 1;
constexpr size_t kMaxShortValue = 0x7f - 8;  // less the name: an entry's length is one byte
// What an entry may need beyond its name and values: 5 tags, 5 lengths, and copies in whole pieces.
constexpr size_t kEntrySlack = 5 * (1 + kMaxVarintSize) + kCopySize;

// What is the same in every row.
struct ColumnHead {
  uint8_t bytes[kCopySize];  // an entry up to the tag of its value
  uint32_t value_header;     // length, tag, length and tag of a Feature with one empty value
  uint8_t value_offset;
  int16_t max_size;  // of a value with which every length stays one byte; -1: never
};

// Writes rows of columns as framed Examples.
//
// An entry with one value and one-byte lengths is a copy of its column's head, four lengths that follow
// from the size of the value, and the value. All others use feature_encoding.h.
class RowWriter {
 public:
  RowWriter(std::span<const ColumnSource> columns, PoolVector<uint8_t>* out) : columns_(columns), out_(out) {}

  bool Prepare() {
    if (!heads_.Reserve(columns_.size())) return false;
    for (const ColumnSource& column : columns_) {
      ColumnHead head{};
      head.max_size = -1;
      const size_t name_size = column.name.size();
      if (name_size <= kMaxShortName) {
        uint8_t* p = head.bytes;
        *p++ = kFieldOneTag;
        *p++ = 0;
        *p++ = kFieldOneTag;
        *p++ = static_cast<uint8_t>(name_size);
        p = WriteBytes(p, column.name.data(), name_size);
        *p++ = kFieldTwoTag;
        head.value_offset = static_cast<uint8_t>(p - head.bytes);
        head.max_size = static_cast<int16_t>(kMaxShortValue - name_size);
      }
      const uint32_t list_tag = TagByte(static_cast<uint32_t>(column.kind), WireType::kDelimited);
      head.value_header = 4u | list_tag << 8 | 2u << 16 | static_cast<uint32_t>(kFieldOneTag) << 24;
      if (!heads_.PushBack(head)) return false;
    }
    return true;
  }

  bool WriteRow(uint64_t row) {
    size_t frame;
    if (!BeginFrame(out_, &frame)) return false;
    const size_t start = out_->size();
    // The length of the features is known only after them; room is left for as many bytes as it took in
    // the row before.
    if (!out_->Resize(start + 1 + length_size_)) return false;
    SetCursor();
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (!WriteEntry(columns_[i], heads_[i], row)) return false;
    }
    if (!Reserve(2 * kMaxVarintSize)) return false;
    uint8_t* const head = out_->data() + start;
    const size_t size = static_cast<size_t>(p_ - head) - 1 - length_size_;
    const size_t length_size = VarintSize(size);
    if (length_size != length_size_) {
      std::memmove(head + 1 + length_size, head + 1 + length_size_, size);
      length_size_ = length_size;
    }
    head[0] = kFieldOneTag;
    uint8_t length[kMaxVarintSize];
    WriteVarint(length, size);
    std::memcpy(head + 1, length, length_size);
    return out_->Resize(start + 1 + length_size + size) && FinishFrame(out_, frame);
  }

 private:
  void SetCursor() {
    p_ = out_->data() + out_->size();
    limit_ = out_->data() + out_->capacity();
  }

  bool Reserve(size_t size) {
    if (size <= static_cast<size_t>(limit_ - p_)) [[likely]]
      return true;
    const size_t used = static_cast<size_t>(p_ - out_->data());
    if (!out_->Resize(used) || !out_->Reserve(used + size)) return false;
    SetCursor();
    return true;
  }

  bool WriteEntry(const ColumnSource& column, const ColumnHead& head, uint64_t row) {
    if (column.missing != nullptr && column.missing[row] != 0) return true;
    if (column.presence != nullptr && column.presence[row] != static_cast<uint8_t>(Presence::kPresent)) {
      if (column.presence[row] == static_cast<uint8_t>(Presence::kAbsent)) return true;
      return WriteAny(column, {});
    }
    int64_t first, count;
    if (column.splits != nullptr) {
      first = column.splits[row];
      count = column.splits[row + 1] - first;
    } else {
      first = static_cast<int64_t>(row) * column.length;
      count = column.length;
    }
    if (count == 1 && WriteOne(column, head, first)) return true;
    return WriteValues(column, first, static_cast<size_t>(count));
  }

  // False when the value does not fit one-byte lengths (or memory is exhausted).
  bool WriteOne(const ColumnSource& column, const ColumnHead& head, int64_t index) {
    uint64_t number = 0;
    size_t size = sizeof(float);
    if (column.kind == Kind::kInt64) {
      number = static_cast<uint64_t>(column.ints[index]);
      size = VarintSize(number);
      if (size > 8) return false;
    } else if (column.kind == Kind::kBytes) {
      size = static_cast<size_t>(column.byte_offsets[index + 1] - column.byte_offsets[index]);
    }
    if (static_cast<int64_t>(size) > head.max_size || !Reserve(2 * kCopySize + 0x80)) return false;
    std::memcpy(p_, head.bytes, kCopySize);
    uint8_t* const value = p_ + head.value_offset;
    p_[1] = static_cast<uint8_t>(head.value_offset - 2 + 5 + size);
    StoreLE32(value, head.value_header + static_cast<uint32_t>(size) * 0x00010001u);
    value[4] = static_cast<uint8_t>(size);
    p_ = value + 5 + size;
    if (column.kind == Kind::kInt64) {
      WriteAnyVarint(value + 5, number);
    } else if (column.kind == Kind::kFloat) {
      StoreLE32(value + 5, std::bit_cast<uint32_t>(column.floats[index]));
    } else {
      WriteBytes(value + 5, column.bytes + column.byte_offsets[index], size);
    }
    return true;
  }

  bool WriteValues(const ColumnSource& column, int64_t first, size_t count) {
    FeatureValue value;
    value.kind = column.kind;
    if (column.kind == Kind::kInt64) {
      value.ints = {column.ints + first, count};
    } else if (column.kind == Kind::kFloat) {
      value.floats = {column.floats + first, count};
    } else {
      if (!views_.Resize(count)) return false;
      for (size_t i = 0; i < count; ++i) {
        const int64_t* const offsets = column.byte_offsets + first + static_cast<int64_t>(i);
        views_[i] = ByteView(column.bytes + offsets[0], static_cast<size_t>(offsets[1] - offsets[0]));
      }
      value.bytes = {views_.data(), count};
    }
    return WriteAny(column, value);
  }

  bool WriteAny(const ColumnSource& column, const FeatureValue& value) {
    const size_t list_size = ListSize(value);
    if (!Reserve(column.name.size() + list_size + kEntrySlack)) return false;
    p_ = WriteEntryHead(p_, column.name, FeatureSize(value, list_size));
    p_ = WriteFeature(p_, value, list_size);
    return true;
  }

  std::span<const ColumnSource> columns_;
  PoolVector<uint8_t>* out_;
  PoolVector<ColumnHead> heads_;
  PoolVector<ByteView> views_;
  uint8_t* p_ = nullptr;
  const uint8_t* limit_ = nullptr;
  size_t length_size_ = 2;
};

}  // namespace

bool AppendFramedExamples(std::span<const ColumnSource> columns, uint64_t start, uint64_t stop,
                          PoolVector<uint8_t>* out) {
  const size_t before = out->size();
  RowWriter writer(columns, out);
  bool is_done = writer.Prepare();
  for (uint64_t row = start; row < stop && is_done; ++row) is_done = writer.WriteRow(row);
  if (!is_done) out->Truncate(before);
  return is_done;
}

namespace {

// Rows out of memory order cost a cache miss per column unless they are prefetched.
constexpr size_t kPrefetchRows = 12;
constexpr size_t kPrefetchBytes = 6;  // offsets must have arrived before their bytes can be prefetched

void PrefetchRow(std::span<const ColumnSource> columns, int64_t row) {
  for (const ColumnSource& column : columns) {
    if (column.missing != nullptr) __builtin_prefetch(column.missing + row);
    if (column.splits != nullptr) {
      __builtin_prefetch(column.splits + row);
    } else if (column.kind == Kind::kBytes) {
      __builtin_prefetch(column.byte_offsets + row * column.length);
    } else if (column.kind == Kind::kFloat) {
      __builtin_prefetch(column.floats + row * column.length);
    } else {
      __builtin_prefetch(column.ints + row * column.length);
    }
  }
}

void PrefetchBytes(std::span<const ColumnSource> columns, int64_t row) {
  for (const ColumnSource& column : columns) {
    const int64_t first = column.splits != nullptr ? column.splits[row] : row * column.length;
    if (column.kind == Kind::kBytes) {
      __builtin_prefetch(column.byte_offsets + first);
      if (column.splits == nullptr) __builtin_prefetch(column.bytes + column.byte_offsets[first]);
    } else if (column.splits != nullptr) {
      if (column.kind == Kind::kFloat) __builtin_prefetch(column.floats + first);
      if (column.kind == Kind::kInt64) __builtin_prefetch(column.ints + first);
    }
  }
}

bool AreInOrder(std::span<const int64_t> rows) {
  return rows.empty() || rows.back() - rows.front() == static_cast<int64_t>(rows.size()) - 1;
}

}  // namespace

bool AppendFramedRows(std::span<const ColumnSource> columns, std::span<const int64_t> rows,
                      PoolVector<uint8_t>* out, PoolVector<uint64_t>* starts) {
  RowWriter writer(columns, out);
  if (!writer.Prepare()) return false;
  const bool is_scattered = !AreInOrder(rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (is_scattered) {
      if (i + kPrefetchRows < rows.size()) PrefetchRow(columns, rows[i + kPrefetchRows]);
      if (i + kPrefetchBytes < rows.size()) PrefetchBytes(columns, rows[i + kPrefetchBytes]);
    }
    if (!starts->PushBack(out->size()) || !writer.WriteRow(static_cast<uint64_t>(rows[i]))) return false;
  }
  return true;
}

namespace {

// No early exit: without one the loop runs at memory speed.
bool RisesTo(const int64_t* positions, size_t size, uint64_t limit) {
  if (size == 0 || positions[0] < 0) return false;
  int64_t falls = 0;
  for (size_t i = 1; i < size; ++i) falls |= positions[i - 1] <= positions[i] ? 0 : 1;
  return falls == 0 && static_cast<uint64_t>(positions[size - 1]) <= limit;
}

}  // namespace

bool HoldsRows(const ColumnSource& column, const ColumnSizes& sizes, uint64_t num_rows) {
  if (column.presence != nullptr && sizes.num_presence != num_rows) return false;
  if (column.missing != nullptr && sizes.num_missing != num_rows) return false;
  uint64_t num_values = sizes.num_values;
  if (column.kind == Kind::kBytes) {
    if (!RisesTo(column.byte_offsets, sizes.num_byte_offsets, num_values)) return false;
    num_values = sizes.num_byte_offsets - 1;
  }
  if (column.splits != nullptr) {
    return sizes.num_splits == num_rows + 1 && RisesTo(column.splits, sizes.num_splits, num_values);
  }
  if (column.length < 0) return false;
  const auto length = static_cast<uint64_t>(column.length);
  return length == 0 || num_rows <= num_values / length;
}

}  // namespace tfrkit
