// Cells of CSV text, straight into columns of numbers and text.
//
// A cell that begins with a quote ends with one; in between a doubled quote is one quote, and separators and
// line ends are text. A quote anywhere else is a character like others. Quoted or not, equal text is the same
// cell. A cell becomes a number only if the number prints as the same text: 7 and -0.5, not 007, +7 or " 7".
// Anything unusual ends the parse; the caller parses the column as text then, or takes the slow path.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/base/bytes.h"
#include "core/base/pool.h"

namespace tfrkit {

// kNone: every cell must be missing.
enum class CellKind : uint8_t { kNone, kInt64, kFloat, kText };

// One column of some rows. A missing cell has a filler: 0, or no bytes.
struct CellColumn {
  CellKind kind = CellKind::kText;
  PoolVector<int64_t> ints;
  PoolVector<double> floats;
  PoolVector<uint8_t> text;
  PoolVector<int64_t> offsets;  // kText: cell r is text[offsets[r], offsets[r + 1])
  PoolVector<uint8_t> missing;  // 1 where a cell is missing; empty when none is
  uint64_t num_missing = 0;
  // Cells that a simpler kind holds. kText: numbers; kFloat: whole numbers.
  uint64_t num_simpler = 0;
};

struct CsvForm {
  uint8_t separator = ',';
  // Texts that mean a missing cell, in addition to empty ones.
  std::span<const std::string_view> missing;
};

// kOtherKind: a cell is not of its column's kind, is a number in an unusual form or would be rounded; with
// kText for this column the rows may still be sound.
enum class CsvEnd : uint8_t { kDone, kOtherKind, kNeedsCloserLook, kNoMemory };

// Appends every row of `rows` to `columns`, whose kinds are set and which are empty otherwise; empty lines
// are not rows. `rows` starts at the start of a row and ends at an end of one, or of the file.
//
// A closer look is needed for a row with another number of cells, a quote that is not closed, text after a
// closing quote, a line that ends with a carriage return alone, and text that is not UTF-8. The columns are
// unspecified unless the parse is done. After kOtherKind, `other` is the index of the column.
// REQUIRES: the separator is no quote, line feed or carriage return.
[[nodiscard]] CsvEnd ParseCells(ByteView rows, const CsvForm& form, std::span<CellColumn> columns,
                                uint64_t* num_rows, size_t* other);

enum class RowPlace : uint8_t { kFirst, kLast };

// The offset after the first or last line feed outside of quotes; 0 if there is none. `rows` starts at the
// start of a row and ends anywhere.
size_t FindRowEnd(ByteView rows, uint8_t separator, RowPlace place);

}  // namespace tfrkit
