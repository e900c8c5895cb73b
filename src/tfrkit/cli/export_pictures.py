"""Kinds of `tfr export` that write image files."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Annotated, Literal

import typer

from tfrkit.cli.export_report import (
    ExportCommand,
    Exporting,
    ImageFeature,
    LabelFeature,
    NameFeature,
    OnBad,
    OutputFolder,
    run_export,
)
from tfrkit.cli.options import Paths, Shape

IMAGES_HELP = """Write images as files, with the bytes they were stored with.

\b
  tfr export images data/ -o pictures/
  tfr export images x.tfrecord -o pictures/ --image photo --name id --layout flat
  tfr export images raw.tfrecord -o pictures/ --shape 224x224x3
  tfr export images data/ -o some/ -n 20 --where 'label = 3 and "image/width" > 500'

Files are called as the records say, or by number. Classes that have names are folders, and so are splits where there
are several. Raw pixels become PNG; masks go to masks/ as PNG with a palette, images to images/ then; frames of a clip
have a folder of their own. Labels that are no classes are in labels.csv. Names that lead out of the folder, fall
together or differ in case only are changed, and the changes printed. What `tfr build class-folders` made comes out as
the folder it was. --where is a condition in the SQL of `tfr sql`, and needs what that needs.

JSON: kind, output, records, files, nbytes, skipped, renamed (stored, written), num_renamed, notes, available (records
there are, where some were chosen), images, masks, tables (names of the other files).
"""
VOC_HELP = """Write images with boxes or masks in the form of Pascal VOC.

\b
  tfr export voc data/ -o VOC/

Makes JPEGImages, Annotations (XML), SegmentationClass (PNG with VOC's palette), ImageSets with one list a split, and
classes.txt with the ids of classes. Needs the features that `tfr build voc-det`, `coco`, `yolo` or `voc-seg` write:
image/object/bbox/xmin and its sisters, or image/segmentation/class/encoded.
"""
YOLO_HELP = """Write images with boxes in the form of YOLO.

\b
  tfr export yolo data/ -o yolo/

Makes images/, labels/ with one text file an image, and data.yaml with the names of classes, numbered from 0 in the
order of their ids; each split has a folder.
"""
COCO_HELP = """Write images with boxes in the form of COCO.

\b
  tfr export coco data/ -o coco/

Makes annotations/instances_SPLIT.json and SPLIT/ with its images; without splits annotations.json and images/. Masks
of objects become run lengths, captions go to captions_SPLIT.json. Categories keep the ids of the labels.
"""

SomeImages = Annotated[
    int | None,
    typer.Option("-n", "--count", min=1, metavar="N", help="Only images of N records, spread evenly; all by default."),
]
Where = Annotated[
    str | None,
    typer.Option("--where", metavar="SQL", help='Only images of records that this is true for: "label = 3".'),
]
LayoutOption = Annotated[
    Literal["auto", "flat"],
    typer.Option("--layout", metavar="auto|flat", help="Folders of classes and splits, or none; labels.csv then."),
]


def run_images(
    paths: Paths,
    output: OutputFolder,
    image: ImageFeature = None,
    label: LabelFeature = None,
    name: NameFeature = None,
    layout: LayoutOption = "auto",
    shape: Shape = None,
    count: SomeImages = None,
    where: Where = None,
    on_bad: OnBad = "fail",
    *,
    how: Exporting,
) -> int:
    """Write images, and print what was done."""
    from tfrkit.ops.export.images import export_images as export

    given = {"image": image, "label": label, "name": name, "layout": layout, "shape": shape}
    return run_export(export, paths, output, how, count=count, where=where, on_bad=on_bad, **given)


def run_annotations(kind: str) -> Callable[..., int]:
    """The command of a kind that has images and what is in them: voc, yolo or coco."""

    def run(
        paths: Paths,
        output: OutputFolder,
        image: ImageFeature = None,
        name: NameFeature = None,
        on_bad: OnBad = "fail",
        *,
        how: Exporting,
    ) -> int:
        export = getattr(importlib.import_module(f"tfrkit.ops.export.{kind}"), f"export_{kind}")
        return run_export(export, paths, output, how, image=image, name=name, on_bad=on_bad)

    return run


PICTURE_KINDS = {
    "images": ExportCommand(IMAGES_HELP, run_images),
    "voc": ExportCommand(VOC_HELP, run_annotations("voc")),
    "yolo": ExportCommand(YOLO_HELP, run_annotations("yolo")),
    "coco": ExportCommand(COCO_HELP, run_annotations("coco")),
}
