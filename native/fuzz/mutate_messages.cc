// Mutates the fields of protobuf messages instead of bytes: fields change, come, go and change places at any
// depth, and the lengths around them stay right.
#include <utility>
#include <vector>

#include "core/base/varint.h"
#include "core/wire/wire.h"
#include "fuzz/mutator.h"

namespace tfrkit::fuzz {
namespace {

struct Node {
  uint32_t number = 1;
  WireType type = WireType::kDelimited;
  uint64_t value = 0;
  Bytes bytes;              // of a delimited field or a group that is no message
  std::vector<Node> nodes;  // of one that is
  bool is_message = false;
};
using Nodes = std::vector<Node>;

constexpr int kMaxDepth = 8;

bool Parse(ByteView bytes, int depth, Nodes* nodes) {
  const uint8_t* const end = bytes.data() + bytes.size();
  for (const uint8_t* p = bytes.data(); p < end;) {
    Field field{};
    p = ReadField(p, end, &field);
    if (p == nullptr) return false;
    Node node;
    node.number = field.number;
    node.type = field.type;
    if (field.type == WireType::kDelimited || field.type == WireType::kGroupStart) {
      node.is_message = field.type == WireType::kDelimited && field.size >= 2 && depth < kMaxDepth &&
                        Parse(field.bytes(), depth + 1, &node.nodes);
      if (!node.is_message) {
        node.nodes.clear();
        node.bytes.assign(field.data, field.data + field.size);
      }
    } else {
      node.value = field.value;
    }
    nodes->push_back(std::move(node));
  }
  return true;
}

void AppendVarint(uint64_t value, size_t padding, Bytes* out) {
  uint8_t buffer[kMaxVarintSize];
  uint8_t* const stop = WriteVarint(buffer, value);
  out->insert(out->end(), buffer, stop);
  for (; padding > 0; --padding) {  // the same number in a longer form, which protobuf accepts, too
    out->back() |= 0x80;
    out->push_back(0);
  }
}

void Append(const Nodes& nodes, Chooser* chooser, Bytes* out) {
  for (const Node& node : nodes) {
    AppendVarint(static_cast<uint64_t>(node.number) << 3 | static_cast<uint8_t>(node.type), 0, out);
    switch (node.type) {
      case WireType::kVarint:
        AppendVarint(node.value, 0, out);
        break;
      case WireType::kFixed64:
      case WireType::kFixed32:
        for (size_t i = 0; i < (node.type == WireType::kFixed64 ? 8 : 4); ++i)
          out->push_back(static_cast<uint8_t>(node.value >> (8 * i)));
        break;
      case WireType::kGroupStart:
        out->insert(out->end(), node.bytes.begin(), node.bytes.end());
        break;
      default: {
        Bytes content = node.bytes;
        if (node.is_message) {
          content.clear();
          Append(node.nodes, chooser, &content);
        }
        AppendVarint(content.size(), chooser->Once(64) ? 1 + chooser->Below(3) : 0, out);
        out->insert(out->end(), content.begin(), content.end());
      }
    }
  }
}

// All lists of fields, outermost first.
void ListAll(Nodes* nodes, std::vector<Nodes*>* lists) {
  lists->push_back(nodes);
  for (Node& node : *nodes) {
    if (node.is_message) ListAll(&node.nodes, lists);
  }
}

void ChangeValue(Node* node, size_t room, Chooser* chooser) {
  if (node->is_message) {
    node->number = static_cast<uint32_t>(1 + chooser->Below(4));
  } else if (node->type == WireType::kDelimited) {
    MutateBytes(&node->bytes, room);
  } else if (chooser->Once(2)) {
    node->value = uint64_t{1} << chooser->Below(64);
  } else {
    node->value += chooser->Below(3) - 1;
  }
}

void Mutate(Nodes* root, size_t room, Chooser* chooser) {
  std::vector<Nodes*> lists;
  ListAll(root, &lists);
  Nodes& nodes = *lists[chooser->Below(lists.size())];
  Nodes& others = *lists[chooser->Below(lists.size())];
  if (nodes.empty()) {
    nodes.emplace_back();
    return;
  }
  const size_t at = chooser->Below(nodes.size());
  switch (chooser->Below(9)) {
    case 0:
      nodes.erase(nodes.begin() + static_cast<ptrdiff_t>(at));
      break;
    case 1:
      std::swap(nodes[at], nodes[chooser->Below(nodes.size())]);
      break;
    case 2: {  // a copy, here or elsewhere
      Node copy = nodes[at];
      others.insert(others.begin() + static_cast<ptrdiff_t>(chooser->Below(others.size() + 1)),
                    std::move(copy));
      break;
    }
    case 3:
      nodes[at].number =
          static_cast<uint32_t>(chooser->Once(8) ? 1 + chooser->Below(1u << 20) : 1 + chooser->Below(4));
      break;
    case 4: {
      constexpr WireType kTypes[] = {WireType::kVarint, WireType::kFixed64, WireType::kDelimited,
                                     WireType::kFixed32};
      nodes[at].type = kTypes[chooser->Below(4)];
      break;
    }
    case 5: {  // one message deeper
      Node outer;
      outer.is_message = true;
      outer.nodes.push_back(nodes[at]);
      nodes[at] = std::move(outer);
      break;
    }
    default:
      ChangeValue(&nodes[at], room, chooser);
  }
}

}  // namespace
}  // namespace tfrkit::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  using namespace tfrkit::fuzz;
  Chooser chooser(seed);
  Nodes nodes;
  if (size < 3 || chooser.Once(5) || !Parse({data + 1, size - 1}, 0, &nodes))
    return LLVMFuzzerMutate(data, size, max_size);
  do Mutate(&nodes, max_size - size, &chooser);
  while (chooser.Once(2));
  Bytes bytes;
  Append(nodes, &chooser, &bytes);
  return Replace(data, size, max_size, bytes);
}
