"""Load text tables into the spool: CSV and JSON lines, whose types must be inferred first."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tfrkit.errors import Hint, Step
from tfrkit.sources.base import Problem
from tfrkit.sources.cell_types import CellKind, CellTally, Verdict, convert_cells, decide_kind, is_gap, tally_cells
from tfrkit.sources.csv_file import CsvFile, open_csv
from tfrkit.sources.csv_typed import spool_typed
from tfrkit.sources.json_lines import LISTS_EVERYWHERE, JsonLines, convert_values
from tfrkit.sources.table_options import TableOptions
from tfrkit.sources.table_spool import LoadedTable, SpoolColumn, TableSpooler
from tfrkit.storage.inputs import copy_of

# Maximum number of columns that a note names.
_MAX_NAMED = 5


def load_csv(path: str, options: TableOptions, spooler: TableSpooler) -> LoadedTable:
    """Load a CSV file: with the core's parser if every row is sound, else cell by cell."""
    file = open_csv(
        path,
        separator=options.separator,
        encoding=options.encoding,
        columns=options.columns,
        missing=options.missing,
    )
    options.check_names(file.columns, path)
    typed = spool_typed(file, spooler, options.types)
    if typed is not None:
        return _finish_csv(file, options, spooler, typed.num_rows, typed.tallies, partial(typed.lines_of, file))
    problems = [Problem(f"{path}, line {line}", reason) for line, reason in file.find_ragged()]
    num_rows, tallies = _spool_cells(file, options, spooler)
    loaded = _finish_csv(file, options, spooler, num_rows, tallies, file.lines_of)
    loaded.problems[:0] = problems
    return loaded


def _finish_csv(
    file: CsvFile,
    options: TableOptions,
    spooler: TableSpooler,
    num_rows: int,
    tallies: Sequence[CellTally],
    lines_of: Callable[[Iterable[int]], Mapping[int, int]],
) -> LoadedTable:
    """Return the table that was spooled, with a problem for each column that has no kind."""
    places = _name_rows(file.path, lines_of)
    verdicts = [
        decide_kind(tally, options.types.get(name))  # type: ignore[arg-type]
        for name, tally in zip(file.columns, tallies, strict=True)
    ]
    problems = [
        _explain_verdict(name, verdict, places)
        for name, verdict in zip(file.columns, verdicts, strict=True)
        if verdict.reason
    ]
    loaded = spooler.finish(num_rows, os.path.getsize(copy_of(file.path)), places)
    loaded.problems[:0] = problems
    empty = [
        name for name, verdict in zip(file.columns, verdicts, strict=True) if not verdict.reason and not verdict.kind
    ]
    mixed = {
        name: (tally.num_numbers, tally.num_cells)
        for name, tally, verdict in zip(file.columns, tallies, verdicts, strict=True)
        if verdict.kind == "text" and tally.num_numbers and name not in options.types
    }
    _note_file(loaded, file, empty, mixed)
    return loaded


def _note_file(loaded: LoadedTable, file: CsvFile, empty: Sequence[str], mixed: Mapping[str, tuple[int, int]]) -> None:
    loaded.notes += file.notes
    if loaded.problems and file.doubt:
        # A problem stops the build before notes are printed, so the note is added to a hint.
        last = loaded.problems[-1]
        loaded.problems[-1] = replace(last, hint=Hint(*filter(None, [last.hint, file.doubt]), gap="\n    "))
    if mixed:
        shown = list(mixed)[:_MAX_NAMED]
        named = [f"{name!r} ({count:,} of {total:,} cells)" for name, (count, total) in mixed.items()][:_MAX_NAMED]
        named += [f"and {len(mixed) - len(shown):,} more"] if len(mixed) > len(shown) else []
        note = f"columns of text with some numbers, which stay text: {', '.join(named)}"
        confirm = Step("confirm it: {types}", types=dict.fromkeys(shown, "text"))
        loaded.notes.append(Hint(note, confirm, gap="; "))
    if empty:
        loaded.notes.append(f"columns without any value, left out: {', '.join(map(repr, empty))}")


def _spool_cells(file: CsvFile, options: TableOptions, spooler: TableSpooler) -> tuple[int, list[CellTally]]:
    """Decide the kind of each column from all blocks, then convert the blocks; none of them if a column has no kind."""
    given: list[Any] = [options.types.get(name) for name in file.columns]
    tallies = [CellTally() for _ in file.columns]
    num_rows = 0
    for block in file.blocks():
        for cells, tally, wanted in zip(block, tallies, given, strict=True):
            tally_cells(cells, tally, num_rows, wanted)
        num_rows += len(block[0])
    verdicts = [decide_kind(tally, wanted) for tally, wanted in zip(tallies, given, strict=True)]
    columns: list[tuple[int, SpoolColumn, CellKind]] = []
    if not any(verdict.reason for verdict in verdicts):
        for index, (name, verdict) in enumerate(zip(file.columns, verdicts, strict=True)):
            if verdict.kind is not None:
                columns.append((index, spooler.add(name, verdict.kind), verdict.kind))
        for block in file.blocks():
            for index, column, kind in columns:
                values, missing = convert_cells(block[index], kind)
                column.append(values, None, missing)
    return num_rows, tallies


def _explain_verdict(name: str, verdict: Verdict, places: Callable[..., Mapping[int, str]]) -> Problem:
    rows = [row for row, _ in verdict.places]
    lines = places(rows)
    shown = "; ".join(
        f"{cell!r:.40} at {lines.get(row, f'row {row}').rpartition(', ')[2]}" for row, cell in verdict.places
    )
    more = verdict.num_places - len(rows)
    path = next(iter(lines.values()), "").rpartition(", ")[0]
    reason = f"{verdict.reason}: {shown}" + (f" and {more:,} more" if more > 0 else "")
    words = sorted({cell for _, cell in verdict.places})
    steps = [Step("take them as missing: {missing}", missing=words)] if words and all(map(is_gap, words)) else []
    hint = Hint(*steps, Step("take all as text: {types}", types={name: "text"}))
    return Problem(f"{path}, column {name!r}", reason, blocking=True, input=None, hint=hint)


def load_json_lines(path: str, options: TableOptions, spooler: TableSpooler) -> LoadedTable:
    """Load a file of JSON lines."""
    file = JsonLines(path, options.encoding)
    found, num_rows, bad = file.survey()
    options.check_names(found, path)
    problems = [Problem(f"{path}, line {line}", reason) for line, reason in bad]
    columns: list[tuple[SpoolColumn, Any, bool]] = []
    empty = []
    for name, column in found.items():
        try:
            decided = column.decide(options.types.get(name))
        except ValueError as error:
            reason, lines = error.args
            shown = ", ".join(map(str, lines))
            reason = f"{reason} in lines {shown}"
            as_text = Hint(Step("take all as text: {types}", types={name: "text"})) if column.can_be_text else ""
            hint = LISTS_EVERYWHERE if column.mixes_lists else as_text
            problems.append(Problem(f"{path}, column {name!r}", reason, blocking=True, input=None, hint=hint))
            continue
        if decided is None:
            empty.append(name)
        else:
            spooled = spooler.add(name, decided[0], is_list=decided[1])
            if decided[0] == "tensor":
                spooled.tensor = column.tensors.dtype, column.tensors.shape
            columns.append((spooled, *decided))
    if any(problem.blocking for problem in problems):
        spooler.clear()  # the columns of a spool have as many rows as the table
    else:
        for rows in file.blocks():
            for spooled, kind, is_list in columns:
                spooled.append(*convert_values(rows, spooled.name, kind, is_list))
    loaded = spooler.finish(num_rows, os.path.getsize(copy_of(path)), _name_rows(path, file.lines_of))
    loaded.problems[:0] = problems
    if empty:
        loaded.notes.append(f"columns without any value, left out: {', '.join(map(repr, empty))}")
    return loaded


def _name_rows(path: str, lines_of: Callable[[Iterable[int]], Mapping[int, int]]) -> Callable[..., Mapping[int, str]]:
    return lambda rows: {row: f"{path}, line {line}" for row, line in lines_of(rows).items()}
