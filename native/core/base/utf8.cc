#include "core/base/utf8.h"

namespace tfrkit {
namespace {

bool IsContinuation(uint8_t byte) { return (byte & 0xc0) == 0x80; }

// The size of the well-formed sequence of two to four bytes at `p`, or 0. Table 3-7 of the Unicode standard.
size_t SequenceSize(const uint8_t* p, size_t left) {
  const uint8_t lead = p[0];
  if (lead < 0xc2 || lead > 0xf4 || left < 2) return 0;
  if (lead < 0xe0) return IsContinuation(p[1]) ? 2 : 0;
  uint8_t low = 0x80, high = 0xbf;
  if (lead == 0xe0) low = 0xa0;   // shorter forms exist
  if (lead == 0xed) high = 0x9f;  // surrogates
  if (lead == 0xf0) low = 0x90;   // shorter forms exist
  if (lead == 0xf4) high = 0x8f;  // above U+10FFFF
  if (p[1] < low || p[1] > high || left < 3 || !IsContinuation(p[2])) return 0;
  if (lead < 0xf0) return 3;
  return left >= 4 && IsContinuation(p[3]) ? 4 : 0;
}

bool IsPlain(uint8_t byte) {
  return byte >= 0x20 ? byte != 0x7f : byte == '\t' || byte == '\n' || byte == '\r';
}

// Eight bytes that are all 0x20 to 0x7e.
bool IsPlainWord(uint64_t word) {
  constexpr uint64_t kOnes = 0x0101010101010101u;
  const uint64_t below_space = (word - 0x20 * kOnes);
  const uint64_t is_delete = (word ^ 0x7f * kOnes) - kOnes;
  return ((word | below_space | is_delete) & (0x80 * kOnes)) == 0;
}

template <bool kOnlyText>
bool Check(ByteView bytes) {
  const uint8_t* p = bytes.data();
  const uint8_t* const end = p + bytes.size();
  while (p < end) {
    if (end - p >= 8) {
      const uint64_t word = LoadLE64(p);
      if (kOnlyText ? IsPlainWord(word) : (word & 0x8080808080808080u) == 0) {
        p += 8;
        continue;
      }
    }
    // Line ends and accents are rare between ASCII runs: skip one, then test whole words again.
    if (*p < 0x80) {
      if (kOnlyText && !IsPlain(*p)) return false;
      ++p;
      continue;
    }
    const size_t size = SequenceSize(p, static_cast<size_t>(end - p));
    if (size == 0) return false;
    if (kOnlyText && p[0] == 0xc2 && p[1] < 0xa0) return false;  // U+0080 to U+009F are controls
    p += size;
  }
  return true;
}

}  // namespace

bool IsUtf8(ByteView bytes) { return Check<false>(bytes); }

bool IsText(ByteView bytes) { return Check<true>(bytes); }

}  // namespace tfrkit
