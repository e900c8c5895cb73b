"""`tfr schema`: print the schema in the format of another program."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import typer

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.hints import Flag, say_note
from tfrkit.cli.options import FormatOption, InferOption, Paths
from tfrkit.cli.output import escape_controls, print_result, say

HELP = """Print the schema in the format of another program.

\b
  tfr schema train.tfrecord
  tfr schema train-* --as tf > spec.py

\b
--as json     tfrkit's own form
     tfds     features.json of TensorFlow Datasets
     pbtxt    schema.pbtxt of TensorFlow Metadata
     arrow    the Arrow schema
     tf       a ready tf.io.parse_example spec
     dali     a ready DALI reader
     vahidk   a description for the tfrecord package

The schema is that of tfrkit.json or features.json next to the records, else inferred from them: above 32 MiB from
some thousands of records, with a note; with --infer all from all of them. An index is not used.

JSON: as, schema (an object for json and tfds, otherwise text).
"""

COLUMNS = ("as", "schema")

Style = Literal["json", "tfds", "pbtxt", "arrow", "tf", "dali", "vahidk"]
As = Annotated[Style, typer.Option("--as", metavar="json|tfds|pbtxt|arrow|tf|dali|vahidk", help="The format.")]


def run(paths: Paths, style: As = "json", infer: InferOption = "sample", format: FormatOption = "text") -> int:
    """Print the schema as text, ready to be saved."""
    from tfrkit.ops.schema import make_schema_text

    text, note = make_schema_text(paths, style, infer=infer)
    if note:
        say(f"note: {say_note(note, {'infer': Flag('--infer', 'sample|all')})}")
    print_result(
        format,
        document=lambda: to_document(style, text),
        rows=lambda: [to_document(style, text)],
        columns=COLUMNS,
        text=lambda: print_text(text),
    )
    return ExitCode.DONE


def to_document(style: Style, text: str) -> dict[str, Any]:
    """Return the schema with its style; a JSON schema is nested, not quoted."""
    return {"as": style, "schema": json.loads(text) if style in ("json", "tfds") else text}


def print_text(text: str) -> None:
    """Print the schema with control characters escaped: its feature names come from the file."""
    print("\n".join(map(escape_controls, text.rstrip("\n").split("\n"))))
