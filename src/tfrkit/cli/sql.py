"""`tfr sql`: query TFRecord files."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.options import CompressionOption, Force, FormatOption, InferOption, OnCluster
from tfrkit.cli.output import count_noun, print_document, print_line, print_result, print_table, say

if TYPE_CHECKING:
    from tfrkit.ops.query.query import Answer

HELP = """Query TFRecord files with SQL.

\b
  tfr sql "select label, count(*) n, avg(height) from 'train-*' group by 1 order by n desc"
  tfr sql "select * from 'train-*' where label = 'cat' and width >= 500" -o cats.tfrecord
  tfr sql "describe select * from 'train-*'"

DuckDB's SQL, one SELECT. Files, folders and globs go in FROM, in quotes; - is stdin. Only the features that the
query names are decoded; count(*) reads headers only. Names that are more than letters, digits and _ go in double
quotes: "image/height". Bytes that are UTF-8 text in every sampled record are VARCHAR and compare with 'text',
others are BLOB; several values are a list; an absent feature is NULL. A SequenceExample is two structs:
context.name, feature_lists.frame. Records that are not Examples have the column record. _record is the number of a
record in its table, from 0, _file its file, _split its split or NULL: columns to name, no part of *. label_name is
the class name of label, if classes.txt or the schema has names.
The query cannot access other files or the network. It may use half of the memory of this process, or
--memory; what does not fit goes to the folder for temporary files (TMPDIR), up to half of the free space there.

-o writes .parquet, .csv, .jsonl or .tfrecord. To a TFRecord, select * from one table copies the matching records
byte for byte; any other query writes its columns as Examples, without NULLs. Needs: pip install
'tfrkit[sql]'.

JSON: columns (name, type), rows; values as in tfr head. With -o: output, records, columns, copied.
"""

Query = Annotated[str, typer.Argument(metavar="QUERY", help="One SELECT.", show_default=False)]
Output = Annotated[
    str | None, typer.Option("-o", "--output", metavar="PATH", help="File to write.", show_default=False)
]
Count = Annotated[int, typer.Option("-n", min=0, metavar="N", help="Number of rows to show as text.")]
Binary = Annotated[
    list[str] | None,
    typer.Option("--binary", metavar="FEATURE", help="Read this text feature as bytes; may be repeated."),
]
Timeout = Annotated[float | None, typer.Option("--timeout", metavar="SECONDS", help="Stop the query after this time.")]
Memory = Annotated[
    str | None, typer.Option("--memory", metavar="SIZE", help="Memory limit of the query, from 32MB, such as 2GB.")
]


def run(
    query: Query,
    output: Output = None,
    n: Count = 1000,
    binary: Binary = None,
    infer: InferOption = "sample",
    compression: CompressionOption = None,
    force: Force = False,
    timeout: Timeout = None,
    memory: Memory = None,
    *,
    on: OnCluster,
    format: FormatOption = "text",
) -> int:
    """Print the rows, or write them and print a summary."""
    from tfrkit.ops.query.query import sql

    if compression is not None and output is None:
        raise ValueError("--compression is that of a TFRecord to write, expected -o with it")
    with sql(
        query,
        binary=binary or (),
        infer=infer,
        timeout=timeout,
        memory=memory,
        **on.choose(),
    ) as answer:
        if output is None:
            print_result(
                format,
                document=answer.to_json,
                rows=answer.json_rows,
                columns=answer.columns,
                text=lambda: print_rows(answer, n),
            )
            return ExitCode.DONE
        result = answer.save(output, force=force, compression=compression).to_json()
    print_document(format, result, [result], ("output", "records", "columns", "copied"), print_saved)
    return ExitCode.DONE


def print_rows(answer: Answer, limit: int) -> None:
    """Print a table of the first rows, long values cut, and a note if there are more rows."""
    from tfrkit.ops.query.values import cell_to_text, is_number

    rows = answer.tuples()
    shown = [[cell_to_text(value) for value in row] for row in islice(rows, limit)]
    right = [name for name, kind in zip(answer.columns, answer.types, strict=True) if is_number(kind)]
    print_table(answer.columns, shown, right=right)
    if next(rows, None) is not None:
        say(f"the first {count_noun(limit, 'row')}, there are more: -n, --format jsonl, -o")


def print_saved(result: dict[str, Any]) -> None:
    """Print the summary of a written file."""
    how = ", copied byte for byte" if result["copied"] else ""
    print_line(f"{result['output']}: {count_noun(result['records'], 'record')}{how}")
