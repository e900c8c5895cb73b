"""`tfr sheet`: draw a contact sheet of a dataset."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tfrkit.cli.exit_codes import ExitCode
from tfrkit.cli.options import BoxOrderOption, BoxUnitsOption, Force, FormatOption, Paths, Shape
from tfrkit.cli.output import count_noun, print_document, print_line, say, set_verdict

HELP = """Draw a contact sheet: images with labels, boxes and masks.

\b
  tfr sheet data/ -o sheet.png
  tfr sheet 'train-*' -o sheet.png -n 100 --columns 10 --seed 1
  tfr sheet raw.tfrecord -o sheet.png --shape 224x224

Shows encoded images, and raw pixels if the schema, features such as height, width and channels, or --shape have
their size; of a SequenceExample the first frame. Below is the label (class names if classes.txt or the schema
has them) and the number of the record, from 0. Boxes are those of image/object/bbox, and below are their classes, or
"no objects"; masks are shown in the colours of Pascal VOC. --image, --label, --mask, --boxes, --names, --box-order,
--box-units and --shape replace what was found; they are the switches of `tfr view`. An image that fails is a crossed
tile with the cause; the exit code is then 1. Reads the shown records and, without an index, the headers of all.

JSON: output, width, height, records, seed, tiles (number, label, cause), findings (shard, record, offset, cause),
notes.
"""

COLUMNS = ("shard", "record", "offset", "cause")

Output = Annotated[str, typer.Option("-o", "--output", metavar="PATH", help="The PNG to write.", show_default=False)]
Count = Annotated[int, typer.Option("-n", "--count", min=1, metavar="N", help="Number of images.")]
Columns = Annotated[int, typer.Option("--columns", min=1, metavar="N", help="Images per row.")]
Size = Annotated[int, typer.Option("--size", min=32, max=1024, metavar="N", help="Tile size in pixels.")]
Seed = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", help="Choose at random with this seed; default: evenly spaced."),
]
ImageFeature = Annotated[
    str | None, typer.Option("--image", metavar="FEATURE", help="The feature to show; found by default.")
]
LabelFeature = Annotated[
    str | None, typer.Option("--label", metavar="FEATURE", help="The feature shown below; found by default.")
]
MaskFeature = Annotated[
    str | None, typer.Option("--mask", metavar="FEATURE", help="The mask, - for none; found by default.")
]
BoxFeature = Annotated[
    str | None,
    typer.Option("--boxes", metavar="FEATURE", help="Boxes, or the start of xmin, …, - for none; found by default."),
]
NameFeature = Annotated[
    str | None, typer.Option("--names", metavar="FEATURE", help="Classes of boxes, - for none; found by default.")
]


def run(
    paths: Paths,
    output: Output,
    count: Count = 36,
    columns: Columns = 6,
    size: Size = 128,
    seed: Seed = None,
    image: ImageFeature = None,
    label: LabelFeature = None,
    mask: MaskFeature = None,
    boxes: BoxFeature = None,
    names: NameFeature = None,
    box_order: BoxOrderOption = None,
    box_units: BoxUnitsOption = None,
    shape: Shape = None,
    force: Force = False,
    format: FormatOption = "text",
) -> int:
    """Draw the sheet, and print the failures."""
    from tfrkit.ops.sheet import sheet

    made = sheet(
        paths,
        output,
        count=count,
        columns=columns,
        size=size,
        seed=seed,
        image=image,
        label=label,
        mask=mask,
        boxes=boxes,
        names=names,
        box_order=box_order,
        box_units=box_units,
        shape=shape,
        force=force,
    )
    result = made.to_json()
    code = set_verdict(ExitCode.DONE if made.ok else ExitCode.FOUND)
    print_document(format, result, result["findings"], COLUMNS, print_text)
    return code


def print_text(result: dict[str, Any]) -> None:
    """Print one line per missing image, then the path of the sheet."""
    for finding in result["findings"]:
        where = f"{finding['shard']}, record {finding['record']}, byte {finding['offset']}"
        print_line(f"{where}: {finding['cause']}")
    for note in result["notes"]:
        say(note)
    shown = sum(tile["cause"] is None for tile in result["tiles"])
    choice = "" if result["seed"] is None else f", seed {result['seed']}"
    records = count_noun(result["records"], "record")
    print_line(f"{result['output']}: {shown:,} of {records}{choice}, {result['width']}x{result['height']} pixels")
