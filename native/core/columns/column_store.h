// One column while it is being filled: raw pointers for the hot loop, and rollback to the last whole row.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/base/bytes.h"
#include "core/base/pool.h"
#include "core/base/varint.h"
#include "core/columns/column_builder.h"
#include "core/wire/example_reader.h"
#include "core/wire/record_types.h"

namespace tfrkit {

// Rows are appended value by value and become part of the column with EndRow. Until then `Rollback` discards
// them: the end of the last whole row follows from its number.
//
// Functions that return bool return false for anything unexpected, failed allocations included. The caller
// then rolls back and calls the general reader, which reports the cause.
class ColumnStore {
 public:
  explicit ColumnStore(const ColumnSpec& spec);

  // Makes room for the arrays that grow by rows. REQUIRES: rows >= 1.
  [[nodiscard]] bool ReserveRows(size_t rows);

  // Appends a Feature in the usual layout: one list of the expected kind, its numbers in one packed run.
  [[nodiscard]] bool AppendFeature(const uint8_t* p, const uint8_t* end, size_t row);
  // The same for a FeatureList.
  [[nodiscard]] bool AppendFrames(const uint8_t* p, const uint8_t* end, size_t row);
  // The same, quickest for one value. `p` is where the Feature's length is, `end` where the record ends.
  [[nodiscard]] bool AppendShort(const uint8_t* p, const uint8_t* feature_end, const uint8_t* end,
                                 size_t row);
  // Appends a row without values. Not for a feature of fixed length, which must be there.
  [[nodiscard]] bool AppendAbsent(size_t row) {
    return (is_list_ || !is_fixed()) && AppendNothing(row, Presence::kAbsent);
  }

  // The fault of an entry of the general reader (nullptr: absent); kNone if there is none.
  Fault Check(const ExampleReader& reader, const MergedEntry* entry) const;
  // REQUIRES: Check found nothing.
  [[nodiscard]] bool AppendMerged(const ExampleReader& reader, const MergedEntry* entry, size_t row);

  void Rollback(size_t num_rows);
  Column Finish(size_t num_rows);

  bool is_list() const { return is_list_; }
  bool is_fixed() const { return length_ >= 0; }
  bool is_viewed() const { return is_viewed_; }

  uint64_t serial = 0;  // of the last record that had it

 private:
  static constexpr size_t kCopySize = 32;  // short bytes values are copied in one piece of this size
  static constexpr size_t kCountFrom = 4096;
  static constexpr size_t kViewFrom = 4096;  // mean size of values from which on `may_view` views them
  static constexpr size_t kMaxShortValue = 0x7f - 4;  // the Feature's length is 4 more

  bool AppendList(const uint8_t* p, const uint8_t* end);
  bool AppendOnlyValue(const uint8_t* p, const uint8_t* feature_end, const uint8_t* end);
  template <Kind kKind>
  const uint8_t* AppendShortFrames(const uint8_t* p, const uint8_t* end);
  bool AppendOneFrame(const uint8_t* p, const uint8_t* end, const uint8_t* list_end);
  bool AppendOne(const uint8_t* p, size_t size, const uint8_t* end);
  bool AppendValue(const uint8_t* data, size_t size, const uint8_t* end);
  bool AppendMergedFeature(const ExampleReader& reader, const MergedFeature& feature);
  bool AppendNothing(size_t row, Presence presence);
  bool MarkPresence(size_t row, Presence presence);
  bool MarkFrameUnset() {
    return Mark(num_frames_, Presence::kUnset, frame_capacity_, &column_.frame_presence);
  }
  static bool Mark(size_t row, Presence presence, size_t capacity, PoolVector<uint8_t>* into);
  static void FinishPresence(size_t num_rows, PoolVector<uint8_t>* marks);
  Fault CheckFeature(const MergedFeature& feature) const;

  void EndRow(size_t row) {
    if (is_list_) {
      list_splits_[row + 1] = static_cast<int64_t>(num_frames_);
    } else if (length_ < 0) {
      splits_[row + 1] = static_cast<int64_t>(num_values_);
    }
  }
  bool EndFrame();

  // Room for `count` more values (for bytes: offsets), or `size` more bytes.
  bool ReserveValues(size_t count) { return count <= value_capacity_ - num_values_ || GrowValues(count); }
  bool ReserveBytes(size_t size) { return size <= data_capacity_ - data_size_ || GrowBytes(size); }
  bool GrowValues(size_t count);
  bool GrowBytes(size_t size);
  bool GrowFrames();

  Kind kind_;
  bool is_list_;
  bool may_view_;
  bool is_viewed_;
  uint8_t list_tag_;       // of the wanted kind in a Feature
  uint32_t short_header_;  // length, tag, length and tag of a Feature with one empty value
  int64_t length_;
  size_t num_values_ = 0;  // with those of the row in progress
  size_t value_capacity_ = 0;
  int64_t* ints_ = nullptr;
  float* floats_ = nullptr;
  uint8_t* data_ = nullptr;
  int64_t* offsets_ = nullptr;
  ByteView* views_ = nullptr;
  size_t data_size_ = 0;
  size_t data_capacity_ = 0;
  int64_t* splits_ = nullptr;
  int64_t* list_splits_ = nullptr;
  size_t num_frames_ = 0;
  size_t frame_capacity_ = 0;
  size_t row_capacity_ = 0;
  Column column_;
  // Sizes of the previous column: the next is likely as large, and growing means copying.
  size_t value_hint_ = 0, data_hint_ = 0, frame_hint_ = 0;
};

inline bool ColumnStore::AppendValue(const uint8_t* data, size_t size, const uint8_t* end) {
  if (!ReserveValues(1)) return false;
  if (is_viewed_) {
    views_[num_values_++] = ByteView(data, size);
    data_size_ += size;
    return true;
  }
  if (!ReserveBytes(size < kCopySize ? kCopySize : size)) return false;
  if (size <= kCopySize && static_cast<size_t>(end - data) >= kCopySize) {
    std::memcpy(data_ + data_size_, data, kCopySize);
  } else if (size != 0) {
    std::memcpy(data_ + data_size_, data, size);
  }
  data_size_ += size;
  offsets_[++num_values_] = static_cast<int64_t>(data_size_);
  return true;
}

// Appends the value whose bytes are the last `size` of a Feature, a packed run or a bytes value.
inline bool ColumnStore::AppendOne(const uint8_t* p, size_t size, const uint8_t* end) {
  switch (kind_) {
    case Kind::kInt64: {
      if (size - 1 >= 8 || !ReserveValues(1)) return false;
      // Fewer bytes than a word may remain; then load the word that ends there. The tags and lengths before
      // `p` belong to the record, so that word starts inside it.
      const size_t left = static_cast<size_t>(end - p);
      const uint64_t word = left >= 8 ? LoadLE64(p) : LoadLE64(end - 8) >> (64 - 8 * left);
      uint64_t value;
      if (!ReadWholeVarint(word, size, &value)) return false;
      ints_[num_values_++] = static_cast<int64_t>(value);
      return true;
    }
    case Kind::kFloat:
      if (size != sizeof(float) || !ReserveValues(1)) return false;
      floats_[num_values_++] = std::bit_cast<float>(LoadLE32(p));
      return true;
    default:
      return AppendValue(p, size, end);
  }
}

// Appends the value of a Feature that has one, with lengths of one byte: the list and its value fill it to
// the end, so that all three lengths follow from its size.
inline bool ColumnStore::AppendOnlyValue(const uint8_t* p, const uint8_t* feature_end, const uint8_t* end) {
  const size_t size = static_cast<size_t>(feature_end - p) - 5;  // length, tag, length, tag, length
  return size <= kMaxShortValue && LoadLE32(p) == short_header_ + static_cast<uint32_t>(size) * 0x00010001u &&
         p[4] == size && AppendOne(p + 5, size, end);
}

inline bool ColumnStore::AppendShort(const uint8_t* p, const uint8_t* feature_end, const uint8_t* end,
                                     size_t row) {
  if (length_ <= 1 && AppendOnlyValue(p, feature_end, end)) [[likely]] {
    if (length_ == 1) return true;
    EndRow(row);
    return length_ != 0;
  }
  return AppendFeature(SkipVarint(p), feature_end, row);
}

}  // namespace tfrkit
