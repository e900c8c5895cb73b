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

IMAGES_HELP = """Write images as files, with their stored bytes.

\b
  tfr export images data/ -o pictures/
  tfr export images x.tfrecord -o pictures/ --image photo --name id --layout flat
  tfr export images raw.tfrecord -o pictures/ --shape 224x224x3
  tfr export images data/ -o some/ -n 20 --where 'label = 3 and "image/width" > 500'

Files are named by the records, or by number. Classes with names become folders, and so do splits if there
are several. Raw pixels become PNG; masks go to masks/ as PNG with a palette, images to images/ then; frames of a clip
have their own folder. Labels that are not classes are in labels.csv. Names that point outside the folder, collide
or differ only in case are changed, and the changes are printed. A dataset of `tfr build class-folders` is restored to
the same folders. --where is a condition in the SQL of `tfr sql`, with the same requirements.

JSON: kind, output, records, files, nbytes, skipped, renamed (stored, written), num_renamed, notes, available (records
in total, if some were chosen), images, masks, tables (names of the other files).
"""
VOC_HELP = """Write images with boxes or masks in the form of Pascal VOC.

\b
  tfr export voc data/ -o VOC/

Makes JPEGImages, Annotations (XML), SegmentationClass (PNG with VOC's palette), ImageSets with one list per split, and
classes.txt with the ids of classes. Needs the features that `tfr build voc-det`, `coco`, `yolo` or `voc-seg` write:
image/object/bbox/xmin, ymin, xmax, ymax, or image/segmentation/class/encoded.
"""
YOLO_HELP = """Write images with boxes in the form of YOLO.

\b
  tfr export yolo data/ -o yolo/

Makes images/, labels/ with one text file per image, and data.yaml with the names of classes, numbered from 0 in the
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
    typer.Option("--where", metavar="SQL", help='Only images of matching records: "label = 3".'),
]
ClassFeature = Annotated[
    str | None, typer.Option("--names", metavar="FEATURE", help="Classes of boxes, - for none; found by default.")
]
LayoutOption = Annotated[
    Literal["auto", "flat"],
    typer.Option("--layout", metavar="auto|flat", help="Folders of classes and splits, or flat with labels.csv."),
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
    """Make the command of an annotated kind: voc, yolo or coco."""

    def run(
        paths: Paths,
        output: OutputFolder,
        image: ImageFeature = None,
        name: NameFeature = None,
        names: ClassFeature = None,
        on_bad: OnBad = "fail",
        *,
        how: Exporting,
    ) -> int:
        export = getattr(importlib.import_module(f"tfrkit.ops.export.{kind}"), f"export_{kind}")
        return run_export(export, paths, output, how, image=image, name=name, names=names, on_bad=on_bad)

    return run


PICTURE_KINDS = {
    "images": ExportCommand(IMAGES_HELP, run_images),
    "voc": ExportCommand(VOC_HELP, run_annotations("voc")),
    "yolo": ExportCommand(YOLO_HELP, run_annotations("yolo")),
    "coco": ExportCommand(COCO_HELP, run_annotations("coco")),
}
