#include "core/frames/frame_writer.h"

#include <cstring>

#include "core/frames/crc32c.h"
#include "core/frames/frame_format.h"

namespace tfrkit {
namespace {

void StoreHeader(uint8_t* header, uint64_t length) {
  StoreLE64(header, length);
  StoreLE32(header + 8, MaskCrc(Crc32cOfU64(length)));
}

}  // namespace

bool AppendFrame(ByteView payload, PoolVector<uint8_t>* out) {
  const size_t start = out->size();
  uint64_t size;
  if (!CheckedAdd(payload.size(), kFrameOverhead, &size) || !CheckedAdd(size, start, &size)) return false;
  if (!out->Resize(size)) return false;
  uint8_t* frame = out->data() + start;
  StoreHeader(frame, payload.size());
  if (!payload.empty()) std::memcpy(frame + kHeaderSize, payload.data(), payload.size());
  StoreLE32(frame + kHeaderSize + payload.size(), MaskCrc(Crc32c(payload)));
  return true;
}

bool BeginFrame(PoolVector<uint8_t>* out, size_t* start) {
  *start = out->size();
  return out->Resize(out->size() + kHeaderSize);
}

bool FinishFrame(PoolVector<uint8_t>* out, size_t start) {
  const size_t stop = out->size();
  if (!out->Resize(stop + kFooterSize)) return false;
  uint8_t* frame = out->data() + start;
  const ByteView payload(frame + kHeaderSize, stop - start - kHeaderSize);
  StoreHeader(frame, payload.size());
  StoreLE32(out->data() + stop, MaskCrc(Crc32c(payload)));
  return true;
}

}  // namespace tfrkit
