#include "core/wire/entry_layout.h"

namespace tfrkit {
namespace {

// Size of the part before the value, with one-byte lengths; larger than any entry if the key needs more.
size_t HeadSize(const KeyNode& node) { return 2 + size_t{node.pattern_size} + 1; }

}  // namespace

const EntryStep* EntryLayout::LearnShort(const EntryStep* expected, KeyNode* node, const uint8_t* p,
                                         size_t size, uint64_t serial) {
  const size_t head_size = HeadSize(*node);
  // Padded lengths continue past the head, so the head does not detect them.
  const bool is_short = head_size >= kMinHead && head_size <= size && p[1] == size - 2 && p[3] < 0x80 &&
                        p[head_size - 1] == size - head_size;
  if (!is_short) return expected;
  const size_t index = node->step;
  if (index >= steps_.size() || steps_[index].node != node) return Add(node, p, size, serial);
  EntryStep& step = steps_[index];
  const uint64_t num_records = serial - first_serial_;
  if (&step != expected && ++num_jumps_ > kPatience + num_records / 2) {
    // The order of the records has changed.
    steps_.Clear();
    return begin();
  }
  if (step.size != size && !step.varies) {
    // A wrong prediction costs as much as reading three lengths.
    step.varies = ++step.num_changes > kPatience + num_records / 8;
    SetSize(&step, p, size);
  }
  return &step + 1;
}

void EntryLayout::SetSize(EntryStep* step, const uint8_t* p, size_t size) {
  step->size = static_cast<uint16_t>(size);
  step->head = LoadLE64(p);
  step->tail = LoadLE64(p + step->tail_offset);
  const bool is_plain = !step->varies && step->tail_offset <= sizeof step->head;
  step->plain_size = is_plain ? size : SIZE_MAX;
  if (!is_plain) {
    step->head &= ~EntryStep::kLengthByte;
    step->tail -= uint64_t{p[1]} << 56;
  }
}

const EntryStep* EntryLayout::Add(KeyNode* node, const uint8_t* p, size_t size, uint64_t serial) {
  if (steps_.empty()) {
    first_serial_ = serial;
    num_jumps_ = 0;
    // Without memory for it, entries are read the general way.
    if (!steps_.PushBack(kNothing)) return &kNothing;
  }
  if (!steps_.PushBack(kNothing)) return &steps_.back();
  EntryStep& step = steps_[steps_.size() - 2];
  step.tail_offset = static_cast<uint32_t>(HeadSize(*node) - sizeof step.tail);
  step.slot = node->slot;
  step.node = node;
  SetSize(&step, p, size);
  node->step = static_cast<uint32_t>(steps_.size() - 2);
  return &steps_.back();
}

}  // namespace tfrkit
