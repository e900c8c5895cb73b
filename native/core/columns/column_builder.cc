#include "core/columns/column_builder.h"

#include <algorithm>
#include <new>
#include <utility>

#include "core/base/varint.h"
#include "core/columns/column_store.h"
#include "core/wire/entry_layout.h"
#include "core/wire/example_reader.h"
#include "core/wire/key_table.h"

namespace tfrkit {
namespace {

constexpr size_t kFirstRows = 256;
// Unrequested names are cached, too, because predicting a name is cheaper than a lookup; limited, because a
// file may have any number of them.
constexpr size_t kMaxOtherNames = 4096;

constexpr size_t kMaxShownName = 256;

ByteView AsBytes(const std::string& text) {
  return ByteView(static_cast<const uint8_t*>(static_cast<const void*>(text.data())), text.size());
}

}  // namespace

// Two readers. The fast one handles records as every protobuf writer lays them out: fields in order, each
// once, lists packed. On anything else, faults included, it stops and the general reader takes over: so only
// one of them reports faults.
struct ColumnBuilder::Impl {
  Impl(RecordKind record_kind, const std::vector<ColumnSpec>& specs)
      : kind(record_kind), reader(record_kind, &features, &lists) {
    stores.reserve(specs.size());
    for (const ColumnSpec& spec : specs) {
      SlotFinder& finder = spec.is_list ? lists : features;
      finder.keys.Insert(AsBytes(spec.name), static_cast<uint32_t>(stores.size()));
      stores.emplace_back(spec);
    }
  }

  void RejectOthers(const std::vector<KnownName>& known) {
    for (const KnownName& one : known)
      (one.is_list ? lists : features).keys.Insert(AsBytes(one.name), kNoSlot);
    features.rejects_others = lists.rejects_others = true;
  }

  Fault Append(ByteView record) {
    if (num_rows >= row_capacity && !GrowRows()) return kNoMemory;
    ++serial;
    num_seen = 0;
    if (ReadUsualRecord(record) && FillAbsent()) [[likely]] {
      ++num_rows;
      return {};
    }
    Rollback();
    const Fault fault = AppendGeneral(record);
    if (fault) {
      if (fault.kind == FaultKind::kUnknown) KeepName(record.subspan(fault.offset, fault.stored));
      Rollback();
    } else {
      ++num_rows;
    }
    return fault;
  }

  bool ReadUsualRecord(ByteView record) {
    const uint8_t* p = record.data();
    const uint8_t* const end = p + record.size();
    size_t size;
    if (p < end && *p == kFieldOneTag) {
      p = ReadLength(p + 1, end, &size);
      if (p == nullptr || !ReadUsualMap<false>(p, p + size, &features.keys)) return false;
      p += size;
    }
    if (p < end && *p == kFieldTwoTag && kind == RecordKind::kSequenceExample) {
      p = ReadLength(p + 1, end, &size);
      if (p == nullptr || !ReadUsualMap<true>(p, p + size, &lists.keys)) return false;
      p += size;
    }
    return p == end;
  }

  template <bool kIsList>
  bool ReadUsualMap(const uint8_t* p, const uint8_t* const end, KeyTable* keys) {
    KeyNode* previous = keys->start();
    const EntryStep* step = layout.begin();
    while (p < end) {
      if constexpr (!kIsList) {
        const uint8_t* const start = p;
        if (!ReadExpected(&p, end, &step)) return false;
        if (p == end) return true;
        if (p != start) previous = step[-1].node;
      }
      KeyNode* node = previous->next;
      const size_t left = static_cast<size_t>(end - p);
      if (left < 2) return false;
      const size_t size = p[1];
      const size_t pattern_size = node->pattern_size;
      const uint8_t* value;  // where the value's length is
      const uint8_t* entry_end;
      if (p[0] == kFieldOneTag && size > pattern_size && size < 0x80 && size <= left - 2 &&
          node->Matches(p + 2) && p[2 + pattern_size] == size - pattern_size - 1) [[likely]] {
        value = p + 2 + pattern_size;
        entry_end = p + 2 + size;
      } else if (!ReadEntryHead(p, end, keys, previous, &node, &value, &entry_end)) {
        return false;
      }
      if (node->slot != kNoSlot) {
        ColumnStore& store = stores[node->slot];
        if (store.serial == serial) return false;  // the key a second time
        store.serial = serial;
        ++num_seen;
        if constexpr (kIsList) {
          size_t value_size;
          value = ReadLength(value, entry_end, &value_size);
          if (value == nullptr || !store.AppendFrames(value, entry_end, num_rows)) return false;
        } else if (!store.AppendShort(value, entry_end, end, num_rows)) {
          return false;
        }
      }
      if constexpr (!kIsList) {
        step = layout.Learn(step, node, p, static_cast<size_t>(entry_end - p), serial);
      }
      previous = node;
      p = entry_end;
    }
    return true;
  }

  // Reads entries as long as they match the layout of the records before.
  bool ReadExpected(const uint8_t** at, const uint8_t* const end, const EntryStep** next) {
    const uint8_t* p = *at;
    const EntryStep* step = *next;
    for (size_t size; step->Matches(p, static_cast<size_t>(end - p), &size); ++step) {
      if (step->slot != kNoSlot) [[unlikely]] {
        ColumnStore& store = stores[step->slot];
        if (store.serial == serial) return false;  // the key a second time
        store.serial = serial;
        ++num_seen;
        if (!store.AppendShort(step->Value(p), p + size, end, num_rows)) return false;
      }
      p += size;
    }
    *at = p;
    *next = step;
    return true;
  }

  // Reads an entry up to its value, with lengths of any size.
  bool ReadEntryHead(const uint8_t* p, const uint8_t* end, KeyTable* keys, KeyNode* previous, KeyNode** node,
                     const uint8_t** value, const uint8_t** entry_end) {
    if (*p != kFieldOneTag) return false;
    size_t size;
    p = ReadLength(p + 1, end, &size);
    if (p == nullptr) return false;
    end = p + size;
    *entry_end = end;
    if (p == end || *p != kFieldOneTag) return false;
    p = ReadLength(p + 1, end, &size);
    if (p == nullptr) return false;
    const ByteView name(p, size);
    p += size;
    if (p == end || *p != kFieldTwoTag) return false;
    *value = p + 1;
    p = ReadLength(p + 1, end, &size);
    if (p == nullptr || p + size != end) return false;
    *node = keys->FindAfter(previous, name);
    if (*node == nullptr) {
      if (features.rejects_others) return false;
      *node = AddOtherName(keys, previous, name);
    }
    return true;
  }

  KeyNode* AddOtherName(KeyTable* keys, KeyNode* previous, ByteView name) {
    met_others = true;
    // A name that is not cached: prediction restarts as at the start of a record.
    if (keys->size() >= stores.size() + kMaxOtherNames) return keys->start();
    try {
      KeyNode* const node = keys->Insert(name, kNoSlot);
      previous->next = node;
      return node;
    } catch (const std::bad_alloc&) {
      return keys->start();
    }
  }

  bool FillAbsent() {
    if (num_seen == stores.size()) [[likely]]
      return true;
    for (ColumnStore& store : stores) {
      if (store.serial != serial && !store.AppendAbsent(num_rows)) return false;
    }
    return true;
  }

  Fault AppendGeneral(ByteView record) {
    try {
      if (const Fault fault = reader.Read(record)) return fault;
    } catch (const std::bad_alloc&) {
      return kNoMemory;
    }
    for (size_t i = 0; i < stores.size(); ++i) {
      if (Fault fault = stores[i].Check(reader, EntryOf(i))) {
        fault.column = static_cast<int32_t>(i);
        return fault;
      }
    }
    for (size_t i = 0; i < stores.size(); ++i) {
      if (!stores[i].AppendMerged(reader, EntryOf(i), num_rows)) return kNoMemory;
    }
    return {};
  }

  const MergedEntry* EntryOf(size_t column) const {
    const uint32_t slot = static_cast<uint32_t>(column);
    return stores[column].is_list() ? reader.List(slot) : reader.Feature(slot);
  }

  bool GrowRows() {
    const size_t rows =
        row_capacity == 0 ? (row_hint < kFirstRows ? kFirstRows : row_hint) : row_capacity * 2;
    for (ColumnStore& store : stores) {
      if (!store.ReserveRows(rows)) return false;
    }
    row_capacity = rows;
    return true;
  }

  void KeepName(ByteView name) {
    if (name.size() > kMaxShownName) name = name.first(kMaxShownName);
    try {
      unknown_name.assign(name.begin(), name.end());
    } catch (const std::bad_alloc&) {
      unknown_name.clear();
    }
  }

  void Rollback() {
    for (ColumnStore& store : stores) store.Rollback(num_rows);
  }

  RecordKind kind;
  SlotFinder features;
  SlotFinder lists;
  std::vector<ColumnStore> stores;
  EntryLayout layout;  // of the features
  ExampleReader reader;
  bool met_others = false;
  std::string unknown_name;
  uint64_t serial = 0;
  size_t num_seen = 0;
  size_t num_rows = 0;
  size_t row_capacity = 0;
  size_t row_hint = 0;
};

ColumnBuilder::ColumnBuilder(RecordKind kind, std::vector<ColumnSpec> specs)
    : impl_(std::make_unique<Impl>(kind, specs)) {}

ColumnBuilder::ColumnBuilder(RecordKind kind, std::vector<ColumnSpec> specs,
                             const std::vector<KnownName>& known)
    : ColumnBuilder(kind, std::move(specs)) {
  impl_->RejectOthers(known);
}

ColumnBuilder::~ColumnBuilder() = default;

Fault ColumnBuilder::Append(ByteView record) { return impl_->Append(record); }

const std::string& ColumnBuilder::unknown_name() const { return impl_->unknown_name; }

size_t ColumnBuilder::num_rows() const { return impl_->num_rows; }

bool ColumnBuilder::has_others() const {
  return impl_->met_others || impl_->features.met_others || impl_->lists.met_others;
}

bool ColumnBuilder::has_views() const {
  return std::any_of(impl_->stores.begin(), impl_->stores.end(),
                     [](const ColumnStore& store) { return store.is_viewed(); });
}

std::vector<Column> ColumnBuilder::Finish() {
  std::vector<Column> columns;
  columns.reserve(impl_->stores.size());
  for (ColumnStore& store : impl_->stores) columns.push_back(store.Finish(impl_->num_rows));
  impl_->row_hint = impl_->num_rows;
  impl_->num_rows = 0;
  impl_->row_capacity = 0;
  return columns;
}

}  // namespace tfrkit
