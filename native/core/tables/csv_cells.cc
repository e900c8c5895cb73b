#include "core/tables/csv_cells.h"

#include <charconv>
#include <cstring>
#include <iterator>
#include <limits>

#include "core/base/utf8.h"

namespace tfrkit {
namespace {

// Number of digits that every double and uint64_t holds.
constexpr ptrdiff_t kSafeDigits = 15;
constexpr ptrdiff_t kMaxIntDigits = 19;
// From here on integers may be rounded.
constexpr double kMaxSafe = 1e15;
constexpr uint8_t kQuote = '"';
// All of these are exact, so one division rounds once: the nearest double.
constexpr double kPowersOfTen[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
static_assert(std::size(kPowersOfTen) == kSafeDigits + 1);

const uint8_t* FindByte(const uint8_t* p, const uint8_t* end, uint8_t byte) {
  const void* const found = p == end ? nullptr : std::memchr(p, byte, static_cast<size_t>(end - p));
  return found == nullptr ? end : static_cast<const uint8_t*>(found);
}

// The quote that closes a cell, from the first byte after the one that opens it; `end` if there is none.
// Doubled quotes belong to the cell.
const uint8_t* FindClosingQuote(const uint8_t* p, const uint8_t* end, bool* has_doubled) {
  *has_doubled = false;
  for (p = FindByte(p, end, kQuote); end - p >= 2 && p[1] == kQuote; p = FindByte(p + 2, end, kQuote)) {
    *has_doubled = true;
  }
  return p;
}

bool IsDigit(uint8_t byte) { return static_cast<uint8_t>(byte - '0') < 10; }

const uint8_t* SkipDigits(const uint8_t* p, const uint8_t* stop) {
  while (p != stop && IsDigit(*p)) ++p;
  return p;
}

bool IsWord(const uint8_t* p, const uint8_t* stop, std::string_view word) {
  if (static_cast<size_t>(stop - p) != word.size()) return false;
  for (const char letter : word) {
    if ((*p++ | 0x20) != letter) return false;
  }
  return true;
}

// A number, inf or nan as FLOAT in sources/cell_types.py has it: 7 and +7.5, not 007 or +7.
bool IsNumber(const uint8_t* p, const uint8_t* stop) {
  const uint8_t sign = *p == '-' || *p == '+' ? *p++ : 0;
  if (p == stop) return false;
  if (!IsDigit(*p) && *p != '.') {
    return IsWord(p, stop, "inf") || IsWord(p, stop, "infinity") || (sign == 0 && IsWord(p, stop, "nan"));
  }
  const uint8_t* const whole = p;
  p = SkipDigits(p, stop);
  const ptrdiff_t num_whole = p - whole;
  if (num_whole > 1 && *whole == '0') return false;
  if (p == stop) return sign != '+';
  if (*p == '.') {
    const uint8_t* const fraction = ++p;
    p = SkipDigits(p, stop);
    if (num_whole == 0 && p == fraction) return false;
  }
  if (p == stop) return true;
  if ((*p++ | 0x20) != 'e') return false;
  if (p != stop && (*p == '-' || *p == '+')) ++p;
  return p != stop && SkipDigits(p, stop) == stop;
}

class CellParser {
 public:
  CellParser(ByteView rows, const CsvForm& form) : form_(form), p_(rows.data()), end_(p_ + rows.size()) {}

  CsvEnd Run(std::span<CellColumn> columns, uint64_t* num_rows, size_t* other) {
    for (CellColumn& column : columns) {
      if (column.kind == CellKind::kText && !column.offsets.PushBack(0)) return CsvEnd::kNoMemory;
    }
    while (true) {
      while (SkipLineEnd()) {
      }
      if (p_ == end_) return CsvEnd::kDone;
      for (size_t i = 0; i < columns.size(); ++i) {
        if (i != 0 && (p_ == end_ || *p_++ != form_.separator)) return CsvEnd::kNeedsCloserLook;
        if (!TakeCell(&columns[i], *num_rows)) {
          if (!has_memory_) return CsvEnd::kNoMemory;
          // Text takes any cell, so the cell itself has no end.
          if (columns[i].kind == CellKind::kText) return CsvEnd::kNeedsCloserLook;
          *other = i;
          return CsvEnd::kOtherKind;
        }
      }
      if (p_ != end_ && !SkipLineEnd()) return CsvEnd::kNeedsCloserLook;
      ++*num_rows;
    }
  }

 private:
  bool SkipLineEnd() {
    if (p_ == end_) return false;
    if (*p_ == '\n') {
      ++p_;
      return true;
    }
    if (*p_ != '\r' || end_ - p_ < 2 || p_[1] != '\n') return false;
    p_ += 2;
    return true;
  }

  // A quoted cell is parsed with `end_` at its closing quote; separators and line ends are part of it.
  template <bool kIsQuoted>
  bool EndsCell(const uint8_t* p) const {
    return p == end_ || (!kIsQuoted && (*p == form_.separator || *p == '\n' || *p == '\r'));
  }

  template <bool kIsQuoted>
  const uint8_t* FindCellEnd() const {
    if constexpr (kIsQuoted) return end_;
    const uint8_t* p = p_;
    while (!EndsCell<kIsQuoted>(p)) ++p;
    return p;
  }

  // Moves past the cell. False if it is not of this kind or has no end, or memory is exhausted.
  bool TakeCell(CellColumn* column, uint64_t row) {
    if (p_ == end_ || *p_ != kQuote) return TakeContent<false>(column, row);
    const uint8_t* const opened = p_ + 1;
    bool has_doubled;
    const uint8_t* const closed = FindClosingQuote(opened, end_, &has_doubled);
    if (closed == end_) return false;
    const uint8_t* const end = end_;
    p_ = opened;
    end_ = closed;
    if (has_doubled && !Undouble()) return false;
    if (!TakeContent<true>(column, row)) return false;
    p_ = closed + 1;
    end_ = end;
    return true;  // the caller checks what follows the quote
  }

  // Moves [p_, end_) to a copy with one quote for each two.
  bool Undouble() {
    undoubled_.Clear();
    while (p_ != end_) {
      const uint8_t* const quote = FindByte(p_, end_, kQuote);
      const uint8_t* const stop = quote == end_ ? end_ : quote + 1;
      if (!Keep(undoubled_.Append(p_, static_cast<size_t>(stop - p_)))) return false;
      p_ = quote == end_ ? end_ : quote + 2;
    }
    p_ = undoubled_.data();
    end_ = p_ + undoubled_.size();
    return true;
  }

  template <bool kIsQuoted>
  bool TakeContent(CellColumn* column, uint64_t row) {
    bool is_missing = EndsCell<kIsQuoted>(p_);
    if (!is_missing && !form_.missing.empty()) {
      const uint8_t* const stop = FindCellEnd<kIsQuoted>();
      const auto size = static_cast<size_t>(stop - p_);
      for (const std::string_view word : form_.missing) {
        is_missing |= word.size() == size && std::memcmp(word.data(), p_, size) == 0;
      }
      if (is_missing) p_ = stop;
    }
    if (is_missing) {
      if (column->num_missing++ == 0 && !FillPresent(column, row)) return false;
    }
    if (column->num_missing != 0 && !Keep(column->missing.PushBack(is_missing ? 1 : 0))) return false;
    switch (column->kind) {
      case CellKind::kInt64: {
        int64_t value = 0;
        return (is_missing || TakeInt<kIsQuoted>(&value)) && Keep(column->ints.PushBack(value));
      }
      case CellKind::kFloat: {
        double value = 0;
        if (!is_missing) {
          bool is_whole = false;
          if (!TakeFloat<kIsQuoted>(&value, &is_whole)) return false;
          column->num_simpler += is_whole ? 1 : 0;
        }
        return Keep(column->floats.PushBack(value));
      }
      case CellKind::kText: {
        if (!is_missing) {
          const uint8_t* const stop = FindCellEnd<kIsQuoted>();
          column->num_simpler += IsNumber(p_, stop) ? 1 : 0;
          if (!Keep(column->text.Append(p_, static_cast<size_t>(stop - p_)))) return false;
          p_ = stop;
        }
        return Keep(column->offsets.PushBack(static_cast<int64_t>(column->text.size())));
      }
      case CellKind::kNone:
        return is_missing;
    }
    return false;
  }

  bool FillPresent(CellColumn* column, uint64_t num_rows) {
    if (!Keep(column->missing.Resize(num_rows))) return false;
    if (num_rows != 0) std::memset(column->missing.data(), 0, num_rows);
    return true;
  }

  template <bool kIsQuoted>
  bool TakeInt(int64_t* value) {
    const bool is_negative = *p_ == '-';
    const uint8_t* const digits = p_ + (is_negative ? 1 : 0);
    const uint8_t* p = digits;
    uint64_t number = 0;
    for (; p != end_ && IsDigit(*p) && p - digits <= kMaxIntDigits; ++p) {
      number = number * 10 + static_cast<uint64_t>(*p - '0');
    }
    const ptrdiff_t count = p - digits;
    if (count == 0 || count > kMaxIntDigits || !EndsCell<kIsQuoted>(p)) return false;
    if (*digits == '0' && (count > 1 || is_negative)) return false;
    const uint64_t limit = static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) + (is_negative ? 1 : 0);
    if (number > limit) return false;
    *value = static_cast<int64_t>(is_negative ? 0 - number : number);
    p_ = p;
    return true;
  }

  template <bool kIsQuoted>
  bool TakeFloat(double* value, bool* is_whole) {
    const bool is_negative = *p_ == '-';
    const uint8_t* const digits = p_ + (is_negative ? 1 : 0);
    const uint8_t* p = digits;
    uint64_t number = 0;  // wraps around with many digits, and is unused then
    for (; p != end_ && IsDigit(*p); ++p) number = number * 10 + static_cast<uint64_t>(*p - '0');
    const ptrdiff_t num_whole = p - digits;
    const bool has_point = p != end_ && *p == '.';
    if (num_whole > 0 && *digits == '0' && (num_whole > 1 || (is_negative && !has_point))) return false;
    ptrdiff_t num_fraction = 0;
    if (has_point) {
      const uint8_t* const fraction = ++p;
      for (; p != end_ && IsDigit(*p); ++p) number = number * 10 + static_cast<uint64_t>(*p - '0');
      num_fraction = p - fraction;
    }
    if (num_whole + num_fraction == 0) return false;
    double magnitude;
    if (EndsCell<kIsQuoted>(p) && num_whole + num_fraction <= kSafeDigits) {
      *is_whole = !has_point;
      magnitude = static_cast<double>(number) / kPowersOfTen[num_fraction];
    } else {
      // Exponents and many digits. Other forms that from_chars accepts were refused above.
      const uint8_t* const stop = FindCellEnd<kIsQuoted>();
      const auto* const first = static_cast<const char*>(static_cast<const void*>(digits));
      const auto* const last = static_cast<const char*>(static_cast<const void*>(stop));
      const auto [read, error] = std::from_chars(first, last, magnitude);
      if (error != std::errc() || read != last) return false;
      p = stop;
    }
    if (!(magnitude < kMaxSafe)) return false;
    *value = is_negative ? -magnitude : magnitude;
    p_ = p;
    return true;
  }

  bool Keep(bool has_memory) {
    has_memory_ = has_memory_ && has_memory;
    return has_memory;
  }

  const CsvForm& form_;
  const uint8_t* p_;
  const uint8_t* end_;
  PoolVector<uint8_t> undoubled_;  // the quoted cell being parsed, where it has doubled quotes
  bool has_memory_ = true;
};

}  // namespace

CsvEnd ParseCells(ByteView rows, const CsvForm& form, std::span<CellColumn> columns, uint64_t* num_rows,
                  size_t* other) {
  *num_rows = 0;
  *other = 0;
  if (!IsUtf8(rows)) return CsvEnd::kNeedsCloserLook;
  return CellParser(rows, form).Run(columns, num_rows, other);
}

size_t FindRowEnd(ByteView rows, uint8_t separator, RowPlace place) {
  const uint8_t* const start = rows.data();
  const uint8_t* const end = start + rows.size();
  const uint8_t* found = start;
  const uint8_t* p = start;
  while (true) {
    // [p, quote) is outside of quotes. A quote opens a cell only as its first byte.
    const uint8_t* quote = FindByte(p, end, kQuote);
    while (quote != end && quote != start && quote[-1] != separator && quote[-1] != '\n' &&
           quote[-1] != '\r') {
      quote = FindByte(quote + 1, end, kQuote);
    }
    if (place == RowPlace::kFirst) {
      const uint8_t* const line_end = FindByte(p, quote, '\n');
      if (line_end != quote) return static_cast<size_t>(line_end + 1 - start);
    } else {
      const uint8_t* stop = quote;
      while (stop != p && stop[-1] != '\n') --stop;
      if (stop != p) found = stop;
    }
    if (quote == end) break;
    bool has_doubled;
    const uint8_t* const closed = FindClosingQuote(quote + 1, end, &has_doubled);
    if (closed == end) break;
    p = closed + 1;
  }
  return static_cast<size_t>(found - start);
}

}  // namespace tfrkit
