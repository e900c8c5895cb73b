#include "core/wire/tensor_proto.h"

#include <iterator>

#include "core/base/varint.h"
#include "core/wire/wire.h"

namespace tfrkit {
namespace {

// Fields of tensorflow.TensorProto, TensorShapeProto and TensorShapeProto.Dim.
constexpr uint8_t kDtypeTag = TagByte(1, WireType::kVarint);
constexpr uint8_t kShapeTag = TagByte(2, WireType::kDelimited);
constexpr uint8_t kContentTag = TagByte(4, WireType::kDelimited);
constexpr uint8_t kStringTag = TagByte(8, WireType::kDelimited);
constexpr uint8_t kDimTag = TagByte(2, WireType::kDelimited);
constexpr uint8_t kSizeTag = TagByte(1, WireType::kVarint);

constexpr size_t kMaxRank = 254;  // TensorFlow's
constexpr uint64_t kString = 7;   // DT_STRING

// Bytes of one element in tensor_content by tensorflow.DataType; 0: a type that tf.io.serialize_tensor
// refuses (quantized, 4 and 8 bit), or that has no content.
constexpr uint8_t kElementSizes[] = {
    0, 4, 8,  4, 1, 2, 1, 0,  // invalid, float, double, int32, uint8, int16, int8, string
    8, 8, 1,  0, 0, 0, 2, 0,  // complex64, int64, bool, qint8, quint8, qint32, bfloat16, qint16
    0, 2, 16, 2, 0, 0, 4, 8,  // quint16, uint16, complex128, half, resource, variant, uint32, uint64
};

// A varint in its shortest form.
const uint8_t* ReadMinimal(const uint8_t* p, const uint8_t* end, uint64_t* value) {
  const uint8_t* const start = p;
  p = ReadVarint(p, end, value);
  if (p == nullptr || static_cast<size_t>(p - start) != VarintSize(*value)) return nullptr;
  return p;
}

const uint8_t* ReadDelimited(const uint8_t* p, const uint8_t* end, uint8_t tag, ByteView* content) {
  if (p == end || *p != tag) return nullptr;
  uint64_t size;
  p = ReadMinimal(p + 1, end, &size);
  if (p == nullptr || size > static_cast<uint64_t>(end - p)) return nullptr;
  *content = ByteView(p, static_cast<size_t>(size));
  return p + size;
}

bool ReadShape(ByteView bytes, std::vector<int64_t>* shape, uint64_t* num_elements) {
  const uint8_t* p = bytes.data();
  const uint8_t* const end = p + bytes.size();
  uint64_t product = 1;
  bool has_overflowed = false, has_zero = false;
  while (p < end) {
    ByteView dim;
    p = ReadDelimited(p, end, kDimTag, &dim);
    if (p == nullptr || shape->size() == kMaxRank) return false;
    uint64_t size = 0;  // a size of 0 is not written
    if (!dim.empty()) {
      if (dim[0] != kSizeTag) return false;
      const uint8_t* const dim_end = dim.data() + dim.size();
      if (ReadMinimal(dim.data() + 1, dim_end, &size) != dim_end) return false;
      if (size == 0 || size > static_cast<uint64_t>(INT64_MAX)) return false;
    }
    shape->push_back(static_cast<int64_t>(size));
    // Any size of 0 makes the product 0, also after an overflow.
    if (size == 0) {
      has_zero = true;
    } else if (!has_overflowed) {
      has_overflowed = !CheckedMul(product, size, &product);
    }
  }
  *num_elements = has_zero ? 0 : product;
  return has_zero || !has_overflowed;
}

bool ReadStrings(const uint8_t* p, const uint8_t* end, uint64_t num_elements) {
  uint64_t count = 0;
  while (p < end) {
    ByteView value;
    p = ReadDelimited(p, end, kStringTag, &value);
    if (p == nullptr) return false;
    ++count;
  }
  return count == num_elements;
}

}  // namespace

bool ReadStrictTensor(ByteView bytes, TensorHead* head) {
  const uint8_t* p = bytes.data();
  const uint8_t* const end = p + bytes.size();
  if (p == end || *p != kDtypeTag) return false;
  uint64_t dtype;
  p = ReadMinimal(p + 1, end, &dtype);
  if (p == nullptr || dtype >= std::size(kElementSizes)) return false;
  const uint8_t element_size = kElementSizes[dtype];
  if (element_size == 0 && dtype != kString) return false;

  ByteView shape_bytes;
  p = ReadDelimited(p, end, kShapeTag, &shape_bytes);
  if (p == nullptr) return false;
  head->shape.clear();
  uint64_t num_elements;
  if (!ReadShape(shape_bytes, &head->shape, &num_elements)) return false;
  head->dtype = static_cast<int32_t>(dtype);
  head->content = ByteView();
  if (dtype == kString) return ReadStrings(p, end, num_elements);

  if (p < end) {
    p = ReadDelimited(p, end, kContentTag, &head->content);
    if (p != end || head->content.empty()) return false;
  }
  uint64_t content_size;
  return CheckedMul(num_elements, element_size, &content_size) && content_size == head->content.size();
}

}  // namespace tfrkit
