#include "core/images/jpeg_header.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace tfrkit {
namespace {

constexpr uint8_t kStartOfImage = 0xd8;
constexpr uint8_t kEndOfImage = 0xd9;
constexpr uint8_t kStartOfScan = 0xda;
constexpr uint8_t kExifSegment = 0xe1;
constexpr std::string_view kExifName{"Exif\0\0", 6};
constexpr uint16_t kOrientationTag = 0x0112;
constexpr uint16_t kShortType = 3;

uint16_t LoadBE16(const uint8_t* p) { return static_cast<uint16_t>(p[0] << 8 | p[1]); }

// TEM, RST0..RST7, SOI: no length follows.
bool IsBare(uint8_t marker) { return marker == 0x01 || (marker >= 0xd0 && marker <= kStartOfImage); }

// C0..CF without DHT, JPG and DAC.
bool IsFrameHeader(uint8_t marker) {
  return marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc;
}

// Integers of either byte order out of a span; bytes outside read as 0.
class TiffReader {
 public:
  explicit TiffReader(ByteView bytes) : bytes_(bytes), is_big_(bytes.size() >= 1 && bytes[0] == 'M') {}

  bool IsTiff() const {
    return bytes_.size() >= 8 && bytes_[0] == bytes_[1] && (is_big_ || bytes_[0] == 'I');
  }

  uint32_t At(uint64_t offset, size_t size) const {
    if (offset > bytes_.size() || bytes_.size() - offset < size) return 0;
    uint32_t value = 0;
    for (size_t i = 0; i < size; ++i) value = value << 8 | bytes_[offset + (is_big_ ? i : size - 1 - i)];
    return value;
  }

 private:
  ByteView bytes_;
  bool is_big_;
};

uint8_t ReadOrientation(ByteView exif) {
  const TiffReader tiff(exif);
  if (!tiff.IsTiff()) return 1;
  const uint64_t directory = tiff.At(4, 4);
  const uint32_t num_entries = tiff.At(directory, 2);
  for (uint32_t i = 0; i < num_entries; ++i) {
    const uint64_t entry = directory + 2 + 12 * uint64_t{i};
    if (entry + 12 > exif.size()) return 1;
    if (tiff.At(entry, 2) != kOrientationTag) continue;
    const uint32_t value = tiff.At(entry + 8, 2);
    const bool is_known = tiff.At(entry + 2, 2) == kShortType && value >= 1 && value <= 8;
    return is_known ? static_cast<uint8_t>(value) : 1;
  }
  return 1;
}

// Steps from marker to marker. Stray bytes between segments are skipped, as decoders do.
class SegmentReader {
 public:
  explicit SegmentReader(ByteView bytes) : bytes_(bytes), offset_(2) {}

  // False at the end of the bytes, or where a segment reaches past it. A bare marker has no content.
  bool Next(uint8_t* marker, ByteView* content) {
    while (true) {
      if (offset_ >= bytes_.size()) return false;
      const void* found = std::memchr(bytes_.data() + offset_, 0xff, bytes_.size() - offset_);
      if (found == nullptr) return false;
      offset_ = static_cast<size_t>(static_cast<const uint8_t*>(found) - bytes_.data());
      while (offset_ < bytes_.size() && bytes_[offset_] == 0xff) ++offset_;  // fill bytes
      if (offset_ >= bytes_.size()) return false;
      *marker = bytes_[offset_++];
      if (*marker != 0) break;  // FF 00 stands for a byte FF in entropy-coded data
    }
    *content = {};
    if (IsBare(*marker) || *marker == kEndOfImage) return true;
    if (bytes_.size() - offset_ < 2) return false;
    const size_t size = LoadBE16(bytes_.data() + offset_);
    if (size < 2 || size > bytes_.size() - offset_) return false;
    *content = bytes_.subspan(offset_ + 2, size - 2);
    offset_ += size;
    return true;
  }

 private:
  ByteView bytes_;
  size_t offset_;
};

bool StartsAsJpeg(ByteView bytes) {
  return bytes.size() >= 3 && bytes[0] == 0xff && bytes[1] == kStartOfImage;
}

}  // namespace

bool ReadJpegHeader(ByteView bytes, JpegHeader* header) {
  *header = JpegHeader{};
  if (!StartsAsJpeg(bytes)) return false;
  SegmentReader segments(bytes);
  uint8_t marker;
  ByteView content;
  bool has_exif = false;
  while (segments.Next(&marker, &content)) {
    if (IsFrameHeader(marker)) {
      if (content.size() < 6) return false;
      header->bits = content[0];
      header->height = LoadBE16(content.data() + 1);
      header->width = LoadBE16(content.data() + 3);
      header->num_components = content[5];
      header->is_progressive = marker == 0xc2 || marker == 0xc6 || marker == 0xca || marker == 0xce;
      return true;
    }
    if (marker == kStartOfScan || marker == kEndOfImage) return false;  // a scan before any frame is damage
    if (marker == kExifSegment && !has_exif && content.size() >= kExifName.size() &&
        std::equal(kExifName.begin(), kExifName.end(), content.begin())) {
      has_exif = true;
      header->orientation = ReadOrientation(content.subspan(kExifName.size()));
    }
  }
  return false;
}

JpegScans WalkJpegScans(ByteView bytes) {
  JpegScans scans;
  if (!StartsAsJpeg(bytes)) return scans;
  SegmentReader segments(bytes);
  uint8_t marker;
  ByteView content;
  while (segments.Next(&marker, &content)) {
    if (marker == kEndOfImage) {
      scans.has_end = true;
      break;
    }
    scans.num_scans += marker == kStartOfScan;
  }
  return scans;
}

}  // namespace tfrkit
