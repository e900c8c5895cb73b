#include "core/columns/column_store.h"

#include <algorithm>
#include <utility>

#include "core/wire/packed_varint.h"

namespace tfrkit {
namespace {

// While a column grows, its vectors have the size of their capacity: written elements are counted here, and
// growth copies no more than those. Finish trims them.
template <class T>
bool GrowAll(size_t wanted, PoolVector<T>* vector) {
  return vector->Reserve(wanted) && vector->Resize(vector->capacity());
}

}  // namespace

ColumnStore::ColumnStore(const ColumnSpec& spec)
    : kind_(spec.kind),
      is_list_(spec.is_list),
      may_view_(spec.may_view && spec.kind == Kind::kBytes),
      is_viewed_(spec.is_viewed && spec.kind == Kind::kBytes),
      list_tag_(TagByte(static_cast<uint32_t>(spec.kind), WireType::kDelimited)),
      short_header_(4u | static_cast<uint32_t>(list_tag_) << 8 | 2u << 16 |
                    static_cast<uint32_t>(kFieldOneTag) << 24),
      length_(spec.length) {}

bool ColumnStore::ReserveRows(size_t rows) {
  const bool is_first = value_capacity_ == 0;
  if (is_first) {
    if (!GrowValues(value_hint_ + value_hint_ / 8 + 1)) return false;
    if (kind_ == Kind::kBytes && !is_viewed_ && !GrowBytes(data_hint_ + data_hint_ / 8 + kCopySize))
      return false;
  }
  if (is_list_) {
    if (!GrowAll(rows + 1, &column_.list_splits)) return false;
    list_splits_ = column_.list_splits.data();
    list_splits_[0] = 0;
    if (frame_capacity_ == 0 && !GrowFrames()) return false;
  } else if (length_ < 0) {
    if (!GrowAll(rows + 1, &column_.splits)) return false;
    splits_ = column_.splits.data();
    splits_[0] = 0;
  }
  row_capacity_ = rows;
  return column_.presence.empty() || column_.presence.Reserve(rows);
}

bool ColumnStore::GrowValues(size_t count) {
  uint64_t wanted;
  if (!CheckedAdd(num_values_, count, &wanted) || wanted >= SIZE_MAX / 32) return false;
  if (kind_ == Kind::kInt64) {
    if (!GrowAll(wanted, &column_.ints)) return false;
    ints_ = column_.ints.data();
    value_capacity_ = column_.ints.capacity();
  } else if (kind_ == Kind::kFloat) {
    if (!GrowAll(wanted, &column_.floats)) return false;
    floats_ = column_.floats.data();
    value_capacity_ = column_.floats.capacity();
  } else if (is_viewed_) {
    if (!GrowAll(wanted, &column_.views)) return false;
    views_ = column_.views.data();
    value_capacity_ = column_.views.capacity();
  } else {
    auto& offsets = column_.byte_offsets;
    if (!GrowAll(wanted + 1, &offsets)) return false;
    offsets_ = offsets.data();
    offsets_[0] = 0;
    value_capacity_ = offsets.capacity() - 1;
  }
  return true;
}

bool ColumnStore::GrowBytes(size_t size) {
  uint64_t wanted;
  if (!CheckedAdd(data_size_, size, &wanted) || wanted >= SIZE_MAX / 4) return false;
  // Copy only written bytes: with images, the capacity is large.
  column_.bytes.Truncate(data_size_);
  const bool has_grown = GrowAll(wanted, &column_.bytes);
  if (!has_grown && !column_.bytes.Resize(data_capacity_)) return false;
  data_ = column_.bytes.data();
  data_capacity_ = column_.bytes.capacity();
  return has_grown;
}

bool ColumnStore::GrowFrames() {
  if (length_ >= 0) {
    frame_capacity_ = SIZE_MAX;  // frames of a fixed length need no splits
    return true;
  }
  auto& splits = column_.splits;
  const size_t wanted = frame_capacity_ == 0 ? frame_hint_ + frame_hint_ / 8 + 2 : num_frames_ + 2;
  if (!GrowAll(wanted, &splits)) return false;
  splits_ = splits.data();
  splits_[0] = 0;
  frame_capacity_ = splits.capacity() - 1;
  return true;
}

bool ColumnStore::EndFrame() {
  if (num_frames_ >= frame_capacity_ && !GrowFrames()) return false;
  ++num_frames_;
  if (length_ < 0) splits_[num_frames_] = static_cast<int64_t>(num_values_);
  return true;
}

bool ColumnStore::AppendList(const uint8_t* p, const uint8_t* end) {
  if (kind_ == Kind::kBytes) {
    while (p < end) {
      if (*p++ != kFieldOneTag) return false;
      size_t size;
      p = ReadLength(p, end, &size);
      if (p == nullptr || !AppendValue(p, size, end)) return false;
      p += size;
    }
    return true;
  }
  if (p == end) return true;
  if (*p++ != kFieldOneTag) return false;
  size_t size;
  p = ReadLength(p, end, &size);
  if (p == nullptr || p + size != end) return false;
  const ByteView packed(p, size);
  if (kind_ == Kind::kFloat) {
    if (size % sizeof(float) != 0 || !ReserveValues(size / sizeof(float))) return false;
    num_values_ += LoadFloats(packed, floats_ + num_values_);
    return true;
  }
  // There are at most as many values as bytes. Counting first costs a pass and pays only if that much memory
  // would matter.
  if (!ReserveValues(size < kCountFrom ? size : CountVarints(packed))) return false;
  const size_t count = DecodePackedVarints(packed, ints_ + num_values_);
  if (count == kBadVarints) return false;
  num_values_ += count;
  return true;
}

bool ColumnStore::AppendFeature(const uint8_t* p, const uint8_t* end, size_t row) {
  if (p == end) return is_fixed() ? false : AppendNothing(row, Presence::kUnset);
  if (*p++ != list_tag_) return false;
  size_t size;
  p = ReadLength(p, end, &size);
  if (p == nullptr || p + size != end) return false;
  const size_t before = num_values_;
  if (!AppendList(p, end)) return false;
  if (is_fixed() && num_values_ - before != static_cast<uint64_t>(length_)) return false;
  EndRow(row);
  return true;
}

// Reads frames of the common form: one run of values, lengths of one byte. Returns the first frame of another
// form or without room. Counters are locals, so that they stay in registers: stores through pointers might
// alias members.
template <Kind kKind>
const uint8_t* ColumnStore::AppendShortFrames(const uint8_t* p, const uint8_t* const end) {
  if (kKind == Kind::kBytes && is_viewed_) return p;
  constexpr size_t kHead = 6;  // tag and length of the frame, of its list, and of the list's values
  const uint32_t first_bytes = kFieldOneTag | static_cast<uint32_t>(list_tag_) << 16;
  const size_t length = static_cast<size_t>(length_);
  const bool is_ragged = length_ < 0;
  size_t num_values = num_values_, num_frames = num_frames_, data_size = data_size_;
  while (static_cast<size_t>(end - p) > kHead && num_frames < frame_capacity_) {
    const size_t size = p[5];
    const uint8_t* const values = p + kHead;
    const size_t left = static_cast<size_t>(end - values);
    if (size - 1 >= kMaxShortValue || size > left || p[4] != kFieldOneTag ||
        LoadLE32(p) != first_bytes + static_cast<uint32_t>(size + 4) * 0x100u +
                           static_cast<uint32_t>(size + 2) * 0x1000000u) {
      break;
    }
    const size_t room = value_capacity_ - num_values;
    if constexpr (kKind == Kind::kFloat) {
      const size_t count = size / sizeof(float);
      if (size % sizeof(float) != 0 || count > room || (!is_ragged && count != length)) break;
      for (size_t i = 0; i < count; ++i) {
        floats_[num_values + i] = std::bit_cast<float>(LoadLE32(values + i * sizeof(float)));
      }
      num_values += count;
    } else {
      if (room == 0 || (!is_ragged && length != 1)) break;
      if constexpr (kKind == Kind::kInt64) {
        uint64_t value;
        if (size > 8 ||
            !ReadWholeVarint(left >= 8 ? LoadLE64(values) : LoadShort(values, size), size, &value))
          break;
        ints_[num_values++] = static_cast<int64_t>(value);
      } else {
        if (data_capacity_ - data_size < (size < kCopySize ? kCopySize : size)) break;
        if (size <= kCopySize && left >= kCopySize) {
          std::memcpy(data_ + data_size, values, kCopySize);
        } else {
          std::memcpy(data_ + data_size, values, size);
        }
        data_size += size;
        offsets_[++num_values] = static_cast<int64_t>(data_size);
      }
    }
    ++num_frames;
    if (is_ragged) splits_[num_frames] = static_cast<int64_t>(num_values);
    p = values + size;
  }
  num_values_ = num_values;
  num_frames_ = num_frames;
  data_size_ = data_size;
  return p;
}

bool ColumnStore::AppendFrames(const uint8_t* p, const uint8_t* end, size_t row) {
  while (true) {
    if (kind_ == Kind::kInt64) {
      p = AppendShortFrames<Kind::kInt64>(p, end);
    } else if (kind_ == Kind::kFloat) {
      p = AppendShortFrames<Kind::kFloat>(p, end);
    } else {
      p = AppendShortFrames<Kind::kBytes>(p, end);
    }
    if (p == end) break;
    if (*p++ != kFieldOneTag) return false;
    size_t size;
    const uint8_t* const feature = ReadLength(p, end, &size);
    if (feature == nullptr) return false;
    if (!AppendOneFrame(p, feature + size, end)) return false;
    p = feature + size;
  }
  EndRow(row);
  return true;
}

bool ColumnStore::AppendOneFrame(const uint8_t* p, const uint8_t* end, const uint8_t* list_end) {
  if (AppendOnlyValue(p, end, list_end)) return (length_ < 0 || length_ == 1) && EndFrame();
  const size_t before = num_values_;
  p = SkipVarint(p);
  if (p < end) {
    if (*p++ != list_tag_) return false;
    size_t list_size;
    p = ReadLength(p, end, &list_size);
    if (p == nullptr || p + list_size != end || !AppendList(p, end)) return false;
  } else if (is_fixed() || !MarkFrameUnset()) {
    return false;
  }
  if (is_fixed() && num_values_ - before != static_cast<uint64_t>(length_)) return false;
  return EndFrame();
}

bool ColumnStore::MarkPresence(size_t row, Presence presence) {
  return Mark(row, presence, row_capacity_, &column_.presence);
}

bool ColumnStore::Mark(size_t row, Presence presence, size_t capacity, PoolVector<uint8_t>* into) {
  PoolVector<uint8_t>& marks = *into;
  const size_t size = marks.size();
  // Room for every row there can be, so that Finish needs none.
  if (!marks.Reserve(capacity) || !marks.Resize(row + 1)) return false;
  if (row > size) std::memset(marks.data() + size, static_cast<int>(Presence::kPresent), row - size);
  marks[row] = static_cast<uint8_t>(presence);
  return true;
}

bool ColumnStore::AppendNothing(size_t row, Presence presence) {
  if (!MarkPresence(row, presence)) return false;
  EndRow(row);
  return true;
}

Fault ColumnStore::CheckFeature(const MergedFeature& feature) const {
  if (feature.kind == Kind::kUnset) {
    return is_fixed() ? Fault{FaultKind::kMissing, -1, feature.offset, 0, 0} : Fault{};
  }
  if (feature.kind != kind_) {
    return {FaultKind::kFeatureKind, -1, feature.offset, static_cast<uint64_t>(feature.kind),
            static_cast<uint64_t>(kind_)};
  }
  if (is_fixed() && feature.num_values != static_cast<uint64_t>(length_)) {
    return {FaultKind::kLength, -1, feature.offset, feature.num_values, static_cast<uint64_t>(length_)};
  }
  return {};
}

Fault ColumnStore::Check(const ExampleReader& reader, const MergedEntry* entry) const {
  // An absent list has no frames, so none has a wrong length.
  if (entry == nullptr) return is_fixed() && !is_list_ ? Fault{FaultKind::kMissing, -1, 0, 0, 0} : Fault{};
  if (!is_list_) return CheckFeature(entry->feature);
  for (size_t i = 0; i < entry->num_frames; ++i) {
    if (const Fault fault = CheckFeature(reader.Frame(entry->first_frame + i))) return fault;
  }
  return {};
}

bool ColumnStore::AppendMergedFeature(const ExampleReader& reader, const MergedFeature& feature) {
  if (feature.num_values > SIZE_MAX / 32 || !ReserveValues(static_cast<size_t>(feature.num_values)))
    return false;
  const size_t count = static_cast<size_t>(feature.num_values);
  if (kind_ == Kind::kInt64) {
    reader.CopyInts(feature, ints_ + num_values_);
    num_values_ += count;
  } else if (kind_ == Kind::kFloat) {
    reader.CopyFloats(feature, floats_ + num_values_);
    num_values_ += count;
  } else {
    PoolVector<ByteView> values;
    if (!values.Resize(count)) return false;
    reader.CopyBytes(feature, values.data());
    for (size_t i = 0; i < count; ++i) {
      if (!AppendValue(values[i].data(), values[i].size(), values[i].data() + values[i].size())) return false;
    }
  }
  return true;
}

bool ColumnStore::AppendMerged(const ExampleReader& reader, const MergedEntry* entry, size_t row) {
  if (entry == nullptr) return AppendNothing(row, Presence::kAbsent);
  if (!is_list_) {
    if (entry->feature.kind == Kind::kUnset) return AppendNothing(row, Presence::kUnset);
    if (!AppendMergedFeature(reader, entry->feature)) return false;
  }
  for (size_t i = 0; i < entry->num_frames; ++i) {
    const MergedFeature& frame = reader.Frame(entry->first_frame + i);
    if (frame.kind == Kind::kUnset && !MarkFrameUnset()) return false;
    if (!AppendMergedFeature(reader, frame) || !EndFrame()) return false;
  }
  EndRow(row);
  return true;
}

void ColumnStore::Rollback(size_t num_rows) {
  if (value_capacity_ == 0) return;
  size_t items = num_rows;  // what the values are counted by: rows, or frames
  if (is_list_) {
    num_frames_ = static_cast<size_t>(list_splits_[num_rows]);
    items = num_frames_;
  }
  num_values_ = length_ >= 0 ? items * static_cast<size_t>(length_) : static_cast<size_t>(splits_[items]);
  if (kind_ == Kind::kBytes && !is_viewed_) data_size_ = static_cast<size_t>(offsets_[num_values_]);
  if (column_.presence.size() > num_rows) column_.presence.Truncate(num_rows);
  if (column_.frame_presence.size() > num_frames_) column_.frame_presence.Truncate(num_frames_);
}

void ColumnStore::FinishPresence(size_t num_rows, PoolVector<uint8_t>* marks) {
  // A rolled-back row leaves its marks even if every remaining row is present.
  const uint8_t present = static_cast<uint8_t>(Presence::kPresent);
  const size_t size = marks->size();
  if (std::all_of(marks->data(), marks->data() + size, [=](uint8_t mark) { return mark == present; })) {
    marks->Clear();
  } else if (marks->Resize(num_rows) && num_rows > size) {
    std::memset(marks->data() + size, present, num_rows - size);
  }
}

Column ColumnStore::Finish(size_t num_rows) {
  if (num_rows == 0) {
    // Zero rows still have a first offset. Without memory for it the arrays stay empty.
    if (!ReserveRows(1)) return std::move(column_);
    Rollback(0);
  }
  value_hint_ = num_values_;
  data_hint_ = data_size_;
  frame_hint_ = num_frames_;
  Column done = std::move(column_);
  done.ints.Truncate(kind_ == Kind::kInt64 ? num_values_ : 0);
  done.floats.Truncate(kind_ == Kind::kFloat ? num_values_ : 0);
  if (is_viewed_) {
    done.views.Truncate(num_values_);
  } else if (kind_ == Kind::kBytes) {
    done.byte_offsets.Truncate(num_values_ + 1);
    done.bytes.Truncate(data_size_);
  }
  if (is_list_) done.list_splits.Truncate(num_rows + 1);
  if (length_ < 0) done.splits.Truncate((is_list_ ? num_frames_ : num_rows) + 1);
  FinishPresence(num_rows, &done.presence);
  FinishPresence(num_frames_, &done.frame_presence);
  if (may_view_) is_viewed_ = num_values_ != 0 && data_size_ / num_values_ >= kViewFrom;
  num_values_ = value_capacity_ = data_size_ = data_capacity_ = num_frames_ = frame_capacity_ =
      row_capacity_ = 0;
  ints_ = offsets_ = splits_ = list_splits_ = nullptr;
  views_ = nullptr;
  floats_ = nullptr;
  data_ = nullptr;
  return done;
}

}  // namespace tfrkit
