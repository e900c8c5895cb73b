#include "core/wire/key_table.h"

#include <bit>
#include <cstring>
#include <utility>

#include "core/wire/wire.h"

namespace tfrkit {
namespace {

constexpr size_t kFirstBuckets = 64;

bool SameName(const KeyNode& node, ByteView name) {
  return node.name.size() == name.size() &&
         (name.empty() || std::memcmp(node.name.data(), name.data(), name.size()) == 0);
}

}  // namespace

KeyTable::KeyTable() : buckets_(kFirstBuckets, nullptr) { start_.next = &start_; }

uint64_t KeyTable::Hash(ByteView name) const {
  // Seeded with an address, so that colliding names cannot be prepared.
  uint64_t hash = static_cast<uint64_t>(std::bit_cast<uintptr_t>(this)) ^ (name.size() * 0x9e3779b97f4a7c15u);
  const uint8_t* p = name.data();
  size_t left = name.size();
  for (; left >= 8; p += 8, left -= 8) {
    hash = (hash ^ LoadLE64(p)) * 0xff51afd7ed558ccdu;
    hash ^= hash >> 32;
  }
  uint64_t tail = 0;
  for (size_t i = 0; i < left; ++i) tail |= static_cast<uint64_t>(p[i]) << (8 * i);
  hash = (hash ^ tail) * 0xc4ceb9fe1a85ec53u;
  return hash ^ (hash >> 29);
}

KeyNode* KeyTable::Find(ByteView name) const {
  const size_t mask = buckets_.size() - 1;
  for (size_t i = Hash(name) & mask; buckets_[i] != nullptr; i = (i + 1) & mask) {
    if (SameName(*buckets_[i], name)) return buckets_[i];
  }
  return nullptr;
}

KeyNode* KeyTable::FindAfter(KeyNode* previous, ByteView name) {
  KeyNode* const expected = previous->next;
  if (expected != &start_ && SameName(*expected, name)) return expected;
  // An optional feature is missing: the one after it comes early, and the order stays.
  KeyNode* const further = expected->next;
  if (further != &start_ && SameName(*further, name)) return further;
  KeyNode* const found = Find(name);
  if (found != nullptr) previous->next = found;
  return found;
}

KeyNode* KeyTable::Insert(ByteView name, uint32_t slot) {
  if (KeyNode* const found = Find(name)) return found;
  if (2 * (nodes_.size() + 1) > buckets_.size()) Grow();
  KeyNode& node = nodes_.emplace_back();
  node.next = &start_;
  node.slot = slot;
  if (!name.empty()) {
    node.name.resize(name.size());
    std::memcpy(node.name.data(), name.data(), name.size());
  }
  if (name.size() < 0x80) {
    std::string pattern;
    pattern.push_back(static_cast<char>(TagByte(1, WireType::kDelimited)));
    pattern.push_back(static_cast<char>(name.size()));
    pattern += node.name;
    pattern.push_back(static_cast<char>(TagByte(2, WireType::kDelimited)));
    node.pattern_size = static_cast<uint32_t>(pattern.size());
    if (pattern.size() <= KeyNode::kInlinePattern) {
      std::memcpy(node.pattern, pattern.data(), pattern.size());
    } else {
      node.long_pattern = std::move(pattern);
    }
  }
  const size_t mask = buckets_.size() - 1;
  size_t i = Hash(name) & mask;
  while (buckets_[i] != nullptr) i = (i + 1) & mask;
  buckets_[i] = &node;
  return &node;
}

void KeyTable::Grow() {
  std::vector<KeyNode*> bigger(buckets_.size() * 2, nullptr);
  const size_t mask = bigger.size() - 1;
  for (KeyNode& node : nodes_) {
    const ByteView name(static_cast<const uint8_t*>(static_cast<const void*>(node.name.data())),
                        node.name.size());
    size_t i = Hash(name) & mask;
    while (bigger[i] != nullptr) i = (i + 1) & mask;
    bigger[i] = &node;
  }
  buckets_ = std::move(bigger);
}

}  // namespace tfrkit
