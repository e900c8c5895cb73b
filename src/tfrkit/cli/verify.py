"""`tfr verify`: every checksum, every record."""

from __future__ import annotations

from typing import Any

from tfrkit.cli.options import FormatOption, Paths
from tfrkit.cli.output import count_noun, print_line, print_result, say

HELP = """Check every checksum and parse every record.

\b
  tfr verify data/
  tfr verify 'train-*' --format json

Reads everything; an index makes no difference. Prints one line per fault (shard, record, byte, cause) and
goes on behind it, at the next frame whose two checksums hold. Records count from 0, bytes from the start of
the file, after inflating where it is compressed. Exit code 1 where something was found, 0 where not.

JSON: ok, records, findings (shard, record, offset, cause).
"""

COLUMNS = ("shard", "record", "offset", "cause")


def run(paths: Paths, format: FormatOption = "text") -> int:
    """Print what is damaged, or that nothing is."""
    from tfrkit.ops.verify import verify

    result: dict[str, Any] = verify(paths).to_json()
    print_result(
        format,
        document=lambda: result,
        rows=lambda: result["findings"],
        columns=COLUMNS,
        text=lambda: print_text(result),
    )
    return 0 if result["ok"] else 1


def print_text(result: dict[str, Any]) -> None:
    """One line per finding; the verdict is the result where there are none, and talk where there are some."""
    for finding in result["findings"]:
        print_line(to_line(finding))
    records = count_noun(result["records"], "record")
    if result["ok"]:
        print_line(f"ok, {records}" if result["records"] else "ok, no records")
    else:
        say(f"{count_noun(len(result['findings']), 'finding')}, {records} readable")


def to_line(finding: dict[str, Any]) -> str:
    """A finding in the form of every other message: cause, then where."""
    where = [finding["shard"]]
    if finding["record"] is not None:
        where.append(f"record {finding['record']}")
    if finding["offset"] is not None:
        where.append(f"byte {finding['offset']}")
    return f"{', '.join(where)}: {finding['cause']}"
