// Tensors: what is accepted is exactly what a writer of its dtype, shape and content produces.
#include <string>
#include <vector>

#include "core/base/varint.h"
#include "core/wire/tensor_proto.h"
#include "core/wire/wire.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/input.h"

namespace tfrkit::fuzz {
namespace {

constexpr int32_t kString = 7;

void AppendVarint(uint64_t value, std::vector<uint8_t>* out) {
  uint8_t buffer[kMaxVarintSize];
  out->insert(out->end(), buffer, WriteVarint(buffer, value));
}

void AppendDelimited(uint8_t tag, ByteView content, std::vector<uint8_t>* out) {
  out->push_back(tag);
  AppendVarint(content.size(), out);
  out->insert(out->end(), content.begin(), content.end());
}

// As tf.io.serialize_tensor writes it, without strings.
std::vector<uint8_t> Write(const TensorHead& head) {
  std::vector<uint8_t> out = {TagByte(1, WireType::kVarint)}, shape;
  AppendVarint(static_cast<uint64_t>(head.dtype), &out);
  for (const int64_t size : head.shape) {
    std::vector<uint8_t> dim;
    if (size != 0) {
      dim.push_back(TagByte(1, WireType::kVarint));
      AppendVarint(static_cast<uint64_t>(size), &dim);
    }
    AppendDelimited(TagByte(2, WireType::kDelimited), dim, &shape);
  }
  AppendDelimited(TagByte(2, WireType::kDelimited), shape, &out);
  if (!head.content.empty()) AppendDelimited(TagByte(4, WireType::kDelimited), head.content, &out);
  return out;
}

}  // namespace

int FuzzOne(ByteView input) {
  if (input.empty()) return 0;
  const std::vector<uint8_t> bytes(input.begin() + 1, input.end());
  TensorHead head;
  if (!ReadStrictTensor(bytes, &head)) return 0;
  std::vector<uint8_t> written = Write(head);
  unsigned __int128 num_elements = 1;
  for (const int64_t size : head.shape) {
    Require(size >= 0, "tensor sizes are not negative");
    // Far above any size of an input, and below what would overflow.
    num_elements = num_elements > (unsigned __int128){1} << 64 && size != 0
                       ? num_elements
                       : num_elements * static_cast<uint64_t>(size);
  }
  if (head.dtype != kString) {
    Require(written == bytes, "a strict tensor is what a writer produces");
    Require(num_elements == 0 ? head.content.empty()
                              : head.content.size() % static_cast<size_t>(num_elements) == 0,
            "tensor content is whole elements");
    return 0;
  }
  Require(bytes.size() >= written.size() && std::equal(written.begin(), written.end(), bytes.begin()),
          "a strict tensor starts as a writer starts it");
  const uint8_t* const end = bytes.data() + bytes.size();
  size_t count = 0;
  for (const uint8_t* p = bytes.data() + written.size(); p < end; ++count) {
    Field field;
    p = ReadField(p, end, &field);
    Require(p != nullptr && field.Is(8, WireType::kDelimited), "strings follow the shape, and nothing else");
  }
  Require(count == num_elements, "there is a string for each element");
  return 0;
}

}  // namespace tfrkit::fuzz
