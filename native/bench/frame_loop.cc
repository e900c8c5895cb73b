// Upper bound: a loop that maps a file, walks its frames, checks both checksums, and does nothing else.
//
//   frame_loop FILE [all|lengths|none|payloads] [repeats]
//
// Prints one JSON line. `seconds` is the best of the repeats; mapping the file and the page faults of
// the first touch are inside each repeat, because every reader of a file pays them.
//   payloads   only the checksum of each payload, from offsets found before the timing
//
// The loop does not use CheckFrames: it stops at the first fault and keeps nothing. It shares only
// the checksum kernel, called through a pointer taken once.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "core/base/bytes.h"
#include "core/frames/crc32c.h"
#include "core/frames/frame_format.h"

namespace {

using tfrkit::Crc32cVariant;
using tfrkit::LoadLE32;
using tfrkit::LoadLE64;
using tfrkit::MaskCrc;

struct Counts {
  uint64_t num_records = 0;
  uint64_t nbytes = 0;
  bool is_good = true;
};

const Crc32cVariant& FastestVariant() {
  const auto variants = tfrkit::Crc32cVariants();
  size_t index = variants.size() - 1;
  while (!variants[index].is_supported()) --index;
  return variants[index];
}

template <bool kLengths, bool kPayloads>
Counts WalkFrames(const uint8_t* data, uint64_t size, const Crc32cVariant& variant) {
  const auto extend = variant.extend;
  const auto of_u64 = variant.of_u64;
  Counts counts;
  uint64_t offset = 0;
  while (size - offset >= tfrkit::kFrameOverhead) {
    const uint8_t* header = data + offset;
    const uint64_t length = LoadLE64(header);
    if (kLengths && MaskCrc(of_u64(length)) != LoadLE32(header + 8)) break;
    if (length > size - offset - tfrkit::kFrameOverhead) break;
    const uint8_t* payload = header + tfrkit::kHeaderSize;
    if (kPayloads && MaskCrc(extend(0, payload, length)) != LoadLE32(payload + length)) break;
    offset += tfrkit::kFrameOverhead + length;
    ++counts.num_records;
  }
  counts.nbytes = offset;
  counts.is_good = offset == size;
  return counts;
}

Counts CheckPayloads(const uint8_t* data, const std::vector<uint64_t>& offsets,
                     const Crc32cVariant& variant) {
  const auto extend = variant.extend;
  Counts counts;
  for (const uint64_t offset : offsets) {
    const uint64_t length = LoadLE64(data + offset);
    const uint8_t* payload = data + offset + tfrkit::kHeaderSize;
    if (MaskCrc(extend(0, payload, length)) != LoadLE32(payload + length)) counts.is_good = false;
    ++counts.num_records;
    counts.nbytes += tfrkit::kFrameOverhead + length;
  }
  return counts;
}

std::vector<uint64_t> FindOffsets(const uint8_t* data, uint64_t size) {
  std::vector<uint64_t> offsets;
  uint64_t offset = 0;
  while (size - offset >= tfrkit::kFrameOverhead) {
    const uint64_t length = LoadLE64(data + offset);
    if (length > size - offset - tfrkit::kFrameOverhead) break;
    offsets.push_back(offset);
    offset += tfrkit::kFrameOverhead + length;
  }
  return offsets;
}

class MappedFile {
 public:
  MappedFile(int descriptor, uint64_t size) : size_(size) {
    if (size != 0) data_ = mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  ~MappedFile() {
    if (is_good() && size_ != 0) munmap(data_, size_);
  }
  bool is_good() const { return data_ != MAP_FAILED; }
  const uint8_t* data() const { return static_cast<const uint8_t*>(data_); }

 private:
  void* data_ = nullptr;
  uint64_t size_;
};

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 2 ? argv[2] : "all";
  const int repeats = argc > 3 ? std::atoi(argv[3]) : 5;
  if (argc < 2 || repeats < 1 ||
      (mode != "all" && mode != "lengths" && mode != "none" && mode != "payloads")) {
    std::fprintf(stderr, "usage: frame_loop FILE [all|lengths|none|payloads] [repeats]\n");
    return 2;
  }
  const int descriptor = open(argv[1], O_RDONLY | O_CLOEXEC);
  struct stat status;
  if (descriptor < 0 || fstat(descriptor, &status) != 0) {
    std::perror(argv[1]);
    return 3;
  }
  const auto size = static_cast<uint64_t>(status.st_size);
  const Crc32cVariant& variant = FastestVariant();

  std::vector<uint64_t> offsets;
  if (mode == "payloads") {
    const MappedFile file(descriptor, size);
    if (file.is_good()) offsets = FindOffsets(file.data(), size);
  }

  double best = 0;
  Counts counts;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    {
      const MappedFile file(descriptor, size);
      if (!file.is_good()) {
        std::perror(argv[1]);
        return 3;
      }
      if (mode == "all") counts = WalkFrames<true, true>(file.data(), size, variant);
      if (mode == "lengths") counts = WalkFrames<true, false>(file.data(), size, variant);
      if (mode == "none") counts = WalkFrames<false, false>(file.data(), size, variant);
      if (mode == "payloads") counts = CheckPayloads(file.data(), offsets, variant);
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (repeat == 0 || seconds < best) best = seconds;
  }
  close(descriptor);
  std::printf("{\"name\": \"frame_loop\", \"mode\": \"%s\", \"crc32c\": \"%s\", \"records\": %" PRIu64
              ", \"bytes\": %" PRIu64 ", \"seconds\": %.6f, \"good\": %s}\n",
              mode.c_str(), variant.name, counts.num_records, counts.nbytes, best,
              counts.is_good ? "true" : "false");
  return counts.is_good ? 0 : 1;
}
