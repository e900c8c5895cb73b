#include "core/jpeg_check.h"

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
// Codes of up to this many bits, nearly all, are one look-up.
constexpr int kPeekBits = 9;
constexpr int kMaxCodeBits = 16;
// A code and the bits that follow it: 16 + 15.
constexpr int kMaxSymbolBits = 31;
// What the end of a block adds to its position; larger than any run can reach.
constexpr uint32_t kEndOfBlock = 128;

// Bits of one stretch of coded data, from the top of `bits`; zeros behind its end.
class BitReader {
 public:
  BitReader(const uint8_t* data, const uint8_t* stop) : next_(data), stop_(stop) {}

  uint32_t Peek(int count) const { return static_cast<uint32_t>(bits_ >> (64 - count)); }
  // Negative once more was taken than there is.
  int num_bits() const { return num_bits_; }
  void Skip(int count) {
    bits_ <<= count;
    num_bits_ -= count;
  }

  // At least kMaxSymbolBits bits, or all there are.
  void Fill() {
    if (num_bits_ > kMaxSymbolBits) return;
    if (num_bits_ >= 0 && stop_ - next_ >= 8) {
      uint64_t eight;
      std::memcpy(&eight, next_, 8);
      if constexpr (std::endian::native == std::endian::little) eight = __builtin_bswap64(eight);
      // Without an FF among them the bytes are the bits; with one they are looked at singly.
      const uint64_t inverse = ~eight;
      const bool has_marker = ((inverse - 0x0101010101010101u) & ~inverse & 0x8080808080808080u) != 0;
      if (!has_marker) {
        const int count = (64 - num_bits_) / 8;
        const uint64_t whole = count == 8 ? eight : eight & ~(~uint64_t{0} >> (8 * count));
        bits_ |= whole >> num_bits_;
        num_bits_ += 8 * count;
        next_ += count;
        return;
      }
    }
    while (num_bits_ >= 0 && num_bits_ <= 56 && next_ < stop_) {
      const uint8_t byte = *next_;
      if (byte == kMarker) {
        if (stop_ - next_ < 2 || next_[1] != 0) return;
        ++next_;
      }
      bits_ |= uint64_t{byte} << (56 - num_bits_);
      num_bits_ += 8;
      ++next_;
    }
  }

  // Steps over the rest of the byte and the given marker; false where something else follows.
  bool TakeMarker(uint8_t marker) {
    if (num_bits_ < 0 || num_bits_ >= 8) return false;
    while (stop_ - next_ >= 2 && next_[0] == kMarker && next_[1] == kMarker) ++next_;
    if (stop_ - next_ < 2 || next_[0] != kMarker || next_[1] != marker) return false;
    next_ += 2;
    bits_ = 0;
    num_bits_ = 0;
    return true;
  }

 private:
  const uint8_t* next_;
  const uint8_t* stop_;
  uint64_t bits_ = 0;
  int num_bits_ = 0;
};

// Codes of one table. An entry has the bits to skip in its low byte and what to add to the position above it.
struct CodeTable {
  bool is_there = false;
  std::array<uint32_t, 1 << kPeekBits> fast{};
  // For longer codes: the first one of each length, left-aligned to 16 bits, where they end, and their
  // entries.
  std::array<uint32_t, kMaxCodeBits + 2> first{};
  std::array<uint32_t, kMaxCodeBits + 1> last{};
  std::array<uint32_t, kMaxCodeBits + 1> start{};
  std::array<uint32_t, 256> entries{};

  // 0 for what is no code.
  uint32_t Find(const BitReader& reader) const {
    const uint32_t entry = fast[reader.Peek(kPeekBits)];
    return entry != 0 ? entry : FindLong(reader.Peek(kMaxCodeBits));
  }

  uint32_t FindLong(uint32_t bits) const {
    for (int length = kPeekBits + 1; length <= kMaxCodeBits; ++length) {
      if (bits >= first[length] && bits < last[length]) {
        return entries[start[length] + ((bits - first[length]) >> (kMaxCodeBits - length))];
      }
    }
    return 0;
  }
};

uint32_t MakeEntry(int length, uint8_t symbol, bool is_dc) {
  const int size = is_dc ? symbol : symbol & 15;
  const int run = symbol >> 4;
  uint32_t step = 0;
  if (!is_dc) step = size != 0 ? static_cast<uint32_t>(run) + 1 : run == 15 ? 16 : kEndOfBlock;
  return static_cast<uint32_t>(length + size) | (step << 8);
}

// Fills a table from what a DHT segment says; false for codes that do not fit into their lengths.
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
  table->is_there = true;
  return true;
}

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
  explicit Checker(ByteView data) : next_(data.data()), stop_(data.data() + data.size()) {}

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
      if (marker == kStartOfScan) return StartScan(segment) && CheckScan();
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
        // Decoders complain about other versions than 1.
        return segment.size() < 6 || std::memcmp(segment.data(), "JFIF", 5) != 0 || segment[5] == 1;
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
      const uint8_t* counts = segment.data() + 1;
      if (!FillTable(counts, counts + kMaxCodeBits, kind == 0, &tables_[kind][place])) return false;
      segment = segment.subspan(1 + kMaxCodeBits + num_symbols);
    }
    return true;
  }

  bool StartScan(ByteView segment) {
    if (num_components_ == 0 || segment.size() != 4 + 2 * static_cast<size_t>(num_components_)) return false;
    if (segment[0] != num_components_) return false;
    for (int i = 0; i < num_components_; ++i) {
      const uint8_t tables = segment[2 + 2 * i];
      Component& component = components_[i];
      if (segment[1 + 2 * i] != component.id || (tables >> 4) > 3 || (tables & 15) > 3) return false;
      component.dc = &tables_[0][tables >> 4];
      component.ac = &tables_[1][tables & 15];
      if (!component.dc->is_there || !component.ac->is_there) return false;
      if (!has_quantization_[component.quantization]) return false;
    }
    // What a sequential scan says of spectrum and precision: all of both.
    const uint8_t* progress = segment.data() + 1 + 2 * num_components_;
    return progress[0] == 0 && progress[1] == kBlockSize - 1 && progress[2] == 0;
  }

  bool CheckScan() {
    BitReader reader(next_, stop_);
    uint32_t left = restart_interval_;
    uint8_t restart = 0;
    for (uint64_t unit = 0; unit < num_units_; ++unit) {
      if (restart_interval_ != 0 && left == 0) {
        if (!reader.TakeMarker(static_cast<uint8_t>(kFirstRestart + restart))) return false;
        restart = (restart + 1) & 7;
        left = restart_interval_;
      }
      --left;
      for (int i = 0; i < num_components_; ++i) {
        for (int block = 0; block < components_[i].blocks; ++block) {
          if (!CheckBlock(components_[i], &reader)) return false;
        }
      }
    }
    reader.Fill();
    return reader.TakeMarker(kEndOfImage);
  }

  static bool CheckBlock(const Component& component, BitReader* shared) {
    BitReader reader = *shared;
    reader.Fill();
    const uint32_t first = component.dc->Find(reader);
    if (first == 0) return false;
    reader.Skip(static_cast<int>(first & 0xFF));
    uint32_t position = 1;
    while (position < kBlockSize) {
      reader.Fill();
      const uint32_t entry = component.ac->Find(reader);
      if (entry == 0) return false;
      reader.Skip(static_cast<int>(entry & 0xFF));
      position += entry >> 8;
    }
    *shared = reader;
    return reader.num_bits() >= 0 && (position == kBlockSize || position > kEndOfBlock);
  }

  const uint8_t* next_;
  const uint8_t* stop_;
  int num_components_ = 0;
  uint64_t num_units_ = 0;
  uint32_t restart_interval_ = 0;
  Component components_[kMaxComponents];
  CodeTable tables_[2][4];
  bool has_quantization_[4] = {};
};

}  // namespace

bool IsSoundJpeg(ByteView data) {
  // Eight tables are too much for the stack of a small thread.
  return std::make_unique<Checker>(data)->Check();
}

}  // namespace tfrkit
