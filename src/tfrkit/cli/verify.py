"""`tfr verify`: check every checksum, every record and every shard of a set; with --deep, the contents of records."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.options import Force, FormatOption, Jobs, OnCluster, Paths, Shape
from tfrkit.cli.output import count_noun, explain_uncertain, name_place, print_document, print_line, say, set_verdict
from tfrkit.cli.progress import watch_on_terminal
from tfrkit.ops.verify.result import KINDS

HELP = f"""Check every checksum, parse every record, find missing shards.

\b
  tfr verify data/
  tfr verify data/ --deep --report report.json
  tfr verify 'train-*' --format json
  tfr verify raw.tfrecord --deep --shape 224x224

Reads everything; an index is not used. Prints one line per damaged place (shard, record, byte, cause) and
continues at the next frame with two valid checksums. Records count from 0, bytes from the start of
the file, after inflating if it is compressed. Exit code 1 if something was found, else 0.
A range of bytes [start, stop) may hold several damaged records, and only the first fault in it is listed. Record
numbers after it count it as one record and are marked as uncertain.

A folder, a glob or several files are a set: missing shards of -of-N, sizes and counts that differ from
tfrkit.json or TFDS's dataset_info.json, and a stale index are findings, too.

--deep decodes every image and checks height, width and channels against it, the length of raw pixels against --shape,
labels against class names, boxes against 0 to 1 (or the image, if they are in pixels), masks against the classes
and the image, compares sha256, and lists duplicates, near duplicates (by a perceptual hash) and records that are in
two splits. It keeps hashes only, at most 300 bytes per record. Kinds to --ignore: {", ".join(KINDS)}.

JSON: ok, records, findings (shard, record, offset, cause, kind, other, stop, record_certain), counts (by kind),
shards (shard, records, nbytes, findings), notes. record and offset are null if a finding is about a whole file;
other is the record (shard, record, offset, record_certain) that a duplicate or a leak is a copy of, else null;
stop is the end of a range, else null; record_certain is false after a range in that file.
"""

COLUMNS = ("shard", "record", "offset", "cause", "kind", "stop", "record_certain")
DAMAGE = frozenset({"file", "checksum", "truncated", "compression", "parse"})

Deep = Annotated[bool, typer.Option("--deep", help="Also check images, labels, boxes, masks and duplicates.")]
Sha256 = Annotated[bool, typer.Option("--sha256", help="Compare files with the sha256 of their manifest.")]
Ignore = Annotated[
    list[str] | None, typer.Option("--ignore", metavar="KIND", help="A kind of finding to skip; may be repeated.")
]
Report = Annotated[str | None, typer.Option("--report", metavar="FILE", help="Also write the result as JSON.")]


def run(
    paths: Paths,
    deep: Deep = False,
    shape: Shape = None,
    sha256: Sha256 = False,
    ignore: Ignore = None,
    report: Report = None,
    force: Force = False,
    jobs: Jobs = None,
    *,
    on: OnCluster,
    format: FormatOption = "text",
) -> int:
    """Print the findings, or ok."""
    from tfrkit.ops.verify.verify import verify, write_report
    from tfrkit.outputs.target import require_output

    if report is not None:
        # Fail now, not after an hour of reading.
        require_output(report, force=force)
    made = verify(
        paths,
        deep=deep,
        shape=shape,
        sha256=sha256,
        ignore=ignore or (),
        jobs=jobs,
        **on.choose(),
        progress=watch_on_terminal(),
    )
    if report is not None:
        write_report(made, report, force=force)
    result: dict[str, Any] = made.to_json()
    code = set_verdict(ExitCode.DONE if result["ok"] else ExitCode.FOUND)
    print_document(format, result, result["findings"], COLUMNS, print_text)
    return code


def print_text(result: dict[str, Any]) -> None:
    """Print one line per finding; the verdict goes to stdout if there are no findings, else to stderr."""
    for finding in result["findings"]:
        print_line(to_line(finding))
    explain_uncertain(result["findings"])
    for note in result["notes"]:
        say(f"note: {note}")
    records = count_noun(result["records"], "record")
    if result["ok"]:
        print_line(f"ok, {records}" if result["records"] else "ok, no records")
    else:
        counts: dict[str, int] = result["counts"]
        if len(counts) > 1 and not DAMAGE.issuperset(counts):
            say("by kind: " + ", ".join(f"{number:,} {kind}" for kind, number in counts.items()))
        say(f"{count_noun(sum(counts.values()), 'finding')}, {records} readable")


def to_line(finding: dict[str, Any]) -> str:
    """Return a finding as one line: place, then cause."""
    return f"{name_place(finding)}: {finding['cause']}"
