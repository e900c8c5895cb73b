// Frames: reading, indexing and resynchronising on arbitrary bytes.
//
// Random mutation does not get past a checksum. So the first byte is the number of frames whose checksums are
// fixed before the bytes are read.
#include <algorithm>
#include <vector>

#include "core/frames/frame_reader.h"
#include "core/frames/frame_writer.h"
#include "core/frames/resync.h"
#include "fuzz/fuzz_target.h"

namespace tfrkit::fuzz {
namespace {

void RepairFrames(std::vector<uint8_t>* bytes, unsigned num_frames) {
  uint64_t offset = 0;
  for (unsigned i = 0; i < num_frames && bytes->size() - offset >= kFrameOverhead; ++i) {
    uint8_t* header = bytes->data() + offset;
    // Eight random bytes are nearly always a length past the end: keep the low two.
    StoreLE64(header, LoadLE64(header) & 0xffff);
    const uint64_t length = LoadLE64(header);
    StoreLE32(header + 8, MaskCrc(Crc32cOfU64(length)));
    if (length > bytes->size() - offset - kFrameOverhead) return;
    StoreLE32(header + kHeaderSize + length, MaskCrc(Crc32c({header + kHeaderSize, length})));
    offset += kFrameOverhead + length;
  }
}

void CheckMode(ByteView span, Verify verify) {
  const FrameRun run = CheckFrames(span, 0, UINT64_MAX, verify);
  Require(run.next <= span.size(), "a run ends inside the span");
  Require(static_cast<bool>(run.fault) == (run.next != span.size()), "a run ends at the end or at a fault");
  Require(!run.fault || run.fault.offset == run.next, "a frame fault lies where the run stopped");

  std::vector<uint64_t> offsets(run.num_frames);
  const FrameRun indexed = IndexFrames(span, 0, run.num_frames, verify, offsets.data());
  Require(indexed.num_frames == run.num_frames && indexed.next == run.next, "index and check agree");

  uint64_t offset = 0;
  for (const uint64_t indexed_offset : offsets) {
    Require(indexed_offset == offset, "frames follow each other");
    Frame frame;
    Require(!ReadFrame(span, offset, verify, &frame), "an indexed frame reads");
    unsigned sum = 0;
    for (const uint8_t byte : frame.payload) sum += byte;  // every byte of the view is readable
    Require(sum <= 255 * frame.payload.size(), "bytes are bytes");
    offset = frame.end;
  }
  Require(offset == run.next, "the last frame ends where the run does");
}

void CheckResync(ByteView span) {
  const ResyncResult final_result = FindNextFrame(span, 0, true);
  if (final_result.found) {
    Frame frame;
    Require(!ReadFrame(span, final_result.offset, Verify::kAll, &frame), "a found frame holds");
  }
  // No frame before the one that was found.
  const uint64_t stop = final_result.found ? final_result.offset : span.size();
  for (uint64_t offset = 0; offset < stop; ++offset) {
    Frame frame;
    Require(static_cast<bool>(ReadFrame(span, offset, Verify::kAll, &frame)),
            "no earlier frame is passed over");
  }
  // In windows of a complete span: the same frame.
  FrameSearch search(span);
  ResyncResult windowed;
  while (!windowed.found && windowed.offset < span.size()) {
    const uint64_t window_stop = std::min<uint64_t>(windowed.offset + 7, span.size());
    windowed = search.FindNext(windowed.offset, window_stop, true);
  }
  Require(windowed.found == final_result.found && windowed.offset == final_result.offset,
          "a search in windows finds the same frame");
  const FrameRun checked = CheckFrames(span, 0, UINT64_MAX, Verify::kAll);
  const FrameRun searched = search.CheckFrames(0, span.size(), UINT64_MAX);
  Require(checked.num_frames == searched.num_frames && checked.next == searched.next &&
              checked.resume == searched.resume && checked.fault.kind == searched.fault.kind,
          "a search checks frames as reading does");
  // In pieces, like a reader with a window: the same frame.
  ResyncResult piecewise = FindNextFrame(span.first(span.size() / 2), 0, false);
  if (!piecewise.found) piecewise = FindNextFrame(span, piecewise.offset, true);
  Require(piecewise.found == final_result.found, "a window finds what the whole does");
  Require(!piecewise.found || piecewise.offset == final_result.offset, "a window finds the same frame");
}

}  // namespace

int FuzzOne(ByteView input) {
  if (input.empty()) return 0;
  std::vector<uint8_t> bytes(input.begin() + 1, input.end());
  bytes.shrink_to_fit();
  RepairFrames(&bytes, input[0] % 8u);
  const ByteView span(bytes.data(), bytes.size());
  // One of these in each execution: all of them take four times as long and find no more.
  switch (input[0] >> 3 & 3) {
    case 0:
      CheckMode(span, Verify::kNone);
      break;
    case 1:
      CheckMode(span, Verify::kLengths);
      break;
    case 2:
      CheckMode(span, Verify::kAll);
      break;
    default:
      CheckResync(span);
  }

  PoolVector<uint8_t> framed;
  Require(AppendFrame(span, &framed), "a small frame can be written");
  Frame frame;
  Require(!ReadFrame({framed.data(), framed.size()}, 0, Verify::kAll, &frame), "a written frame reads");
  Require(frame.payload.size() == span.size(), "a written frame has its payload");
  return 0;
}

}  // namespace tfrkit::fuzz
