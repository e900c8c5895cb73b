#include "core/stats/survey.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <new>
#include <utility>

#include "core/base/utf8.h"
#include "core/wire/example_reader.h"
#include "core/wire/tensor_proto.h"

namespace tfrkit {
namespace {

constexpr size_t kNumHeads = 3;
constexpr size_t kHeadSize = 4096;

template <class T>
void Widen(bool is_first, T value, T* low, T* high) {
  if (is_first || value < *low) *low = value;
  if (is_first || value > *high) *high = value;
}

void AddInts(const int64_t* values, size_t count, FeatureStats* stats) {
  if (count == 0) return;
  int64_t low = values[0], high = values[0];
  for (size_t i = 1; i < count; ++i) {
    low = std::min(low, values[i]);
    high = std::max(high, values[i]);
  }
  stats->min_int = std::min(stats->min_int, low);
  stats->max_int = std::max(stats->max_int, high);
}

void AddFloats(const float* values, size_t count, FeatureStats* stats) {
  for (size_t i = 0; i < count; ++i) {
    if (std::isnan(values[i])) {
      ++stats->num_nan;
    } else {
      stats->min_float = std::min(stats->min_float, values[i]);
      stats->max_float = std::max(stats->max_float, values[i]);
    }
  }
}

void AddTensor(TensorHead* head, FeatureStats* stats) {
  if (stats->num_tensors++ == 0) {
    stats->tensor_dtype = head->dtype;
    stats->tensor_rank = static_cast<int32_t>(head->shape.size());
    stats->tensor_shape = std::move(head->shape);
    return;
  }
  if (head->dtype != stats->tensor_dtype) stats->tensor_dtype = -1;
  if (static_cast<int32_t>(head->shape.size()) != stats->tensor_rank) stats->tensor_rank = -1;
  if (stats->tensor_rank < 0) return;
  for (size_t i = 0; i < head->shape.size(); ++i) {
    if (head->shape[i] != stats->tensor_shape[i]) stats->tensor_shape[i] = -1;
  }
}

void AddBytes(ByteView value, FeatureStats* stats, uint64_t* num_bytes_values) {
  Widen<uint64_t>((*num_bytes_values)++ == 0, value.size(), &stats->min_bytes, &stats->max_bytes);
  stats->num_text += IsText(value);
  TensorHead head;
  if (ReadStrictTensor(value, &head)) AddTensor(&head, stats);
  if (stats->heads.size() < kNumHeads) {
    const size_t size = std::min(value.size(), kHeadSize);
    stats->heads.emplace_back(value.begin(), value.begin() + static_cast<std::ptrdiff_t>(size));
  }
}

}  // namespace

uint64_t CountNames(ByteView record) {
  uint64_t num_names = 0;
  const uint8_t* const end = record.data() + record.size();
  Field map, entry;
  for (const uint8_t* p = record.data(); p < end;) {
    p = ReadField(p, end, &map);
    if (p == nullptr) break;
    if (!map.Is(1, WireType::kDelimited) && !map.Is(2, WireType::kDelimited)) continue;
    const uint8_t* const map_end = map.data + map.size;
    for (const uint8_t* q = map.data; q < map_end;) {
      q = ReadField(q, map_end, &entry);
      if (q == nullptr) break;
      num_names += entry.Is(1, WireType::kDelimited);
    }
  }
  return num_names;
}

struct Survey::Impl {
  struct Entry {
    FeatureStats stats;
    uint64_t num_bytes_values = 0;
  };
  using Entries = std::vector<Entry>;  // by slot

  explicit Impl(RecordKind kind) : reader(kind, &features, &lists) {
    for (SlotFinder* finder : {&features, &lists}) {
      finder->adds_names = true;
      finder->max_slots = kMaxNames;
    }
  }

  Fault Add(ByteView record) {
    if (Fault fault = reader.Read(record)) {
      if (fault.kind == FaultKind::kTooManyNames) fault.stored = CountNames(record);
      return fault;
    }
    for (size_t i = 0; i < reader.feature_slots().size(); ++i) {
      const uint32_t slot = reader.feature_slots()[i];
      Entry& entry = EntryAt(slot, &feature_entries);
      ++entry.stats.present;
      AddFeature(reader.Feature(slot)->feature, &entry);
    }
    for (size_t i = 0; i < reader.list_slots().size(); ++i) {
      const uint32_t slot = reader.list_slots()[i];
      Entry& entry = EntryAt(slot, &list_entries);
      const MergedEntry& list = *reader.List(slot);
      Widen<uint64_t>(entry.stats.present++ == 0, list.num_frames, &entry.stats.min_frames,
                      &entry.stats.max_frames);
      for (size_t j = 0; j < list.num_frames; ++j) AddFeature(reader.Frame(list.first_frame + j), &entry);
    }
    ++num_records;
    return {};
  }

  static Entry& EntryAt(uint32_t slot, Entries* entries) {
    while (entries->size() <= slot) {
      FeatureStats& stats = entries->emplace_back().stats;
      // Empty ranges; Features() turns those that stay empty into zeros.
      stats.min_int = std::numeric_limits<int64_t>::max();
      stats.max_int = std::numeric_limits<int64_t>::min();
      stats.min_float = std::numeric_limits<float>::infinity();
      stats.max_float = -std::numeric_limits<float>::infinity();
    }
    return (*entries)[slot];
  }

  void AddFeature(const MergedFeature& feature, Entry* entry) {
    FeatureStats& stats = entry->stats;
    if (feature.kind == Kind::kUnset) {
      ++stats.num_unset;
      ++stats.kind_counts[0];
      return;
    }
    const bool is_first = stats.kind_counts[1] + stats.kind_counts[2] + stats.kind_counts[3] == 0;
    ++stats.kind_counts[static_cast<size_t>(feature.kind)];
    Widen(is_first, feature.num_values, &stats.min_length, &stats.max_length);
    stats.num_values += feature.num_values;
    const size_t count = static_cast<size_t>(feature.num_values);
    const ByteView list = reader.OnlyPart(feature);
    if (count == 1 && IsOneShortField(list)) {  // needs no copies
      AddOne(feature.kind, list.subspan(2), entry);
      return;
    }
    if (feature.kind == Kind::kInt64) {
      if (!ints.Resize(count)) throw std::bad_alloc();
      reader.CopyInts(feature, ints.data());
      AddInts(ints.data(), count, &stats);
    } else if (feature.kind == Kind::kFloat) {
      if (!floats.Resize(count)) throw std::bad_alloc();
      reader.CopyFloats(feature, floats.data());
      AddFloats(floats.data(), count, &stats);
    } else {
      if (!values.Resize(count)) throw std::bad_alloc();
      reader.CopyBytes(feature, values.data());
      for (size_t i = 0; i < count; ++i) AddBytes(values[i], &stats, &entry->num_bytes_values);
    }
  }

  static void AddOne(Kind kind, ByteView content, Entry* entry) {
    if (kind == Kind::kInt64) {
      uint64_t bits = 0;
      const size_t size = content.size();
      const bool is_read = size <= 8 ? ReadWholeVarint(LoadShort(content.data(), size), size, &bits)
                                     : ReadVarint(content.data(), content.data() + size, &bits) != nullptr;
      if (!is_read) return;  // not reached: it has been counted
      const int64_t value = static_cast<int64_t>(bits);
      AddInts(&value, 1, &entry->stats);
    } else if (kind == Kind::kFloat) {
      const float value = std::bit_cast<float>(LoadLE32(content.data()));
      AddFloats(&value, 1, &entry->stats);
    } else {
      AddBytes(content, &entry->stats, &entry->num_bytes_values);
    }
  }

  static void CopyStats(const KeyTable& keys, const Entries& entries, bool is_list,
                        std::vector<FeatureStats>* out) {
    const size_t first = out->size();
    for (const KeyNode& node : keys.nodes()) {
      // A record may have added a name before it turned out to be malformed.
      if (node.slot >= entries.size() || entries[node.slot].stats.present == 0) continue;
      FeatureStats& stats = out->emplace_back(entries[node.slot].stats);
      stats.name = node.name;
      stats.is_list = is_list;
      if (stats.min_int > stats.max_int) stats.min_int = stats.max_int = 0;
      if (stats.min_float > stats.max_float) stats.min_float = stats.max_float = 0;
    }
    std::sort(out->begin() + static_cast<std::ptrdiff_t>(first), out->end(),
              [](const FeatureStats& a, const FeatureStats& b) { return a.name < b.name; });
  }

  SlotFinder features;
  SlotFinder lists;
  ExampleReader reader;
  Entries feature_entries;
  Entries list_entries;
  PoolVector<int64_t> ints;
  PoolVector<float> floats;
  PoolVector<ByteView> values;
  uint64_t num_records = 0;
};

Survey::Survey(RecordKind kind) : impl_(std::make_unique<Impl>(kind)) {}

Survey::~Survey() = default;

Fault Survey::Add(ByteView record) {
  try {
    return impl_->Add(record);
  } catch (const std::bad_alloc&) {
    return kNoMemory;
  }
}

uint64_t Survey::num_records() const { return impl_->num_records; }

std::vector<FeatureStats> Survey::Features() const {
  std::vector<FeatureStats> all;
  impl_->CopyStats(impl_->features.keys, impl_->feature_entries, false, &all);
  impl_->CopyStats(impl_->lists.keys, impl_->list_entries, true, &all);
  return all;
}

}  // namespace tfrkit
