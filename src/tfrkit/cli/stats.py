"""`tfr stats`: statistics of the features of a dataset."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import typer

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.options import Force, FormatOption, Jobs, OnCluster, Paths, split_names
from tfrkit.cli.output import count_noun, print_document, print_line, print_table, say, set_verdict
from tfrkit.cli.progress import watch_on_terminal

HELP = """Statistics of every feature, of classes and of splits.

\b
  tfr stats 'train-*'
  tfr stats data/ --html report.html --deep
  tfr stats data/ --features label,height --format json

Reads every record once, on threads; the index and the number of jobs do not change the result. Memory is
bounded. Exact: counts, ranges, means, deviations. Quantiles, histograms, numbers of distinct values and the most
frequent values are exact up to 4096 distinct values; beyond, quantiles are within 0.5 % of rank and numbers of
distinct values within about 3 % (marked ~, and exact: false). Splits come from the manifest or from file
names, and are compared with the training split by total variation (up to 100 distinct values) or Kolmogorov-Smirnov
(else); above 0.1, and above what chance explains, is flagged. Class names come from the manifest, features.json or
classes.txt. Exit code 1 if something was left out (--on-error skip).

--html writes the statistics page of `tfr view` as one file that needs no network: warnings, splits side by side,
classes, pictures of the rarest, sizes of pictures, histograms; in English and Chinese. --deep adds the findings of
`tfr verify --deep`, with pictures of copies and of records in two splits; it decodes every image.

JSON: records, kind (example, sequence_example, raw), files (path, bytes, records, split), record_bytes, features,
splits (name, files, records), classes, comparison, skipped, findings (shard, record, offset, cause), notes, html. A
feature: name, list, type, kinds, present (records with the name), unset, set (records with a value), share (of set),
values, lengths, frames, numbers, sizes, distinct, distinct_exact, top (value, name, count, share), top_error, text,
images (count, formats, modes, width, height), meaning. record_bytes, lengths, frames, numbers, sizes, width and
height: min, mean, max, std, quantiles (p1 .. p99), histogram (start, stop, count), exact; numbers also zeros, nan,
infinite. classes: feature, list, num_classes, largest_to_smallest, unused, classes (value, name, count, share,
splits). comparison: reference, flagged, features (name, list, method, splits (split, share, mean, distance, chance,
flagged, why)). JSON lines and CSV: a row per feature: name, list, type, present, share, values, min_length,
mean_length, max_length, min, mean, max, std, p50, zeros, nan, distinct, distinct_exact, meaning (min, mean, max, std
and p50 of bytes are those of their sizes).
"""

COLUMNS = (
    *("name", "list", "type", "present", "share", "values", "min_length", "mean_length", "max_length"),
    *("min", "mean", "max", "std", "p50", "zeros", "nan", "distinct", "distinct_exact", "meaning"),
)
MAX_CLASSES = 20  # shown as text; the other formats list more
MAX_TOP = 3
# The most frequent value is shown only from this share on.
MIN_TOP_SHARE, MIN_FLOAT_SHARE = 0.05, 0.2
BAR_WIDTH = 20
KINDS = {
    "example": "tf.train.Example",
    "sequence_example": "tf.train.SequenceExample",
    "raw": "neither Example nor SequenceExample (sizes only)",
}


def check_names(text: str | None) -> str | None:
    """Raise if the option is given without a name."""
    if text is not None and not split_names([text]):
        raise typer.BadParameter("expected feature names separated by commas")
    return text


Html = Annotated[
    str | None, typer.Option("--html", metavar="FILE", help="Write a report as one page.", show_default=False)
]
Deep = Annotated[bool, typer.Option("--deep", help="Also show copies and leaks, as verify --deep.")]
Features = Annotated[
    str | None,
    typer.Option(
        "--features", metavar="A,B", help="Read these features only.", callback=check_names, show_default=False
    ),
]
OnErrorOption = Annotated[
    Literal["raise", "skip"], typer.Option("--on-error", metavar="raise|skip", help="Action on damage.")
]


def run(
    paths: Paths,
    html: Html = None,
    deep: Deep = False,
    features: Features = None,
    jobs: Jobs = None,
    on_error: OnErrorOption = "raise",
    force: Force = False,
    *,
    on: OnCluster,
    format: FormatOption = "text",
) -> int:
    """Print the statistics, and write the report."""
    from tfrkit.view.stats import stats

    found = stats(
        paths,
        html=html,
        deep=deep,
        features=None if features is None else split_names([features]),
        jobs=jobs,
        on_error=on_error,
        force=force,
        **on.choose(),
        progress=watch_on_terminal(),
    )
    result = found.to_json()
    code = set_verdict(ExitCode.DONE if found.ok else ExitCode.FOUND)
    print_document(format, result, map(to_row, result["features"]), COLUMNS, print_text)
    return code


def to_row(feature: dict[str, Any]) -> dict[str, Any]:
    """Return a flat row for a feature."""
    lengths, numbers = feature["lengths"] or {}, feature["numbers"] or feature["sizes"] or {}
    plain = ("name", "list", "type", "present", "share", "values", "distinct", "distinct_exact", "meaning")
    return {
        **{key: feature[key] for key in plain},
        **{f"{key}_length": lengths.get(key) for key in ("min", "mean", "max")},
        **{key: numbers.get(key) for key in ("min", "mean", "max", "std", "zeros", "nan")},
        "p50": (numbers.get("quantiles") or {}).get("p50"),
    }


def print_text(result: dict[str, Any]) -> None:
    """Print a summary, then a table per kind of feature."""
    print_line(summarize(result))
    for note in result["notes"]:
        print_line(f"note: {note}")
    print_numbers(result)
    print_bytes(result)
    print_top(result)
    for classes in result["classes"]:
        print_classes(classes, result["splits"])
    if result["comparison"] is not None:
        print_comparison(result["comparison"])
    if result["findings"]:
        print_line("")
        for finding in result["findings"]:
            where = f"{finding['shard']}, record {finding['record']}, byte {finding['offset']}"
            print_line(f"left out: {where}: {finding['cause']}")
        say(f"{count_noun(result['skipped'], 'place')} left out")
    if result["html"] is not None:
        say(f"report: {result['html']}")


def summarize(result: dict[str, Any]) -> str:
    """Return the first line: totals."""
    files = result["files"]
    name = files[0]["path"] if len(files) == 1 else count_noun(len(files), "file")
    if not result["records"]:
        return f"{name}: no records"
    text = f"{name}: {count_noun(result['records'], 'record')}, {KINDS[result['kind']]}"
    sizes = result["record_bytes"]
    if sizes["min"] == sizes["max"]:
        return f"{text}, {show_span(sizes)} bytes each"
    return f"{text}, {show_span(sizes)} bytes each, mean {show_number(sizes['mean'])}"


def print_numbers(result: dict[str, Any]) -> None:
    """Print the features that hold numbers."""
    rows = []
    for feature in result["features"]:
        numbers = feature["numbers"]
        if numbers is None:
            continue
        cells = [show_number(numbers[key]) for key in ("min", "mean", "max", "std")]
        gaps = " ".join(
            f"{numbers[key]:,} {word}" for key, word in (("nan", "NaN"), ("infinite", "inf")) if numbers[key]
        )
        zeros = f"{numbers['zeros'] / feature['values']:.1%}" if feature["values"] else ""
        rows.append(
            (
                *head_cells(feature, result["records"]),
                *cells,
                zeros,
                show_distinct(feature),
                spark(numbers["histogram"]),
                gaps,
            )
        )
    if rows:
        print_line("")
        names = [
            "feature",
            "type",
            "present",
            "length",
            "min",
            "mean",
            "max",
            "std",
            "zeros",
            "different",
            "histogram",
            "",
        ]
        print_table(names, rows, right=("present", "min", "mean", "max", "std", "zeros", "different"))


def print_bytes(result: dict[str, Any]) -> None:
    """Print the features without numbers: those that hold bytes, no values, or values of several types."""
    rows = []
    for feature in result["features"]:
        if feature["numbers"] is not None:
            continue
        sizes = feature["sizes"]
        size = show_span(sizes) if sizes is not None else ""
        mean = show_number(sizes["mean"]) if sizes is not None else ""
        rows.append((*head_cells(feature, result["records"]), size, mean, show_distinct(feature), feature["meaning"]))
    if rows:
        print_line("")
        names = ("feature", "type", "present", "length", "size", "mean", "different", "meaning")
        print_table(names, rows, right=("present", "size", "mean", "different"))


def print_top(result: dict[str, Any]) -> None:
    """Print the most frequent values of features, except classes, which have their own table."""
    classes = {(one["feature"], one["list"]) for one in result["classes"]}
    rows = []
    for feature in result["features"]:
        # The range already shows a constant feature.
        if (feature["name"], feature["list"]) in classes or len(feature["top"]) < 2:
            continue
        if feature["top"][0]["share"] < (MIN_FLOAT_SHARE if feature["type"] == "float" else MIN_TOP_SHARE):
            continue
        for at, one in enumerate(feature["top"][:MAX_TOP]):
            name = feature["name"] if at == 0 else ""
            rows.append((name, show_value(one["value"]), f"{one['count']:,}", f"{one['share']:.1%}", bar(one["share"])))
    if rows:
        print_line("")
        print_table(("feature", "most frequent", "count", "share", ""), rows, right=("count", "share"))


def print_classes(classes: dict[str, Any], splits: Sequence[dict[str, Any]]) -> None:
    """Print the class balance of one feature."""
    names = [split["name"] for split in splits] if len(splits) > 1 else []
    in_order = sorted(classes["classes"], key=lambda one: -one["count"])
    largest = max(one["share"] for one in in_order)
    rows = [
        (
            show_value(one["value"]),
            one["name"] or "",
            f"{one['count']:,}",
            f"{one['share']:.2%}",
            bar(one["share"] / largest),
            *(f"{one['splits'][name]['share']:.2%}" for name in names),
        )
        for one in in_order[:MAX_CLASSES]
    ]
    print_line("")
    ratio = f", the largest {classes['largest_to_smallest']:,.3g} times the smallest" if len(in_order) > 1 else ""
    noun = "class" if classes["num_classes"] == 1 else "classes"
    print_line(f"{classes['feature']}: {classes['num_classes']:,} {noun}{ratio}")
    print_table(("class", "name", "count", "share", "", *names), rows, right=("count", "share", *names))
    if classes["num_classes"] > MAX_CLASSES:
        print_line(f"… and {classes['num_classes'] - MAX_CLASSES:,} more")
    if classes["unused"]:
        unused = ", ".join(str(one["name"]) for one in classes["unused"][:MAX_TOP])
        print_line(f"never come: {unused}{', …' if len(classes['unused']) > MAX_TOP else ''}")


def print_comparison(comparison: dict[str, Any]) -> None:
    """Print the differences between splits, or that there are none."""
    reference = comparison["reference"]
    others = [one["split"] for one in comparison["features"][0]["splits"]] if comparison["features"] else []
    others = [name for name in others if name != reference]
    print_line("")
    if not comparison["flagged"]:
        print_line(f"{', '.join(others)} against {reference}: no feature stands out")
        return
    rows = [
        (feature["name"], split["split"], show_number(split["mean"]), split["why"])
        for feature in comparison["features"]
        for split in feature["splits"]
        if split["flagged"]
    ]
    print_table(("feature", "split", "mean", f"differs from {reference}"), rows, right=("mean",))


def show_share(count: int, total: int) -> str:
    """Return a share in percent, of which neither none nor all is shown for some.

    Example:
        >>> show_share(1, 20000), show_share(19999, 20000), show_share(1, 4), show_share(0, 4)
        ('<0.1%', '>99.9%', '25.0%', '0.0%')
    """
    if 0 < count < total / 1000:
        return "<0.1%"
    if total > count > total - total / 1000:
        return ">99.9%"
    return f"{count / total:.1%}" if total else "0.0%"


def head_cells(feature: dict[str, Any], records: int) -> tuple[str, str, str, str]:
    """Return name, type, presence and lengths: the first columns of every table."""
    present = "all" if feature["set"] == records else show_share(feature["set"], records)
    length = show_span(feature["lengths"]) if feature["lengths"] is not None else ""
    if feature["frames"] is not None:
        length = f"{show_span(feature['frames'])} x {length}"
    return feature["name"], feature["type"] or "never set", present, length


def show_distinct(feature: dict[str, Any]) -> str:
    """Format the number of distinct values, marked if estimated."""
    if feature["distinct"] is None:
        return ""
    return f"{'' if feature['distinct_exact'] else '~'}{feature['distinct']:,}"


def show_span(summary: dict[str, Any]) -> str:
    """Format a range, or one number if both ends are equal."""
    low, high = show_number(summary["min"]), show_number(summary["max"])
    return low if summary["min"] == summary["max"] else f"{low}..{high}"


def show_number(value: object) -> str:
    """Format a number in few characters."""
    if isinstance(value, float):
        return f"{value:,.1f}" if 100 <= abs(value) < 1e6 else f"{value:.4g}"
    if isinstance(value, int):
        return f"{value:,}"
    return "" if value is None else str(value)


def show_value(value: object) -> str:
    """Format one value of a feature from the JSON report."""
    if isinstance(value, dict):
        return " ".join(f"{key} {inner}" for key, inner in value.items())
    return show_number(value) if isinstance(value, float) else str(value)


def spark(histogram: Sequence[dict[str, Any]]) -> str:
    """Draw a histogram with one character per bin."""
    levels = "▁▂▃▄▅▆▇█" if can_print("▁█") else ".:-=+*#@"
    largest = max((one["count"] for one in histogram), default=0)
    if largest == 0:
        return ""
    # An empty bin is a gap; a bin with few values must not look empty.
    return "".join(
        levels[min(len(levels) - 1, one["count"] * len(levels) // largest)] if one["count"] else " "
        for one in histogram
    ).rstrip()


def bar(share: float) -> str:
    """Draw a bar for a fraction of 1."""
    return ("█" if can_print("█") else "#") * max(1, round(share * BAR_WIDTH)) if share > 0 else ""


def can_print(text: str) -> bool:
    """Whether stdout can encode these characters."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
