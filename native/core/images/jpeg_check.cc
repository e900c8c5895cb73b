#include "core/images/jpeg_check.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>

namespace tfrkit {

namespace {

constexpr uint8_t kMarker = 0xFF;
constexpr uint8_t kStartOfImage = 0xD8;
constexpr uint8_t kEndOfImage = 0xD9;
constexpr uint8_t kStartOfScan = 0xDA;
constexpr uint8_t kQuantization = 0xDB;
constexpr uint8_t kHuffman = 0xC4;
constexpr uint8_t kRestartInterval = 0xDD;
constexpr uint8_t kFirstRestart = 0xD0;
constexpr uint8_t kBaseline = 0xC0;
constexpr uint8_t kExtended = 0xC1;
constexpr uint8_t kFirstApplication = 0xE0;
constexpr uint8_t kComment = 0xFE;

constexpr int kMaxComponents = 3;
constexpr int kBlockSize = 64;
// Codes of up to this many bits, nearly all, take one lookup.
constexpr int kPeekBits = 9;
// All coefficients within this many bits, two on average, take one lookup. The tables of luma and chroma
// together take half of the L1 cache.
constexpr int kRunBits = 12;
constexpr int kRunsAtOnce = 56 / kRunBits;
constexpr int kMaxCodeBits = 16;
// Added to the position at the end of a block; larger than any run.
constexpr uint32_t kEndOfBlock = 128;
// Added for bits without a whole coefficient, so that one comparison detects them.
constexpr uint32_t kNoRun = 255;
// Zero padding after coded data: a block of the longest codes, 64 times 16 + 15 bits, and a word.
constexpr size_t kSpareBytes = 256 + 8;

// Copies coded data up to the next marker without the stuffed zero after each FF. Returns the position of the
// marker; `*copied` is the end of the copy.
const uint8_t* CopyCodes(const uint8_t* data, const uint8_t* stop, uint8_t* out, uint8_t** copied) {
  while (data < stop) {
    const size_t left = static_cast<size_t>(stop - data);
    const auto* const found = static_cast<const uint8_t*>(std::memchr(data, kMarker, left));
    const size_t count = found == nullptr ? left : static_cast<size_t>(found - data);
    std::memcpy(out, data, count);
    out += count;
    data += count;
    if (found == nullptr || stop - data < 2 || data[1] != 0) break;
    *out++ = kMarker;
    data += 2;
  }
  *copied = out;
  return data;
}

// Bits of one run of unstuffed coded data, from the top of `bits`. REQUIRES: kSpareBytes after it.
class BitReader {
 public:
  BitReader(const uint8_t* data, const uint8_t* stop) : next_(data), stop_(stop) {}

  uint32_t Peek(int count) const { return static_cast<uint32_t>(bits_ >> (64 - count)); }
  void Skip(uint32_t count) {
    bits_ <<= count;
    num_bits_ -= count;
  }

  // At least 56 bits from here on.
  void Fill() {
    uint64_t eight;
    std::memcpy(&eight, next_, 8);
    if constexpr (std::endian::native == std::endian::little) eight = __builtin_bswap64(eight);
    // Bits already present are loaded again, with the same values.
    bits_ |= eight >> num_bits_;
    next_ += (63 - num_bits_) >> 3;
    num_bits_ |= 56;
  }

  // Remaining bits; negative after reading past the end.
  int64_t CountLeft() const { return 8 * (stop_ - next_) + static_cast<int64_t>(num_bits_); }

 private:
  const uint8_t* next_;
  const uint8_t* stop_;
  uint64_t bits_ = 0;
  uint32_t num_bits_ = 0;  // below 64
};

// Codes of one table. An entry has the bits to skip in its low byte and what to add to the position above it.
struct CodeTable {
  std::array<uint32_t, 1 << kPeekBits> fast{};
  // For longer codes: the first one of each length, left-aligned to 16 bits, where they end, and their
  // entries.
  std::array<uint32_t, kMaxCodeBits + 2> first{};
  std::array<uint32_t, kMaxCodeBits + 1> last{};
  std::array<uint32_t, kMaxCodeBits + 1> start{};
  std::array<uint32_t, 256> entries{};
  // The sum of all entries that are complete within these bits, up to the end of a block. Not for first
  // coefficients.
  std::array<uint16_t, 1 << kRunBits> runs{};

  // 0 for invalid codes.
  uint32_t Find(uint32_t bits) const {
    const uint32_t entry = fast[bits >> (kMaxCodeBits - kPeekBits)];
    return entry != 0 ? entry : FindLong(bits);
  }

  uint32_t FindLong(uint32_t bits) const {
    for (int length = kPeekBits + 1; length <= kMaxCodeBits; ++length) {
      if (bits >= first[length] && bits < last[length]) {
        return entries[start[length] + ((bits - first[length]) >> (kMaxCodeBits - length))];
      }
    }
    return 0;
  }

  void FillRuns() {
    for (uint32_t bits = 0; bits < runs.size(); ++bits) {
      uint32_t sum = 0;
      // The lookup index is padded with zeros; codes that extend into the padding do not fit and are not
      // counted.
      for (uint32_t left = bits << (kMaxCodeBits - kRunBits); sum >> 8 < kBlockSize;) {
        const uint32_t entry = Find(left);
        if (entry == 0 || (sum & 0xFF) + (entry & 0xFF) > kRunBits) break;
        sum += entry;
        left = (left << (entry & 0xFF)) & 0xFFFF;
      }
      runs[bits] = static_cast<uint16_t>(sum != 0 ? sum : kNoRun << 8);
    }
  }
};

uint32_t MakeEntry(int length, uint8_t symbol, bool is_dc) {
  const int size = is_dc ? symbol : symbol & 15;
  const int run = symbol >> 4;
  uint32_t step = 0;
  if (!is_dc) step = size != 0 ? static_cast<uint32_t>(run) + 1 : run == 15 ? 16 : kEndOfBlock;
  return static_cast<uint32_t>(length + size) | (step << 8);
}

// Fills a table from a DHT segment; false for codes that do not fit their lengths.
bool FillTable(const uint8_t* counts, const uint8_t* symbols, bool is_dc, CodeTable* table) {
  *table = CodeTable{};
  uint32_t code = 0;
  uint32_t number = 0;
  for (int length = 1; length <= kMaxCodeBits; ++length) {
    table->first[length] = code << (kMaxCodeBits - length);
    table->start[length] = number;
    for (int i = 0; i < counts[length - 1]; ++i, ++code, ++number) {
      if (code >= (1u << length)) return false;
      const uint8_t symbol = symbols[number];
      if (is_dc && symbol > 11) return false;
      const uint32_t entry = MakeEntry(length, symbol, is_dc);
      table->entries[number] = entry;
      if (length > kPeekBits) continue;
      const int spare = kPeekBits - length;
      for (uint32_t rest = 0; rest < (1u << spare); ++rest) table->fast[(code << spare) | rest] = entry;
    }
    table->last[length] = code << (kMaxCodeBits - length);
    code <<= 1;
  }
  if (!is_dc) table->FillRuns();
  return true;
}

// A table and the segment it was made from: most files have the same ones.
struct KeptTable {
  size_t nbytes = 0;
  std::array<uint8_t, kMaxCodeBits + 256> source;
  CodeTable table;
};

// By kind and slot; of the last file checked by this thread.
using KeptTables = std::array<std::array<KeptTable, 4>, 2>;

struct Component {
  uint8_t id = 0;
  int blocks = 0;  // in one unit of the scan
  int horizontal = 0;
  int vertical = 0;
  uint8_t quantization = 0;
  const CodeTable* dc = nullptr;
  const CodeTable* ac = nullptr;
};

class Checker {
 public:
  Checker(ByteView data, bool is_tolerant, KeptTables* tables)
      : next_(data.data()), stop_(data.data() + data.size()), is_tolerant_(is_tolerant), tables_(*tables) {}

  // Whether the headers are of a kind whose codes can be checked. Only after Check.
  bool has_scan() const { return has_scan_; }

  bool Check() {
    if (stop_ - next_ < 4 || next_[0] != kMarker || next_[1] != kStartOfImage) return false;
    next_ += 2;
    while (true) {
      if (stop_ - next_ < 4 || next_[0] != kMarker) return false;
      const uint8_t marker = next_[1];
      if (marker == kMarker) {
        ++next_;
        continue;
      }
      const size_t nbytes = size_t{next_[2]} << 8 | next_[3];
      if (nbytes < 2 || static_cast<size_t>(stop_ - next_) < 2 + nbytes) return false;
      const ByteView segment(next_ + 4, nbytes - 2);
      next_ += 2 + nbytes;
      if (marker == kStartOfScan) {
        has_scan_ = StartScan(segment);
        return has_scan_ && CheckScan();
      }
      if (!TakeSegment(marker, segment)) return false;
    }
  }

 private:
  bool TakeSegment(uint8_t marker, ByteView segment) {
    switch (marker) {
      case kBaseline:
      case kExtended:
        return TakeFrame(segment);
      case kHuffman:
        return TakeTables(segment);
      case kRestartInterval:
        if (segment.size() != 2) return false;
        restart_interval_ = static_cast<uint32_t>(segment[0]) << 8 | segment[1];
        return true;
      case kQuantization:
        return TakeQuantization(segment);
      case kComment:
        return true;
      case kFirstApplication:
        // Decoders warn about versions other than 1.
        return is_tolerant_ || segment.size() < 6 || std::memcmp(segment.data(), "JFIF", 5) != 0 ||
               segment[5] == 1;
      default:
        return (marker & 0xF0) == kFirstApplication;
    }
  }

  bool TakeFrame(ByteView segment) {
    if (num_components_ != 0 || segment.size() < 6 || segment[0] != 8) return false;
    const uint32_t height = static_cast<uint32_t>(segment[1]) << 8 | segment[2];
    const uint32_t width = static_cast<uint32_t>(segment[3]) << 8 | segment[4];
    const int count = segment[5];
    if (height == 0 || width == 0 || (count != 1 && count != kMaxComponents)) return false;
    if (segment.size() != 6 + 3 * static_cast<size_t>(count)) return false;
    int most_across = 1, most_down = 1;
    for (int i = 0; i < count; ++i) {
      const uint8_t* fields = segment.data() + 6 + 3 * i;
      Component& component = components_[i];
      component.id = fields[0];
      component.horizontal = fields[1] >> 4;
      component.vertical = fields[1] & 15;
      component.quantization = fields[2];
      if (component.quantization > 3) return false;
      if (component.horizontal < 1 || component.horizontal > 4 || component.vertical < 1 ||
          component.vertical > 4) {
        return false;
      }
      component.blocks = component.horizontal * component.vertical;
      most_across = component.horizontal > most_across ? component.horizontal : most_across;
      most_down = component.vertical > most_down ? component.vertical : most_down;
    }
    if (count == 1) {
      // A scan of one component goes block by block, whatever its sampling says.
      components_[0].blocks = 1;
      most_across = most_down = 1;
    }
    const uint32_t across = 8 * static_cast<uint32_t>(most_across),
                   down = 8 * static_cast<uint32_t>(most_down);
    num_units_ = uint64_t{(width + across - 1) / across} * ((height + down - 1) / down);
    num_components_ = count;
    return true;
  }

  bool TakeQuantization(ByteView segment) {
    while (!segment.empty()) {
      const int precision = segment[0] >> 4, place = segment[0] & 15;
      const size_t nbytes = 1 + kBlockSize * (static_cast<size_t>(precision) + 1);
      if (precision > 1 || place > 3 || segment.size() < nbytes) return false;
      has_quantization_[place] = true;
      segment = segment.subspan(nbytes);
    }
    return true;
  }

  bool TakeTables(ByteView segment) {
    while (!segment.empty()) {
      if (segment.size() < 1 + kMaxCodeBits) return false;
      const int kind = segment[0] >> 4, place = segment[0] & 15;
      if (kind > 1 || place > 3) return false;
      size_t num_symbols = 0;
      for (int i = 0; i < kMaxCodeBits; ++i) num_symbols += segment[1 + i];
      if (num_symbols > 256 || segment.size() < 1 + kMaxCodeBits + num_symbols) return false;
      if (!TakeTable(segment.subspan(1, kMaxCodeBits + num_symbols), kind, place)) return false;
      segment = segment.subspan(1 + kMaxCodeBits + num_symbols);
    }
    return true;
  }

  bool TakeTable(ByteView source, int kind, int place) {
    KeptTable& kept = tables_[kind][place];
    has_table_[kind][place] = true;
    if (kept.nbytes == source.size() && std::memcmp(kept.source.data(), source.data(), source.size()) == 0) {
      return true;
    }
    kept.nbytes = 0;  // until it is whole
    if (!FillTable(source.data(), source.data() + kMaxCodeBits, kind == 0, &kept.table)) return false;
    std::memcpy(kept.source.data(), source.data(), source.size());
    kept.nbytes = source.size();
    return true;
  }

  bool StartScan(ByteView segment) {
    if (num_components_ == 0 || segment.size() != 4 + 2 * static_cast<size_t>(num_components_)) return false;
    if (segment[0] != num_components_) return false;
    for (int i = 0; i < num_components_; ++i) {
      const uint8_t tables = segment[2 + 2 * i];
      Component& component = components_[i];
      if (segment[1 + 2 * i] != component.id || (tables >> 4) > 3 || (tables & 15) > 3) return false;
      if (!has_table_[0][tables >> 4] || !has_table_[1][tables & 15]) return false;
      component.dc = &tables_[0][tables >> 4].table;
      component.ac = &tables_[1][tables & 15].table;
      if (!has_quantization_[component.quantization]) return false;
    }
    // Spectral selection and precision of a sequential scan: full range.
    const uint8_t* progress = segment.data() + 1 + 2 * num_components_;
    return progress[0] == 0 && progress[1] == kBlockSize - 1 && progress[2] == 0;
  }

  bool CheckScan() {
    const auto codes =
        std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(stop_ - next_) + kSpareBytes);
    const uint64_t interval = restart_interval_ != 0 ? restart_interval_ : num_units_;
    uint8_t restart = 0;
    for (uint64_t unit = 0; unit < num_units_; unit += interval) {
      if (unit != 0) {
        if (!TakeMarker(static_cast<uint8_t>(kFirstRestart + restart))) return false;
        restart = (restart + 1) & 7;
      }
      if (!CheckUnits(std::min(interval, num_units_ - unit), codes.get())) return false;
    }
    return is_tolerant_ || TakeMarker(kEndOfImage);
  }

  // Checks the data before the next marker: these units and less than a byte of padding.
  bool CheckUnits(uint64_t count, uint8_t* codes) {
    uint8_t* copied;
    next_ = CopyCodes(next_, stop_, codes, &copied);
    std::memset(copied, 0, kSpareBytes);
    BitReader reader(codes, copied);
    for (uint64_t unit = 0; unit < count; ++unit) {
      for (int i = 0; i < num_components_; ++i) {
        for (int block = 0; block < components_[i].blocks; ++block) {
          if (!CheckBlock(components_[i], &reader)) return false;
        }
      }
    }
    return is_tolerant_ || reader.CountLeft() < 8;
  }

  bool TakeMarker(uint8_t marker) {
    while (stop_ - next_ >= 2 && next_[0] == kMarker && next_[1] == kMarker) ++next_;
    if (stop_ - next_ < 2 || next_[0] != kMarker || next_[1] != marker) return false;
    next_ += 2;
    return true;
  }

  static bool CheckBlock(const Component& component, BitReader* shared) {
    const CodeTable& ac = *component.ac;
    BitReader reader = *shared;
    reader.Fill();
    const uint32_t first = component.dc->Find(reader.Peek(kMaxCodeBits));
    if (first == 0) return false;
    reader.Skip(first & 0xFF);
    uint32_t position = 1;
    while (true) {
      reader.Fill();
      bool is_run = true;
      for (int i = 0; i < kRunsAtOnce && is_run; ++i) {
        const uint32_t run = ac.runs[reader.Peek(kRunBits)];
        const uint32_t after = position + (run >> 8);
        if (after - kEndOfBlock < kBlockSize) {
          reader.Skip(run & 0xFF);
          *shared = reader;
          return reader.CountLeft() >= 0;
        }
        // A run that passes the end of the block used bits of the next one, so the block is read code by
        // code.
        is_run = after < kBlockSize;
        if (is_run) {
          reader.Skip(run & 0xFF);
          position = after;
        }
      }
      if (is_run) continue;
      reader.Fill();
      const uint32_t entry = ac.Find(reader.Peek(kMaxCodeBits));
      if (entry == 0) return false;
      reader.Skip(entry & 0xFF);
      position += entry >> 8;
      if (position < kBlockSize) continue;
      *shared = reader;
      return reader.CountLeft() >= 0 && (position == kBlockSize || position > kEndOfBlock);
    }
  }

  const uint8_t* next_;
  const uint8_t* stop_;
  bool is_tolerant_;
  bool has_scan_ = false;
  int num_components_ = 0;
  uint64_t num_units_ = 0;
  uint32_t restart_interval_ = 0;
  Component components_[kMaxComponents];
  KeptTables& tables_;
  bool has_table_[2][4] = {};
  bool has_quantization_[4] = {};
};

// Eight tables are too much for the stack of a small thread.
KeptTables* KeepTables() {
  static thread_local const auto kept = std::make_unique<KeptTables>();
  return kept.get();
}

}  // namespace

bool IsSoundJpeg(ByteView data) { return Checker(data, false, KeepTables()).Check(); }

bool IsDamagedJpeg(ByteView data) {
  Checker checker(data, true, KeepTables());
  return !checker.Check() && checker.has_scan();
}

}  // namespace tfrkit
