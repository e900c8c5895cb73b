#include "core/wire/tensor_proto.h"

#include "tests/check.h"
#include "tests/hex.h"

namespace tfrkit::test {
namespace {

bool IsTensor(std::string_view hex) {
  TensorHead head;
  return ReadStrictTensor(Hex(hex), &head);
}

}  // namespace

// The accepted bytes here were written by tf.io.serialize_tensor.
TEST(TensorProto, SerializedTensorsAreRead) {
  TensorHead head;
  const std::vector<uint8_t> scalar = Hex("08 01 12 00 22 04 00 00 80 3f");
  REQUIRE(ReadStrictTensor(scalar, &head));
  CHECK_EQ(head.dtype, 1);
  CHECK(head.shape.empty());
  CHECK_EQ(Copy(head.content), Hex("00 00 80 3f"));

  const std::vector<uint8_t> matrix = Hex("08 06 12 08 12 02 08 02 12 02 08 03 22 06 01 02 03 04 05 06");
  REQUIRE(ReadStrictTensor(matrix, &head));
  CHECK_EQ(head.dtype, 6);
  CHECK_EQ(head.shape, (std::vector<int64_t>{2, 3}));
  CHECK_EQ(Copy(head.content), Hex("01 02 03 04 05 06"));
}

TEST(TensorProto, NoElementsMeansNoContent) {
  TensorHead head;
  REQUIRE(ReadStrictTensor(Hex("08 01 12 0a 12 02 08 02 12 00 12 02 08 03"), &head));
  CHECK_EQ(head.shape, (std::vector<int64_t>{2, 0, 3}));
  CHECK(head.content.empty());
  CHECK(!IsTensor("08 01 12 02 12 00 22 00"));
  CHECK(!IsTensor("08 01 12 02 12 00 22 04 00 00 00 00"));
  CHECK(!IsTensor("08 01 12 00"));  // a scalar has one element
}

TEST(TensorProto, StringsAreCounted) {
  TensorHead head;
  REQUIRE(ReadStrictTensor(Hex("08 07 12 04 12 02 08 02 42 02 'ab' 42 00"), &head));
  CHECK_EQ(head.dtype, 7);
  CHECK_EQ(head.shape, (std::vector<int64_t>{2}));
  CHECK(head.content.empty());
  CHECK(IsTensor("08 07 12 00 42 02 'ab'"));
  CHECK(IsTensor("08 07 12 02 12 00"));
  CHECK(!IsTensor("08 07 12 04 12 02 08 02 42 02 'ab'"));
  CHECK(!IsTensor("08 07 12 00 42 03 'ab'"));
  CHECK(!IsTensor("08 07 12 00 22 02 'ab'"));
}

TEST(TensorProto, EveryElementSizeIsKnown) {
  const size_t sizes[] = {0, 4, 8, 4, 1, 2, 1, 0, 8, 8, 1, 0, 0, 0, 2, 0, 0, 2, 16, 2, 0, 0, 4, 8, 0, 0};
  for (uint8_t dtype = 0; dtype < std::size(sizes); ++dtype) {
    for (uint8_t size = 1; size <= 17; ++size) {
      const std::vector<uint8_t> bytes =
          Join({Hex("08"), {dtype}, Hex("12 00"), Delimited(0x22, std::vector<uint8_t>(size, 1))});
      TensorHead head;
      CHECK_EQ(ReadStrictTensor(bytes, &head), size == sizes[dtype]);
    }
  }
}

TEST(TensorProto, AnythingElseIsRefused) {
  for (const char* hex : {
           "",
           "08",
           "08 01",
           "12 00",
           "08 01 22 04 00 00 80 3f",                              // no shape
           "12 00 08 01 22 04 00 00 80 3f",                        // another order
           "08 01 12 00 22 03 00 00 80",                           // another size
           "08 01 12 00 22 04 00 00 80 3f 00",                     // something after
           "08 01 12 00 22 04 00 00 80 3f 18 01",                  // another field
           "08 81 00 12 00 22 04 00 00 80 3f",                     // a padded dtype
           "08 01 12 80 00 22 04 00 00 80 3f",                     // a padded length
           "08 01 12 02 18 01 22 04 00 00 80 3f",                  // unknown_rank
           "08 01 12 07 12 05 08 01 12 01 'n' 22 04 00 00 80 3f",  // a named dimension
           "08 01 12 04 12 02 08 00",                              // a size of 0 is not written
           "08 01 12 0d 12 0b 08 ff ff ff ff ff ff ff ff ff 01",   // a size of -1
           "08 01 12 00 2d 00 00 80 3f",                           // float_val
       }) {
    CHECK(!IsTensor(hex));
  }
}

TEST(TensorProto, OverflowingShapeIsRefused) {
  // 2^32 x 2^32 elements would overflow to zero.
  CHECK(!IsTensor("08 04 12 10 12 06 08 80 80 80 80 10 12 06 08 80 80 80 80 10"));
  CHECK(!IsTensor("08 02 12 0c 12 0a 08 80 80 80 80 80 80 80 80 20"));                   // 2^61 x 8 bytes
  CHECK(IsTensor("08 04 12 12 12 06 08 80 80 80 80 10 12 06 08 80 80 80 80 10 12 00"));  // and then x 0
}

TEST(TensorProto, EveryCutIsRefused) {
  const std::vector<uint8_t> whole = Hex("08 06 12 08 12 02 08 02 12 02 08 03 22 06 01 02 03 04 05 06");
  for (size_t size = 0; size < whole.size(); ++size) {
    TensorHead head;
    CHECK(!ReadStrictTensor(ExactCopy({whole.data(), size}), &head));
  }
}

}  // namespace tfrkit::test
