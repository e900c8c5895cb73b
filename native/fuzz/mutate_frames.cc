// Mutates frames instead of bytes: payloads change, frames come, go and change places, and lengths and
// checksums stay right, except for a few that lie.
#include <utility>
#include <vector>

#include "core/frames/crc32c.h"
#include "core/frames/frame_format.h"
#include "fuzz/mutator.h"

namespace tfrkit::fuzz {
namespace {

struct Content {
  std::vector<Bytes> payloads;
  Bytes tail;  // what is no frame
};

Content Parse(const uint8_t* p, size_t size) {
  Content content;
  while (size >= kFrameOverhead) {
    const uint64_t length = LoadLE64(p);
    if (length > size - kFrameOverhead) break;
    content.payloads.emplace_back(p + kHeaderSize, p + kHeaderSize + length);
    p += kFrameOverhead + length;
    size -= kFrameOverhead + length;
  }
  content.tail.assign(p, p + size);
  return content;
}

void Append(const Bytes& payload, uint64_t length, uint32_t damage, Bytes* out) {
  const size_t start = out->size();
  out->resize(start + kFrameOverhead + payload.size());
  uint8_t* const p = out->data() + start;
  StoreLE64(p, length);
  StoreLE32(p + 8, MaskCrc(Crc32cOfU64(length)));
  for (size_t i = 0; i < payload.size(); ++i) p[kHeaderSize + i] = payload[i];
  StoreLE32(p + kHeaderSize + payload.size(), MaskCrc(Crc32c(payload)) ^ damage);
}

void Mutate(Content* content, size_t room, Chooser* chooser) {
  std::vector<Bytes>& payloads = content->payloads;
  const size_t count = payloads.size();
  if (count == 0) {
    payloads.emplace_back();
    return;
  }
  const size_t at = chooser->Below(count), other = chooser->Below(count);
  switch (chooser->Below(8)) {
    case 0:
      payloads.erase(payloads.begin() + static_cast<ptrdiff_t>(at));
      break;
    case 1:
      payloads.insert(payloads.begin() + static_cast<ptrdiff_t>(other), Bytes(payloads[at]));
      break;
    case 2:
      std::swap(payloads[at], payloads[other]);
      break;
    case 3:
      payloads.insert(payloads.begin() + static_cast<ptrdiff_t>(at), Bytes());
      break;
    case 4:
      MutateBytes(&content->tail, room);
      break;
    case 5: {  // a frame inside a payload: the hard case for a search
      Bytes inner;
      Append(payloads[other], payloads[other].size(), 0, &inner);
      payloads[at].insert(payloads[at].end(), inner.begin(), inner.end());
      break;
    }
    default:
      MutateBytes(&payloads[at], room);
  }
}

}  // namespace
}  // namespace tfrkit::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  using namespace tfrkit::fuzz;
  Chooser chooser(seed);
  if (size < 2 || chooser.Once(4)) return LLVMFuzzerMutate(data, size, max_size);
  Content content = Parse(data + 1, size - 1);
  do Mutate(&content, max_size - size, &chooser);
  while (chooser.Once(2));
  Bytes bytes;
  for (const Bytes& payload : content.payloads) {
    const bool lies = chooser.Once(32), is_damaged = chooser.Once(32);
    const uint64_t length = lies ? payload.size() + chooser.Below(64) - 16 : payload.size();
    Append(payload, length, is_damaged ? 1u << chooser.Below(32) : 0, &bytes);
  }
  bytes.insert(bytes.end(), content.tail.begin(), content.tail.end());
  return Replace(data, size, max_size, bytes);
}
