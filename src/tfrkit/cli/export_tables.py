"""Kinds of `tfr export` that write tables, arrays and archives."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from tfrkit._limits import DEFAULT_TAR_SIZE
from tfrkit.cli.export_report import (
    ExportCommand,
    Exporting,
    ImageFeature,
    LabelFeature,
    NameFeature,
    OnBad,
    run_export,
)
from tfrkit.cli.options import OnCluster, Output, Paths

PARQUET_HELP = """Write one row per record as Parquet.

\b
  tfr export parquet data/ -o data.parquet
  tfr export parquet data/ -o tables/          one file per split
  tfr export parquet x.tfrecord -o x.parquet --select label --select image/height

A varying number of values is a list; an absent feature is null, an empty list stays one. Needs pyarrow. Memory: one
row group of 32 MB and its compression.
"""
CSV_HELP = """Write a header and one line per record.

\b
  tfr export csv data/ -o data.csv
  tfr export csv data/ -o - --select label --select score
  tfr export csv data/ -o data.csv --safe-csv      for a spreadsheet, from data of others

Bytes are text if they are UTF-8, else {"base64": "..."}; several values are a JSON array; an absent value is an
empty cell. With -o FOLDER/ one file per split. For exact round trips: tfr export jsonl, parquet. tfr build
table reads numbers that do not fit in float32 with --floats float64.
"""
JSONL_HELP = """Write one JSON object per record; nothing is lost.

\b
  tfr export jsonl data/ -o data.jsonl
  tfr export jsonl data/ -o - | jq -c 'select(.label == 3)'

Bytes are text if they are UTF-8, else {"base64": "..."}; NaN and infinities are {"float": "nan"}; serialized
tensors are {"tensor": {"dtype", "shape", "values"}}; an absent feature has no key. Records that are not Examples are
{"record": ...}, SequenceExamples {"context": {...}, "feature_lists": {...}}. With -o FOLDER/ one file per split.
tfr build table reads all of this back.
"""
NPZ_HELP = """Write arrays that numpy.load reads without pickles.

\b
  tfr export npz data/ -o data.npz

A feature x of one shape is the array x; x/values and x/row_splits if the number of values varies; x/bytes and
x/offsets for bytes that are long or end in a NUL; x/presence (0 absent, 1 unset, 2 present) if records lack it. Needs
twice the space on the disk while it is written.
"""
WEBDATASET_HELP = """Write tar files of samples, as WebDataset reads them.

\b
  tfr export webdataset data/ -o tars/ --shard-size 500MB
  tfr export webdataset x.tfrecord -o x.tar

The image is .jpg or .png by its bytes, the class .cls, a text .txt, arrays .npy, everything else .json. A dataset of
`tfr build webdataset` is restored. The same records give the same bytes.
"""

Select = Annotated[
    list[str] | None,
    typer.Option("--select", metavar="FEATURE", help="Only this feature; may be given several times."),
]
SafeCsv = Annotated[
    bool, typer.Option("--safe-csv", help="Put ' before text that a spreadsheet would run as a formula.")
]
ParquetCompression = Annotated[
    Literal["zstd", "snappy", "gzip", "lz4", "brotli", "none"],
    typer.Option(
        "--compression",
        case_sensitive=False,
        metavar="zstd|snappy|gzip|lz4|brotli|none",
        help="Compression of the columns.",
    ),
]
ShardSize = Annotated[str, typer.Option("--shard-size", metavar="SIZE", help="Approximate size of a tar.")]


def run_parquet(
    paths: Paths, output: Output, select: Select = None, compression: ParquetCompression = "zstd", *, how: Exporting
) -> int:
    """Write Parquet, and print a report."""
    from tfrkit.ops.export.parquet import export_parquet

    return run_export(export_parquet, paths, output, how, select=select or None, compression=compression)


def run_npz(paths: Paths, output: Output, select: Select = None, *, how: Exporting) -> int:
    """Write arrays, and print a report."""
    from tfrkit.ops.export.npz import export_npz

    return run_export(export_npz, paths, output, how, select=select or None)


def run_csv(
    paths: Paths, output: Output, select: Select = None, safe_csv: SafeCsv = False, *, how: Exporting, on: OnCluster
) -> int:
    """Write CSV, and print a report."""
    from tfrkit.ops.export.rows import export_csv

    return run_export(export_csv, paths, output, how, select=select or None, safe=safe_csv, **on.choose())


def run_jsonl(paths: Paths, output: Output, select: Select = None, *, how: Exporting, on: OnCluster) -> int:
    """Write JSON lines, and print a report."""
    from tfrkit.ops.export.rows import export_jsonl

    return run_export(export_jsonl, paths, output, how, select=select or None, **on.choose())


def run_webdataset(
    paths: Paths,
    output: Output,
    shard_size: ShardSize = DEFAULT_TAR_SIZE,
    image: ImageFeature = None,
    label: LabelFeature = None,
    name: NameFeature = None,
    on_bad: OnBad = "fail",
    *,
    how: Exporting,
) -> int:
    """Write tar files, and print what was done."""
    from tfrkit.ops.export.webdataset import export_webdataset as export

    given = {"shard_size": shard_size, "image": image, "label": label, "name": name, "on_bad": on_bad}
    return run_export(export, paths, output, how, **given)


TABLE_KINDS = {
    "parquet": ExportCommand(PARQUET_HELP, run_parquet),
    "csv": ExportCommand(CSV_HELP, run_csv),
    "jsonl": ExportCommand(JSONL_HELP, run_jsonl),
    "npz": ExportCommand(NPZ_HELP, run_npz),
    "webdataset": ExportCommand(WEBDATASET_HELP, run_webdataset),
}
