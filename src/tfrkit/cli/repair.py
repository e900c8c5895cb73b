"""`tfr repair`: copy readable records."""

from __future__ import annotations

from typing import Any

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.options import CompressionOption, Force, FormatOption, Output, Paths
from tfrkit.cli.output import count_noun, explain_uncertain, name_place, print_document, print_line, say, set_verdict
from tfrkit.cli.progress import watch_on_terminal

HELP = """Copy every readable record into files without damage.

\b
  tfr repair bad.tfrecord -o good.tfrecord
  tfr repair data/ -o repaired/

Keeps each record with two valid checksums, before and after damage, damaged lengths and torn ends included, with
its bytes unchanged; of a compressed file also the members after one that does not inflate. Several files go into
a folder under their own names. Prints each loss: byte ranges [start, stop) count from the start of the file, after
inflating if it is compressed. The source is not changed. Exit code 1 if something was lost, else 0.

The number of lost records is known if a manifest or an index has the number of records, or only payload checksums
fail and a frame follows each. Record numbers after a loss of unknown number count it as one and are marked as
uncertain. What is in a record is not repaired: one with valid checksums that is no Example, though most others are,
is kept, and a note counts it (not from stdin).

JSON: records, lost_records (null if unknown), lost_bytes (after inflating), lost_stored_bytes (of compressed files,
bytes that do not inflate), files (source, output, records), lost (shard, record, offset, stop, cause, stored_offset,
stored_stop, record_certain), not_examples (kept records). stored_offset and stored_stop are bytes of the file as it
is stored that do not inflate, else null.
"""

COLUMNS = ("shard", "record", "offset", "stop", "cause", "stored_offset", "stored_stop", "record_certain")


def run(
    paths: Paths,
    output: Output,
    compression: CompressionOption = None,
    force: Force = False,
    format: FormatOption = "text",
) -> int:
    """Copy, and print the losses."""
    from tfrkit.ops.repair import repair

    made = repair(paths, output, compression=compression, force=force, progress=watch_on_terminal())
    result = made.to_json()
    code = set_verdict(ExitCode.FOUND if result["lost"] else ExitCode.DONE)
    print_document(format, result, result["lost"], COLUMNS, print_text)
    return code


def print_text(result: dict[str, Any]) -> None:
    """Print one line per loss, then the kept records."""
    for lost in result["lost"]:
        where = name_place(lost)
        if lost["stored_offset"] is not None:
            where += f", stored bytes {lost['stored_offset']} to {lost['stored_stop']}"
        print_line(f"lost: {where}: {lost['cause']}")
    explain_uncertain(result["lost"])
    for file in result["files"]:
        print_line(f"{file['output']}: {count_noun(file['records'], 'record')}")
    if number := result["not_examples"]:
        kept = "1 record that is" if number == 1 else f"{number:,} records that are"
        say(f"note: kept {kept} neither Example nor SequenceExample, as most others are: tfr verify lists such records")
    if result["lost"]:
        print_line(f"lost {describe_loss(result)}")


def describe_loss(result: dict[str, Any]) -> str:
    """Describe the loss: records, inflated bytes and stored bytes are separate numbers that do not add up."""
    number = result["lost_records"]
    records = "an unknown number of records" if number is None else count_noun(number, "record")
    lost = f"{records}, {count_noun(result['lost_bytes'], 'byte')} in {count_noun(len(result['lost']), 'place')}"
    if result["lost_stored_bytes"]:
        lost += f", and {count_noun(result['lost_stored_bytes'], 'stored byte')} that do not inflate"
    return lost
