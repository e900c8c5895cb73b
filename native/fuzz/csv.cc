// Arbitrary bytes as CSV: the parser against a slow one, and whole text against pieces of it.
#include <algorithm>
#include <string>
#include <vector>

#include "core/base/utf8.h"
#include "core/tables/csv_cells.h"
#include "fuzz/fuzz_target.h"

namespace tfrkit::fuzz {
namespace {

using Rows = std::vector<std::vector<std::string>>;

// Byte by byte, as Python's csv module reads with its strict dialect. False where the parser must not take
// the text: unsound quotes, or a carriage return outside of quotes without a line feed.
bool ReadSlowly(ByteView text, uint8_t separator, Rows* rows) {
  enum class State { kRowStart, kCellStart, kPlain, kQuoted, kQuoteInQuoted };
  State state = State::kRowStart;
  for (size_t i = 0; i < text.size(); ++i) {
    const uint8_t byte = text[i];
    const bool is_return = byte == '\r' && state != State::kQuoted;
    if (is_return && (i + 1 == text.size() || text[i + 1] != '\n')) return false;
    if (is_return) continue;
    const bool starts = state == State::kRowStart || state == State::kCellStart;
    if (state == State::kQuoted) {
      if (byte == '"') {
        state = State::kQuoteInQuoted;
      } else {
        rows->back().back() += static_cast<char>(byte);
      }
    } else if (byte == '\n') {
      state = State::kRowStart;
    } else {
      if (state == State::kRowStart) rows->push_back({""});
      if (byte == separator) {
        rows->back().emplace_back();
        state = State::kCellStart;
      } else if (starts && byte == '"') {
        state = State::kQuoted;
      } else if (state == State::kQuoteInQuoted && byte != '"') {
        return false;
      } else {
        rows->back().back() += static_cast<char>(byte);
        state = state == State::kQuoteInQuoted ? State::kQuoted : State::kPlain;
      }
    }
  }
  return state != State::kQuoted;
}

// Adds the rows to `rows`; false where the slow path is needed.
bool ReadFast(ByteView text, uint8_t separator, size_t width, Rows* rows) {
  std::vector<CellColumn> columns(width);
  uint64_t num_rows = 0;
  size_t other = 0;
  const CsvEnd end = ParseCells(text, {separator, {}}, columns, &num_rows, &other);
  Require(end != CsvEnd::kOtherKind, "text takes any cell");
  if (end != CsvEnd::kDone) return false;
  for (size_t row = 0; row < num_rows; ++row) {
    auto& cells = rows->emplace_back();
    for (const CellColumn& column : columns) {
      const auto start = static_cast<size_t>(column.offsets[row]);
      const auto stop = static_cast<size_t>(column.offsets[row + 1]);
      cells.emplace_back(column.text.data() + start, column.text.data() + stop);
      const bool is_missing = column.num_missing != 0 && column.missing[row] != 0;
      Require(is_missing == cells.back().empty(), "empty cells are missing, and no others");
    }
  }
  return true;
}

void CheckKinds(ByteView text, uint8_t separator, size_t width) {
  for (const CellKind kind : {CellKind::kInt64, CellKind::kFloat, CellKind::kNone}) {
    std::vector<CellColumn> columns(width);
    for (CellColumn& column : columns) column.kind = kind;
    uint64_t num_rows = 0;
    size_t other = 0;
    const CsvEnd end = ParseCells(text, {separator, {}}, columns, &num_rows, &other);
    if (end == CsvEnd::kOtherKind) Require(other < width, "a column of another kind is one of them");
    if (end != CsvEnd::kDone) continue;
    for (const CellColumn& column : columns) {
      Require(column.num_missing + column.num_simpler <= num_rows, "no cell is counted twice");
    }
  }
}

// Pieces cut as a reader of a long file cuts them.
void CheckPieces(ByteView text, uint8_t separator, size_t nbytes, const Rows& expected) {
  Rows rows;
  size_t size = nbytes;
  while (!text.empty()) {
    const size_t stop =
        size >= text.size() ? text.size() : FindRowEnd(text.first(size), separator, RowPlace::kLast);
    if (stop == 0) {
      size += nbytes;
      continue;
    }
    const size_t first = FindRowEnd(text.first(stop), separator, RowPlace::kFirst);
    Require(first <= stop, "the first row ends before the last");
    Require(ReadFast(text.first(stop), separator, expected.front().size(), &rows), "each piece is sound");
    text = text.subspan(stop);
    size = nbytes;
  }
  Require(rows == expected, "pieces hold the rows of the whole");
}

}  // namespace

int FuzzOne(ByteView input) {
  if (input.empty()) return 0;
  const uint8_t separator = ",;\t| a0\xc3"[input[0] % 8];
  const size_t nbytes = 1 + input[0] / 8;
  const ByteView text = input.subspan(1);
  Rows expected, rows;
  const bool is_sound = ReadSlowly(text, separator, &expected) && IsUtf8(text);
  const size_t width = expected.empty() ? 1 : expected.front().size();
  const bool is_even =
      std::all_of(expected.begin(), expected.end(), [&](const auto& row) { return row.size() == width; });
  Require(ReadFast(text, separator, width, &rows) == (is_sound && is_even),
          "sound text is taken, and no other");
  CheckKinds(text, separator, width);
  if (!is_sound || !is_even) return 0;
  Require(rows == expected, "cells are those of the slow parser");
  if (!expected.empty()) CheckPieces(text, separator, nbytes, expected);
  return 0;
}

}  // namespace tfrkit::fuzz
