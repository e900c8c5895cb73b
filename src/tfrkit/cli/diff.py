"""`tfr diff`: compare two datasets."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.options import FormatOption
from tfrkit.cli.output import count_noun, print_document, print_line, say, set_verdict
from tfrkit.cli.progress import watch_on_terminal

HELP = """Compare two datasets record by record.

\b
  tfr diff old/ new/
  tfr diff 'a-*.tfrecord' b.tfrecord --key id --format json

Compares records by position, or with --key by the value of a feature, which has to be one unique integer or text
per record. Shards and compression do not matter. Lists what was added, removed and changed, feature by feature;
images by their bytes and, if these differ, by their pixels. A feature that one schema lacks, or has as floats and
the other one as the same integers, is listed once. Records with the same values in other bytes (another order of
features) are counted and are not a difference. Exit code 1 if something differs, else 0.

Reads both sides once; records of equal bytes are not decoded. With --key it holds 8 or 16 bytes per record.

JSON: same, records_a, records_b, equal, recoded, schema_only, changed, added, removed, features (name: records in
which it changed), schema (feature, change, a, b, note), changes (change, a and b (number, shard, record), key,
features).
"""

COLUMNS = ("change", "number_a", "number_b", "key", "feature", "a", "b", "note")

COUNTS = {
    "recoded": "equal in other bytes",
    "schema_only": "equal but for the schema",
    "changed": "changed",
    "removed": "removed",
    "added": "added",
}

First = Annotated[str, typer.Argument(metavar="A", help="Old side: file, folder or glob.", show_default=False)]
Second = Annotated[str, typer.Argument(metavar="B", help="New side: file, folder or glob.", show_default=False)]
Key = Annotated[str | None, typer.Option("--key", metavar="FEATURE", help="Match records by this feature.")]
Max = Annotated[int, typer.Option("--max", min=0, metavar="N", help="Records to list per kind of change.")]


def run(a: First, b: Second, key: Key = None, max: Max = 20, format: FormatOption = "text") -> int:
    """Print the differences."""
    from tfrkit.ops.diff.diff import diff

    result = diff(a, b, key=key, max_listed=max, progress=watch_on_terminal()).to_json()
    code = set_verdict(ExitCode.DONE if result["same"] else ExitCode.FOUND)
    rows = flatten(result) if format == "csv" else [*result["schema"], *result["changes"]]
    print_document(format, result, rows, COLUMNS, print_text)
    return code


def print_text(result: dict[str, Any]) -> None:
    """Print changes of the schema, changes of records, then the counts."""
    for change in result["schema"]:
        print_line(f"schema: {describe_schema(change)}")
    for change in result["changes"]:
        print_line(describe_place(change))
        width = max((len(feature["feature"]) for feature in change["features"]), default=0)
        for feature in change["features"]:
            print_line(f"  {feature['feature'].ljust(width)}  {describe_values(feature)}")
    for kind in ("changed", "removed", "added"):
        left = result[kind] - sum(change["change"] == kind for change in result["changes"])
        if left:
            print_line(f"… {count_noun(left, 'more record')} {kind}")
    counts = [f"{result['equal']:,} equal"]
    counts += [f"{result[kind]:,} {words}" for kind, words in COUNTS.items() if result[kind]]
    print_line(f"{count_noun(result['records_a'], 'record')} against {result['records_b']:,}: {', '.join(counts)}")
    if result["features"]:
        print_line("features: " + ", ".join(f"{name} {count:,}" for name, count in result["features"].items()))
    if result["records_a"] != result["records_b"] and result["changed"] and not has_key(result):
        say("records were compared by position; if some were inserted, match records by a feature: --key")


def describe_schema(change: dict[str, Any]) -> str:
    """Describe a feature that one side lacks, or that has another type there."""
    name = f"feature {change['feature']!r}" if change["feature"] else "the records"
    if change["change"] == "changed":
        return f"{name}: {change['a']} -> {change['b']}"
    return f"{name} {change['change']}, {change['a'] or change['b']}"


def describe_place(change: dict[str, Any]) -> str:
    """Describe the position of a changed record."""
    place = change["a"] or change["b"]
    words = [f"{change['change']}: record {place['number']}"]
    if change["key"] is not None:
        words.append(f"key {change['key']}")
    if change["a"] and change["b"] and change["a"]["number"] != change["b"]["number"]:
        words.append(f"now record {change['b']['number']}")
    return f"{', '.join(words)} ({place['shard']}, record {place['record']})"


def describe_values(feature: dict[str, Any]) -> str:
    """Describe how a feature differs between the two sides: both values, or the side that has it."""
    note = f"  ({feature['note']})" if feature["note"] else ""
    if feature["change"] == "changed":
        return f"{feature['a']} -> {feature['b']}{note}"
    return f"{feature['change']}: {feature['a'] if feature['b'] is None else feature['b']}{note}"


def has_key(result: dict[str, Any]) -> bool:
    """Whether records were matched by a feature."""
    return any(change["key"] is not None for change in result["changes"])


def flatten(result: dict[str, Any]) -> list[dict[str, Any]]:
    """Return one row per changed feature, and one per record that only one side has."""
    rows = [{**change, "change": f"schema {change['change']}"} for change in result["schema"]]
    for change in result["changes"]:
        numbers = {f"number_{side}": None if change[side] is None else change[side]["number"] for side in ("a", "b")}
        row = {"change": change["change"], "key": change["key"], **numbers}
        rows += [{**row, **feature, "change": change["change"]} for feature in change["features"]] or [row]
    return rows
