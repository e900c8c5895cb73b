#include "core/wire/record_editor.h"

#include <algorithm>
#include <utility>

#include "core/base/varint.h"
#include "core/wire/record_shape.h"
#include "core/wire/wire.h"

namespace tfrkit {
namespace {

std::string_view ToText(ByteView bytes) {
  return {static_cast<const char*>(static_cast<const void*>(bytes.data())), bytes.size()};
}

ByteView ToBytes(const std::string& text) {
  return {static_cast<const uint8_t*>(static_cast<const void*>(text.data())), text.size()};
}

// The key of a map entry: the last one present, or empty. False if malformed.
bool ReadKey(ByteView entry, std::string_view* key) {
  *key = {};
  const uint8_t* const end = entry.data() + entry.size();
  Field field;
  for (const uint8_t* p = entry.data(); p < end;) {
    p = ReadField(p, end, &field);
    if (p == nullptr) return false;
    if (field.Is(1, WireType::kDelimited)) *key = ToText(field.bytes());
  }
  return true;
}

}  // namespace

void RecordEditor::Rename(std::string name, std::string new_name) {
  actions_.emplace(std::move(name), Action{Action::kRename, new_names_.size()});
  targets_.emplace(new_name, new_names_.size());
  new_names_.push_back(std::move(new_name));
  feature_uses_.push_back(0);
  list_uses_.push_back(0);
}

EditResult RecordEditor::Edit(ByteView record, PoolVector<uint8_t>* out) {
  const RecordShape shape = ClassifyRecord(record);
  if (shape == RecordShape::kOther) return EditResult::kOdd;
  const bool is_sequence = shape == RecordShape::kSequenceExample || shape == RecordShape::kLooseSequence;
  const size_t before = out->size();
  std::fill(feature_uses_.begin(), feature_uses_.end(), uint8_t{0});
  std::fill(list_uses_.begin(), list_uses_.end(), uint8_t{0});
  const uint8_t* const end = record.data() + record.size();
  Field field;
  for (const uint8_t* p = record.data(); p < end;) {
    const uint8_t* const start = p;
    p = ReadField(p, end, &field);
    EditResult result = EditResult::kDone;
    if (p == nullptr) {
      result = EditResult::kOdd;
    } else if (field.Is(1, WireType::kDelimited)) {
      result = AppendMap(kFieldOneTag, field.bytes(), &feature_uses_, out);
    } else if (is_sequence && field.Is(2, WireType::kDelimited)) {
      result = AppendMap(kFieldTwoTag, field.bytes(), &list_uses_, out);
    } else if (!out->Append(start, static_cast<size_t>(p - start))) {
      result = EditResult::kOutOfMemory;
    }
    if (result != EditResult::kDone) {
      out->Truncate(before);
      return result;
    }
  }
  return EditResult::kDone;
}

EditResult RecordEditor::AppendMap(uint8_t tag, ByteView message, Uses* uses, PoolVector<uint8_t>* out) {
  map_.Clear();
  const uint8_t* const end = message.data() + message.size();
  Field field;
  bool has_memory = true;
  for (const uint8_t* p = message.data(); p < end && has_memory;) {
    const uint8_t* const start = p;
    p = ReadField(p, end, &field);
    if (p == nullptr) return EditResult::kOdd;
    const ByteView whole(start, static_cast<size_t>(p - start));
    if (!field.Is(1, WireType::kDelimited)) {
      has_memory = map_.Append(whole.data(), whole.size());
      continue;
    }
    std::string_view key;
    if (!ReadKey(field.bytes(), &key)) return EditResult::kOdd;
    if (seen_.find(key) == seen_.end()) seen_.emplace(key);
    const auto found = actions_.find(key);
    const bool is_named = found != actions_.end();
    if (is_named ? found->second.kind == Action::kDrop : !keeps_others_) continue;
    if (is_named && found->second.kind == Action::kRename) {
      (*uses)[found->second.target] |= 1;
      const std::string& name = new_names_[found->second.target];
      has_memory = name == key ? map_.Append(whole.data(), whole.size()) : AppendRenamed(field.bytes(), name);
      continue;
    }
    if (const auto target = targets_.find(key); target != targets_.end()) (*uses)[target->second] |= 2;
    has_memory = map_.Append(whole.data(), whole.size());
  }
  if (!has_memory) return EditResult::kOutOfMemory;
  if (std::find(uses->begin(), uses->end(), uint8_t{3}) != uses->end()) return EditResult::kOdd;
  return AppendDelimited(tag, {map_.data(), map_.size()}, out) ? EditResult::kDone : EditResult::kOutOfMemory;
}

bool RecordEditor::AppendRenamed(ByteView entry, const std::string& name) {
  entry_.Clear();
  if (!AppendDelimited(kFieldOneTag, ToBytes(name), &entry_)) return false;
  const uint8_t* const end = entry.data() + entry.size();
  Field field;
  for (const uint8_t* p = entry.data(); p < end;) {
    const uint8_t* const start = p;
    p = ReadField(p, end, &field);
    // ReadKey has been over it.
    if (field.Is(1, WireType::kDelimited)) continue;
    if (!entry_.Append(start, static_cast<size_t>(p - start))) return false;
  }
  return AppendDelimited(kFieldOneTag, {entry_.data(), entry_.size()}, &map_);
}

bool RecordEditor::AppendDelimited(uint8_t tag, ByteView content, PoolVector<uint8_t>* out) {
  uint8_t head[1 + kMaxVarintSize];
  head[0] = tag;
  const uint8_t* const stop = WriteVarint(head + 1, content.size());
  return out->Append(head, static_cast<size_t>(stop - head)) && out->Append(content.data(), content.size());
}

}  // namespace tfrkit
