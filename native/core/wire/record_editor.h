// Drops and renames features of records; copies everything else unchanged.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "core/base/bytes.h"
#include "core/base/pool.h"

namespace tfrkit {

enum class EditResult : uint8_t {
  kDone,
  kOdd,  // not a well-formed Example or SequenceExample, or two features would have one name
  kOutOfMemory,
};

// Edits records of the usual layout. For others the cause is not reported; use the general reader to find it.
// One thread at a time.
class RecordEditor {
 public:
  // Features not named below are kept if `keeps_others`, otherwise dropped.
  explicit RecordEditor(bool keeps_others) : keeps_others_(keeps_others) {}

  // REQUIRES: each name once in all of these, each new name once.
  void Drop(std::string name) { actions_.emplace(std::move(name), Action{Action::kDrop, 0}); }
  void Keep(std::string name) { actions_.emplace(std::move(name), Action{Action::kKeep, 0}); }
  void Rename(std::string name, std::string new_name);

  // Appends the edited record to `out`; nothing unless the result is kDone.
  [[nodiscard]] EditResult Edit(ByteView record, PoolVector<uint8_t>* out);

  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  using Names = std::unordered_set<std::string, Hash, std::equal_to<>>;

  // All names seen so far.
  const Names& seen() const { return seen_; }

 private:
  struct Action {
    enum Kind : uint8_t { kDrop, kKeep, kRename } kind;
    size_t target;  // of kRename: index in new_names_
  };

  // Uses of each new name by the features, or the feature lists, of one record: 1 for a renamed one, 2 for
  // one that has the name already. A record may hold several maps of either, which readers merge.
  using Uses = std::vector<uint8_t>;

  EditResult AppendMap(uint8_t tag, ByteView message, Uses* uses, PoolVector<uint8_t>* out);
  [[nodiscard]] bool AppendRenamed(ByteView entry, const std::string& name);
  [[nodiscard]] static bool AppendDelimited(uint8_t tag, ByteView content, PoolVector<uint8_t>* out);

  const bool keeps_others_;
  std::unordered_map<std::string, Action, Hash, std::equal_to<>> actions_;
  std::unordered_map<std::string, size_t, Hash, std::equal_to<>> targets_;  // new name -> index
  std::vector<std::string> new_names_;
  Uses feature_uses_, list_uses_;
  Names seen_;
  PoolVector<uint8_t> map_;
  PoolVector<uint8_t> entry_;
};

}  // namespace tfrkit
