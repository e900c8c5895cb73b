// The record editor: what an edited record means, by protobuf's rules, against the same edit of a map.
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/wire/record_editor.h"
#include "core/wire/record_shape.h"
#include "core/wire/wire.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/input.h"

namespace tfrkit::fuzz {
namespace {

using Values = std::map<std::string, std::string>;  // name -> bytes of its value; merging is appending
struct Meaning {
  Values features, lists;
};

std::string Text(ByteView bytes) { return {bytes.begin(), bytes.end()}; }

// False if malformed.
template <class Take>
bool ForEachField(ByteView message, Take&& take) {
  const uint8_t* const end = message.data() + message.size();
  for (const uint8_t* p = message.data(); p < end;) {
    Field field;
    p = ReadField(p, end, &field);
    if (p == nullptr || (field.type == WireType::kDelimited && !take(field))) return false;
  }
  return true;
}

// A later entry of a name replaces an earlier one.
bool ReadMap(ByteView map, Values* values) {
  return ForEachField(map, [&](const Field& entry) {
    if (entry.number != 1) return true;
    std::string key, value;
    const bool is_sound = ForEachField(entry.bytes(), [&](const Field& field) {
      if (field.number == 1) key = Text(field.bytes());
      if (field.number == 2) value += Text(field.bytes());
      return true;
    });
    (*values)[key] = value;
    return is_sound;
  });
}

bool Read(ByteView record, bool is_sequence, Meaning* meaning) {
  return ForEachField(record, [&](const Field& field) {
    if (field.number == 1) return ReadMap(field.bytes(), &meaning->features);
    return field.number != 2 || !is_sequence || ReadMap(field.bytes(), &meaning->lists);
  });
}

struct Edits {
  bool keeps_others = false;
  std::set<std::string> dropped, kept;
  std::map<std::string, std::string> renamed;
};

Edits TakeEdits(uint8_t choices) {
  Edits edits;
  edits.keeps_others = (choices & 1) != 0;
  const std::string names[] = {"a", "b", "c"};
  for (size_t i = 0; i < 3; ++i) {
    const int action = choices >> (1 + 2 * i) & 3;
    if (action == 1) (edits.keeps_others ? edits.dropped : edits.kept).insert(names[i]);
    if (action == 2) edits.renamed[names[i]] = names[(i + 1) % 3];
    if (action == 3) edits.renamed[names[i]] = std::string(i * 100, 'x') + "z" + names[i];
  }
  return edits;
}

// False if two features would have one name.
bool Edit(const Values& values, const Edits& edits, Values* edited) {
  for (const auto& [name, value] : values) {
    std::string new_name = name;
    if (const auto found = edits.renamed.find(name); found != edits.renamed.end()) {
      new_name = found->second;
    } else if (edits.keeps_others ? edits.dropped.contains(name) : !edits.kept.contains(name)) {
      continue;
    }
    if (!edited->emplace(new_name, value).second) return false;
  }
  return true;
}

}  // namespace

int FuzzOne(ByteView input) {
  if (input.empty()) return 0;
  const Edits edits = TakeEdits(input[0]);
  RecordEditor editor(edits.keeps_others), copier(true);
  for (const std::string& name : edits.dropped) editor.Drop(name);
  for (const std::string& name : edits.kept) editor.Keep(name);
  for (const auto& [name, new_name] : edits.renamed) editor.Rename(name, new_name);
  for (const std::vector<uint8_t>& record : TakeRecords(input.subspan(1))) {
    const RecordShape shape = ClassifyRecord(record);
    const bool is_sequence = shape == RecordShape::kSequenceExample || shape == RecordShape::kLooseSequence;
    Meaning before, expected, after;
    const bool is_sound = shape != RecordShape::kOther && Read(record, is_sequence, &before);
    const bool is_possible = is_sound && Edit(before.features, edits, &expected.features) &&
                             Edit(before.lists, edits, &expected.lists);
    PoolVector<uint8_t> out;
    const EditResult result = editor.Edit(record, &out);
    if (result != EditResult::kDone) {
      Require(out.empty(), "a refused record adds nothing");
      Require(!is_possible, "a record that can be edited is not refused");
      continue;
    }
    Require(is_possible, "two features never get one name");
    Require(Read({out.data(), out.size()}, is_sequence, &after), "an edited record is sound");
    Require(after.features == expected.features && after.lists == expected.lists,
            "an edited record has the values of the old one under their new names");
    PoolVector<uint8_t> copy;
    Require(copier.Edit(record, &copy) == EditResult::kDone, "a record without edits is copied");
    Meaning copied;
    Require(Read({copy.data(), copy.size()}, is_sequence, &copied) && copied.features == before.features &&
                copied.lists == before.lists,
            "a copy is the same");
  }
  return 0;
}

}  // namespace tfrkit::fuzz
