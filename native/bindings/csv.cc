// CSV text to columns.
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>

#include <string>
#include <string_view>
#include <vector>

#include "bindings/buffers.h"
#include "core/tables/csv_cells.h"

namespace tfrkit {
namespace {

CellKind ParseCellKind(std::string_view kind) {
  if (kind == "int64") return CellKind::kInt64;
  if (kind == "float") return CellKind::kFloat;
  if (kind == "text") return CellKind::kText;
  if (kind == "none") return CellKind::kNone;
  throw nb::value_error("kind expected int64, float, text or none");
}

nb::object ToPython(CellColumn&& column) {
  nb::object missing = nb::none();
  if (column.num_missing != 0) missing = nb::cast(ToArray(std::move(column.missing)));
  nb::object values = nb::none(), offsets = nb::none();
  if (column.kind == CellKind::kInt64) values = nb::cast(ToArray(std::move(column.ints)));
  if (column.kind == CellKind::kFloat) values = nb::cast(ToArray(std::move(column.floats)));
  if (column.kind == CellKind::kText) {
    values = nb::cast(ToArray(std::move(column.text)));
    offsets = nb::cast(ToArray(std::move(column.offsets)));
  }
  return nb::make_tuple(values, offsets, missing, column.num_missing, column.num_simpler);
}

uint8_t ParseSeparator(std::string_view separator) {
  if (separator.size() != 1 || separator.find_first_of("\"\r\n") == 0)
    throw nb::value_error("separator expected one byte, no quote and no line end");
  return static_cast<uint8_t>(separator[0]);
}

uint64_t FindCsvRowEnd(nb::handle rows, std::string_view separator, bool first) {
  const uint8_t byte = ParseSeparator(separator);
  const Buffer buffer(rows);
  nb::gil_scoped_release release;
  return FindRowEnd(buffer.bytes(), byte, first ? RowPlace::kFirst : RowPlace::kLast);
}

// (number of rows, columns), the index of a column of another kind, or None where a closer look is needed.
nb::object ParseCsv(nb::handle rows, std::string_view separator, nb::sequence kinds, nb::sequence missing) {
  const uint8_t byte = ParseSeparator(separator);
  const Buffer buffer(rows);
  std::vector<CellColumn> columns;
  for (nb::handle kind : kinds) columns.emplace_back().kind = ParseCellKind(nb::cast<std::string>(kind));
  std::vector<std::string> words;
  for (nb::handle item : missing) {
    const auto word = nb::cast<nb::bytes>(item);
    words.emplace_back(word.c_str(), word.size());
  }
  const std::vector<std::string_view> views(words.begin(), words.end());
  const CsvForm form{byte, views};
  uint64_t num_rows = 0;
  size_t other = 0;
  CsvEnd end;
  {
    nb::gil_scoped_release release;
    end = ParseCells(buffer.bytes(), form, columns, &num_rows, &other);
  }
  if (end == CsvEnd::kNoMemory) throw std::bad_alloc();
  if (end == CsvEnd::kNeedsCloserLook) return nb::none();
  if (end == CsvEnd::kOtherKind) return nb::int_(other);
  nb::list found;
  for (CellColumn& column : columns) found.append(ToPython(std::move(column)));
  return nb::make_tuple(num_rows, found);
}

}  // namespace

void BindCsv(nb::module_& m) {
  m.def(
      "parse_csv", &ParseCsv, nb::arg("rows"), nb::arg("separator"), nb::arg("kinds"), nb::arg("missing"),
      "Rows of CSV to columns: (number of rows, [(values, offsets, missing, number of missing cells, number "
      "of cells that a simpler kind might hold)]); the index of a column with a cell that is not of its "
      "kind; "
      "None where a row needs a closer look.",
      nb::sig(
          "def parse_csv(rows: object, separator: str, kinds: typing.Sequence[str], missing: "
          "typing.Sequence[bytes]) -> tuple[int, list[tuple[typing.Any, typing.Any, typing.Any, int, int]]] "
          "| int | None"));
  m.def("find_csv_row_end", &FindCsvRowEnd, nb::arg("rows"), nb::arg("separator"), nb::kw_only(),
        nb::arg("first"),
        "The offset after the first or last line feed outside of quotes, 0 without one. `rows` starts at the "
        "start of a row.");
}

}  // namespace tfrkit
