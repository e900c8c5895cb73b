"""`tfr info`: describe a dataset."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.options import FormatOption, Paths
from tfrkit.cli.output import Format, count_noun, print_document, print_line, print_result, print_table

HELP = """Show the records, kind, compression and features of a dataset.

\b
  tfr info train.tfrecord
  tfr info 'train-*' --format json
  tfr info s3://bucket/data/ --epoch-cost

Reads every record, checks it, and keeps counts; an index makes no difference.

Raw bytes of equal length are shown with the size they may have as pixels (224x224 gray?); --shape of sheet and export
images accepts it. In a SequenceExample, frames are those of each feature list; other features are of its context.

--epoch-cost prints the requests and dollars of one shuffled epoch in an object store instead, in exact order (a request
for each record) and in striped order (blocks of 8 MiB; see mode of Dataset.shuffle). It reads no records if they are
counted in a manifest or indexes. Any files can be given, to know the cost before they are copied to a store.

JSON: records, record_bytes (min, mean, max), kind (example, sequence_example, raw or mixed), compression, splits
(records by name), files (path, bytes, compression, records, kind), features (name, type, list, present (records with
the name), set (records with a value), min_length, max_length, min_frames, max_frames, pixel_shapes (height, width,
channels), meaning and more), notes. JSON lines and CSV: features. With --epoch-cost: orders (order, requests, dollars,
held_nbytes, mixing, is_default).
"""

EpochCostOption = Annotated[
    bool, typer.Option("--epoch-cost", help="Requests and dollars of an epoch in an object store, by order.")
]

COST_COLUMNS = ("order", "requests", "dollars", "in memory", "mixing")
COLUMNS = ("name", "type", "present", "set", "min_length", "max_length", "meaning")
FILE_COLUMNS = ("path", "bytes", "compression", "records", "kind")
MAX_FILES = 20  # shown as text; the other formats list all files


def run(paths: Paths, epoch_cost: EpochCostOption = False, format: FormatOption = "text") -> int:
    """Print the files, then the features; or the cost of an epoch."""
    if epoch_cost:
        return run_epoch_cost(paths, format)
    from tfrkit.ops.info import describe

    result: dict[str, Any] = describe(paths).to_json()
    print_document(format, result, result["features"], COLUMNS, print_text)
    return ExitCode.DONE


def run_epoch_cost(paths: list[str], format: Format) -> int:
    """Print the cost of an epoch in each order."""
    from tfrkit.ops.epoch_cost import describe_prices, epoch_cost

    costs = [cost.to_json() for cost in epoch_cost(paths)]

    def print_costs() -> None:
        cells = [
            (
                f"{cost['order']}{' (default)' if cost['is_default'] else ''}",
                f"{cost['requests']:,}",
                f"${cost['dollars']:,.4f}" if cost["dollars"] < 1 else f"${cost['dollars']:,.2f}",
                f"{cost['held_nbytes'] / (1 << 20):,.0f} MiB",
                f"{cost['mixing']:.2f}",
            )
            for cost in costs
        ]
        print_table(COST_COLUMNS, cells, right=COST_COLUMNS[1:])
        print_line(describe_prices())

    print_result(
        format, document=lambda: {"orders": costs}, rows=lambda: costs, columns=tuple(costs[0]), text=print_costs
    )
    return ExitCode.DONE


def print_text(result: dict[str, Any]) -> None:
    """Print a summary, the files if several, and the features."""
    files, features = result["files"], result["features"]
    print_line(summarize(result))
    if result["splits"]:
        print_line("splits: " + ", ".join(f"{name} {count:,}" for name, count in result["splits"].items()))
    if result["record_bytes"] is not None:
        print_line(f"record size: {show_sizes(result['record_bytes'])}")
    for note in result["notes"]:
        print_line(f"note: {note}")
    if len(files) > 1:
        print_line("")
        print_table(FILE_COLUMNS, map(to_file_cells, files[:MAX_FILES]), right=("bytes", "records"))
        if len(files) > MAX_FILES:
            print_line(f"… and {count_noun(len(files) - MAX_FILES, 'more file')}")
    if features:
        print_line("")
        cells = [to_feature_cells(feature, result["records"]) for feature in features]
        columns: tuple[str, ...] = ("feature", "type", "present", "length", "meaning")
        if result["kind"] == "sequence_example":
            frames = map(to_frames_cell, features)
            cells = [(*row[:3], cell, *row[3:]) for row, cell in zip(cells, frames, strict=True)]
            columns = (*columns[:3], "frames", *columns[3:])
        print_table(columns, cells, right=("present",))


def summarize(result: dict[str, Any]) -> str:
    """Return the first line: totals."""
    files = result["files"]
    name = files[0]["path"] if len(files) == 1 else count_noun(len(files), "file")
    nbytes = [file["bytes"] for file in files]
    size = f", {count_noun(sum(nbytes), 'byte')}" if None not in nbytes else ""
    if not result["records"]:
        return f"{name}: no records{size}"
    packed = "not compressed" if result["compression"] == "none" else result["compression"]
    return f"{name}: {count_noun(result['records'], 'record')}, {KINDS[result['kind']]}, {packed}{size}"


KINDS = {
    "example": "tf.train.Example",
    "sequence_example": "tf.train.SequenceExample",
    "raw": "neither Example nor SequenceExample (read as raw bytes)",
    "mixed": "of several kinds",
}


def to_file_cells(file: dict[str, Any]) -> tuple[object, ...]:
    """Return the table cells of one file."""
    size = "" if file["bytes"] is None else f"{file['bytes']:,}"
    return file["path"], size, file["compression"], f"{file['records']:,}", file["kind"]


def show_sizes(sizes: dict[str, Any]) -> str:
    """Format the sizes of records: one number if all are equal."""
    if sizes["min"] == sizes["max"]:
        return f"{count_noun(sizes['min'], 'byte')} each"
    return f"{sizes['min']:,} to {sizes['max']:,} bytes, {round(sizes['mean']):,} on average"


def to_frames_cell(feature: dict[str, Any]) -> str:
    """Format the number of steps per record of a feature list; "context" for other features."""
    if not feature["list"]:
        return "context"
    fewest, most = feature["min_frames"], feature["max_frames"]
    return f"{fewest:,}" if fewest == most else f"{fewest:,}..{most:,}"


def to_feature_cells(feature: dict[str, Any], records: int) -> tuple[object, ...]:
    """Return the table cells of a feature: presence, length and likely meaning."""
    shortest, longest = feature["min_length"], feature["max_length"]
    length = f"{shortest:,}" if shortest == longest else f"{shortest:,}..{longest:,}"
    present = "all" if feature["set"] == records else f"{feature['set']:,} of {records:,}"
    return feature["name"], feature["type"], present, length, feature["meaning"] or ""
