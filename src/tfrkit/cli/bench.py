"""`tfr bench`: the bottleneck of reading, and the cost of compression."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tfrkit._limits import DEFAULT_BENCH_NBYTES
from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.options import FormatOption, Paths
from tfrkit.cli.output import count_noun, print_document, print_line, print_table, show_nbytes

HELP = """Time the steps of reading this dataset on this machine.

\b
  tfr bench train.tfrecord
  tfr bench 'train-*' --megabytes 64 --format json

Reads the first records and times each step on one core: disk (with the file's cache dropped first), inflate,
checksum, parse, decode of images, collate. The longest one is what limits reading. Then the same records are
read back from each compression, to compare speed and size. Images are decoded on the GPU, too, if there is one, to see
whether that is faster here. Nothing is written.

JSON: records, bytes, limit, steps (step, us_per_record, mb_per_s), compressions (compression, bytes, ratio,
write_mb_per_s, read_mb_per_s, records_per_s), mixing (how well each kind of shuffle mixes, 1 is perfect),
gpu (cpu_images_per_s and gpu_images_per_s, null without a GPU, and verdict, a sentence), missing (packages that would
make reading faster, with what is missed without them).
"""

COLUMNS = ("compression", "bytes", "ratio", "write_mb_per_s", "read_mb_per_s", "records_per_s")

Megabytes = Annotated[int, typer.Option("--megabytes", min=1, metavar="N", help="Amount of data to read.")]


def run(paths: Paths, megabytes: Megabytes = DEFAULT_BENCH_NBYTES >> 20, format: FormatOption = "text") -> int:
    """Print two tables and a verdict."""
    from tfrkit.ops.bench import bench

    result = bench(paths, sample_nbytes=megabytes << 20).to_json()
    print_document(format, result, result["compressions"], COLUMNS, print_text)
    return ExitCode.DONE


def print_text(result: dict[str, Any]) -> None:
    """Print steps, limit, compressions, shuffles, the verdict on a GPU and missing packages."""
    total = sum(step["us_per_record"] for step in result["steps"])
    print_line(f"first {count_noun(result['records'], 'record')}, {show_nbytes(result['bytes'])}, on one core")
    print_line("")
    print_table(
        ("step", "us/record", "MB/s", "share"),
        [
            (
                step["step"],
                f"{step['us_per_record']:,.2f}",
                show_speed(step["mb_per_s"]),
                f"{step['us_per_record'] / total:.0%}",
            )
            for step in result["steps"]
        ],
        right=("us/record", "MB/s", "share"),
    )
    print_line("")
    print_line(f"limited by {result['limit']}")
    print_line("")
    plain = result["compressions"][0]
    print_table(
        ("compression", "size", "of plain", "write MB/s", "read MB/s", "records/s", "reading takes"),
        [
            (
                row["compression"],
                show_nbytes(row["bytes"]),
                f"{row['ratio']:.0%}",
                show_speed(row["write_mb_per_s"]),
                show_speed(row["read_mb_per_s"]),
                f"{row['records_per_s']:,}",
                f"{plain['read_mb_per_s'] / row['read_mb_per_s']:.1f} x",
            )
            for row in result["compressions"]
        ],
        right=("size", "of plain", "write MB/s", "read MB/s", "records/s", "reading takes"),
    )
    mixing = result["mixing"]
    print_line("")
    print_line(
        f"mixing, 1 is perfect: exact shuffle {mixing['exact']:.2f}, in windows of a tenth {mixing['window']:.2f}, "
        f"file order {mixing['none']:.2f}"
    )
    print_line(f"decoding on a GPU: {result['gpu']['verdict']}")
    for package, cost in result["missing"].items():
        print_line(f"{package} is not installed: {cost}")
    if result["missing"]:
        print_line(f"  install: pip install {' '.join(result['missing'])}")


def show_speed(mb_per_s: float) -> str:
    """Format a speed: whole megabytes, one decimal for small numbers."""
    return f"{mb_per_s:,.0f}" if mb_per_s >= 10 else f"{mb_per_s:.1f}"
