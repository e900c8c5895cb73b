// Recognising a serialized tensorflow.TensorProto by structure alone.
#pragma once

#include <cstdint>
#include <vector>

#include "core/base/bytes.h"

namespace tfrkit {

struct TensorHead {
  int32_t dtype = 0;  // tensorflow.DataType
  std::vector<int64_t> shape;
  ByteView content;  // tensor_content; empty for strings
};

// True when `bytes` is exactly what tf.io.serialize_tensor and our writer produce: dtype (a known
// number), tensor_shape (every dim one size >= 0, no names), then tensor_content whose size is the
// number of elements times the element size (absent when there are no elements); or, for DT_STRING,
// that many string_val fields. In this order, minimal varints, nothing else. Never fails on any input.
bool ReadStrictTensor(ByteView bytes, TensorHead* head);

}  // namespace tfrkit
