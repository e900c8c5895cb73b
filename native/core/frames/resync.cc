#include "core/frames/resync.h"

#include <algorithm>

#include "core/frames/crc32c.h"
#include "core/frames/crc32c_algebra.h"
#include "core/frames/frame_format.h"

namespace tfrkit {
namespace {

// The first offset before `stop` where the eight bytes are no more than `max_length`, or `stop`. Random bytes
// are mostly an absurd length, so most offsets cost a comparison and no checksum.
uint64_t SkipAbsurdLengths(ByteView span, uint64_t offset, uint64_t stop, uint64_t max_length) {
  while (offset < stop && LoadLE64(span.data() + offset) > max_length) ++offset;
  return offset;
}

}  // namespace

uint32_t FrameSearch::Extend(uint32_t crc, uint64_t start, uint64_t size) {
  num_checked_ += size;
  return ExtendCrc32c(crc, span_.data() + start, size);
}

uint32_t FrameSearch::Prefix(uint64_t stop) {
  const uint64_t step = stop / kStep;
  return Extend(prefixes_[step], step * kStep, stop % kStep);
}

uint32_t FrameSearch::Checksum(uint64_t start, uint64_t stop) {
  const uint64_t size = stop - start;
  if (size <= kDirect || !SpendOrBuild(size)) return Extend(0, start, size);
  // crc(prefix + part) = crc(prefix) moved past the part ^ crc(part)
  return Prefix(stop) ^ crc32c_internal::AppendZeros(Prefix(start), size);
}

// False while direct checks are still cheap overall, or when memory is exhausted.
bool FrameSearch::SpendOrBuild(uint64_t size) {
  if (!prefixes_.empty()) return true;
  if (is_exhausted_) return false;
  // Twice the span: accidental damage never uses it up.
  if (size <= 2 * span_.size() - std::min<uint64_t>(num_spent_, 2 * span_.size())) {
    num_spent_ += size;
    return false;
  }
  const uint64_t num_steps = span_.size() / kStep + 1;
  if (!prefixes_.Resize(num_steps)) {
    is_exhausted_ = true;
    return false;
  }
  uint32_t crc = 0;
  for (uint64_t i = 0; i < num_steps; ++i) {
    prefixes_[i] = crc;
    if (i + 1 < num_steps) crc = Extend(crc, i * kStep, kStep);
  }
  return true;
}

ResyncResult FrameSearch::FindNext(uint64_t offset, uint64_t stop, bool is_final, uint64_t max_length) {
  max_length = std::min(max_length, is_final ? span_.size() : kMaxLength);
  // A header needs all its bytes.
  const uint64_t last = span_.size() < kHeaderSize ? 0 : span_.size() - kHeaderSize + 1;
  for (; offset < std::min(stop, last); ++offset) {
    offset = SkipAbsurdLengths(span_, offset, std::min(stop, last), max_length);
    if (offset >= std::min(stop, last)) break;
    const uint8_t* header = span_.data() + offset;
    const uint64_t length = LoadLE64(header);
    if (MaskCrc(Crc32cOfU64(length)) != LoadLE32(header + 8)) continue;
    const uint64_t after_header = span_.size() - offset - kHeaderSize;
    if (after_header < kFooterSize || length > after_header - kFooterSize) {
      if (is_final) continue;
      return {false, offset};
    }
    const uint64_t start = offset + kHeaderSize;
    const uint32_t stored = LoadLE32(span_.data() + start + length);
    if (MaskCrc(Checksum(start, start + length)) == stored) return {true, offset};
  }
  return {false, is_final ? stop : std::min<uint64_t>(offset, span_.size())};
}

FrameRun FrameSearch::CheckFrames(uint64_t offset, uint64_t stop, uint64_t max_frames) {
  FrameRun run{0, offset, 0, {}};
  const ByteView span = span_.first(stop);
  while (run.num_frames < max_frames && run.next != stop) {
    Frame frame;
    run.fault = ReadFrame(span, run.next, Verify::kLengths, &frame);
    if (run.fault) break;
    const uint64_t start = run.next + kHeaderSize;
    const uint32_t stored = LoadLE32(frame.payload.data() + frame.payload.size());
    const uint32_t computed = MaskCrc(Checksum(start, start + frame.payload.size()));
    if (stored != computed) {
      run.fault = {FaultKind::kPayloadChecksum, -1, run.next, stored, computed};
      run.resume = frame.end;
      break;
    }
    ++run.num_frames;
    run.next = frame.end;
  }
  return run;
}

ResyncResult FindNextFrame(ByteView span, uint64_t offset, bool is_final) {
  return FrameSearch(span).FindNext(offset, span.size(), is_final);
}

}  // namespace tfrkit
