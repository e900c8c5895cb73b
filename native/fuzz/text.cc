// UTF-8 and text: words at a time against characters at a time.
#include <vector>

#include "core/base/utf8.h"
#include "fuzz/fuzz_target.h"
#include "fuzz/input.h"

namespace tfrkit::fuzz {
namespace {

// By decoding each character and encoding it again.
void CheckSlowly(ByteView bytes, bool* is_utf8, bool* is_text) {
  *is_utf8 = *is_text = true;
  for (size_t i = 0; i < bytes.size();) {
    const uint8_t lead = bytes[i];
    const size_t size = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
    if (size == 0 || size > bytes.size() - i) {
      *is_utf8 = *is_text = false;
      return;
    }
    uint32_t code = size == 1 ? lead : lead & (0x7fu >> size);
    bool is_sound = true;
    for (size_t k = 1; k < size; ++k) {
      is_sound &= bytes[i + k] >> 6 == 2;
      code = code << 6 | (bytes[i + k] & 0x3fu);
    }
    const size_t shortest = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    is_sound &= shortest == size && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
    if (!is_sound) {
      *is_utf8 = *is_text = false;
      return;
    }
    const bool is_control = code < 0x20 || (code >= 0x7f && code < 0xa0);
    if (is_control && code != '\t' && code != '\n' && code != '\r') *is_text = false;
    i += size;
  }
}

}  // namespace

int FuzzOne(ByteView input) {
  const std::vector<uint8_t> bytes(input.begin(), input.end());
  bool is_utf8, is_text;
  CheckSlowly(bytes, &is_utf8, &is_text);
  Require(IsUtf8(bytes) == is_utf8, "UTF-8 is recognised, and nothing else");
  Require(IsText(bytes) == is_text, "text is recognised, and nothing else");
  return 0;
}

}  // namespace tfrkit::fuzz
