"""Sources of `tfr build` that read images with annotations: masks, boxes, captions."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from tfrkit.cli import build_options as opt

Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME", help="A set to use, as a split of the same name; may be repeated."),
    opt.or_nothing,
]
Boxes = Annotated[
    Literal["fail", "clip", "drop"],
    typer.Option("--boxes", metavar="fail|clip|drop", help="What to do with boxes outside their image."),
]
FirstLabel = Annotated[
    int | None, typer.Option("--label-offset", min=0, metavar="N", help="The label of the first class.")
]
ClassNames = Annotated[
    str | None,
    typer.Option("--classes", metavar="FILE", help="Class names in the order of their ids, or a label map .pbtxt."),
]
Ignore = Annotated[
    int,
    typer.Option("--ignore", min=-1, max=255, metavar="N", help="The mask value to ignore; -1 for none."),
    lambda number: None if number < 0 else number,
]


def parse_map(texts: list[str] | None) -> dict[int, int]:
    """Parse the mask number mapping "200=1,201=2"."""
    try:
        return {int(old): int(new) for old, new in opt.parse_pairs(texts, "--map").items()}
    except ValueError:
        raise ValueError(f"--map expected N=M,..., got {texts!r:.64}") from None


Map = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="N=M,...", help="Numbers of masks to change: 200=1."),
    parse_map,
]
Colormap = Annotated[
    str | None, typer.Option("--colormap", metavar="voc|FILE", help="Masks are colours: the class of each colour.")
]
Mask = Annotated[
    Literal["gray", "keep"],
    typer.Option("--mask", metavar="gray|keep", help="Store masks as gray PNG, or their files unchanged."),
]


def voc_seg(
    path: opt.Root,
    sets: Sets = None,
    classes: ClassNames = None,
    ignore: Ignore = 255,
    map: Map = None,
    colormap: Colormap = None,
    mask: Mask = "gray",
    *,
    images: opt.Images,
) -> None:
    """Pascal VOC segmentation: images with masks of class numbers.

    \b
      tfr build voc-seg VOCdevkit/VOC2007 -o voc/ --set train --set val
      tfr build voc-seg VOCdevkit/VOC2007 -o voc/ --encode raw \\
          --keys image/encoded=image_raw,image/height=height

    Masks are read as palette indices and stored as a gray PNG of the same numbers, 0 to 20 and 255 for VOC; any other
    number stops the build, with a histogram. Sets are lists of ImageSets/Segmentation: without --set train, val and
    test or, if none of these exists, all lists, unless an image is in two. Features: image/encoded, image/format,
    image/height, image/width, image/channels, image/filename, image/segmentation/class/encoded,
    image/segmentation/class/format.

    With --exif apply, masks are expected to fit the upright image; if they fit the stored pixels: --exif keep.
    """


def voc_det(
    path: opt.Root,
    sets: Sets = None,
    classes: ClassNames = None,
    label_offset: FirstLabel = None,
    boxes: Boxes = "fail",
    *,
    images: opt.Images,
) -> None:
    """Images with annotations in the XML of Pascal VOC.

    \b
      tfr build voc-det VOCdevkit/VOC2007 -o det/ --set train --set val
      tfr build voc-det data/ -o det/ --split test=.1

    Images and .xml files may be in VOC's folders or in any other. Sets are lists of ImageSets/Main, as for voc-seg.
    Boxes are compared with the size of their image. Labels follow the sorted names from 1, or --classes; VOC's own
    annotations (folder VOC2007, or database The VOC2007 Database) get VOC's 20 ids, as others do with --classes
    voc. classes.txt and label_map.pbtxt have the labels. Features are those of the TensorFlow Object Detection API:
    image/encoded, image/format, image/height, image/width, image/filename, image/source_id, image/key/sha256,
    image/object/bbox/xmin ..., image/object/class/text, image/object/class/label (from 1), image/object/difficult,
    truncated, view.

    With --exif apply, boxes are expected to fit the upright image; if they fit the stored pixels: --exif keep.
    """


Masks = Annotated[bool, typer.Option("--masks", help="Also store the outline of each object, as a PNG.")]
Captions = Annotated[
    str | None,
    typer.Option("--captions", metavar="auto|FILE", help="Also store captions; auto takes captions_<set>.json."),
]


def coco(
    path: Annotated[str, typer.Argument(metavar="PATH", help="The JSON file, or the folder.", show_default=False)],
    sets: Sets = None,
    image_root: opt.ImageRoot = None,
    masks: Masks = False,
    captions: Captions = None,
    label_offset: FirstLabel = None,
    boxes: Boxes = "fail",
    *,
    images: opt.Images,
) -> None:
    """Images with annotations in the JSON of COCO.

    \b
      tfr build coco coco/ -o coco_tfr/ --set train2017 --set val2017 --masks --captions auto
      tfr build coco data/annotations.json -o data_tfr/ --image-root data/images

    Labels are the category ids of the file; --label-offset renumbers them. Features are those of the TensorFlow
    Object Detection API, as for voc-det, and image/object/is_crowd, area; with --masks image/object/mask (PNG of 0 and
    1 each); with --captions image/caption. classes.txt and label_map.pbtxt have the labels.

    With --exif apply, boxes and outlines are expected to fit the upright image; if they fit the stored pixels: --exif
    keep.
    """


MissingLabels = Annotated[
    Literal["empty", "fail"],
    typer.Option("--missing-labels", metavar="empty|fail", help="An image without a label file: no objects, or bad."),
]


def yolo(
    path: Annotated[str, typer.Argument(metavar="PATH", help="The folder, or its data.yaml.", show_default=False)],
    sets: Sets = None,
    classes: ClassNames = None,
    label_offset: opt.LabelOffset = 1,
    missing_labels: MissingLabels = "empty",
    boxes: Boxes = "fail",
    *,
    images: opt.Images,
) -> None:
    """Images with label files of YOLO.

    \b
      tfr build yolo dataset/ -o det/
      tfr build yolo dataset/data.yaml -o det/ --set train --boxes clip

    Class names and splits come from data.yaml, else from classes.txt and folders. Splits not named train,
    val or test are used if there are none of these, or with --set. Labels are YOLO's numbers plus 1, or plus
    --label-offset. Features are those of the TensorFlow Object Detection API, as for voc-det. classes.txt and
    label_map.pbtxt have the labels.

    With --exif apply, boxes are expected to fit the upright image; if they fit the stored pixels: --exif keep.
    """


BoxColumns = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="NAME=COLUMN,...", help="Names of columns that differ from the usual ones."),
    lambda texts: opt.parse_pairs(texts, "--column"),
]
Units = Annotated[
    Literal["pixels", "parts"],
    typer.Option("--units", metavar="pixels|parts", help="Corners in pixels, or as parts of width and height."),
]
Unlisted = Annotated[
    Literal["skip", "keep"],
    typer.Option("--unlisted", metavar="skip|keep", help="Images that no row names: left out, or without objects."),
]


def csv_boxes(
    path: opt.File,
    image_root: opt.ImageRoot = None,
    columns: BoxColumns = None,
    classes: ClassNames = None,
    label_offset: FirstLabel = None,
    units: Units = "pixels",
    unlisted: Unlisted = "skip",
    boxes: Boxes = "fail",
    separator: opt.Separator = None,
    encoding: opt.Encoding = "utf-8",
    *,
    images: opt.Images,
) -> None:
    """Images with boxes in a CSV file, one line for each box.

    \b
      tfr build csv-boxes train_labels.csv --image-root images/ -o train.record
      tfr build csv-boxes boxes.csv --image-root images/ -o det/ --column filename=image,class=label \\
          --classes label_map.pbtxt --boxes clip --split val=.2

    The file has the form that xml_to_csv.py of many tutorials writes: a header with filename, class, xmin, ymin, xmax,
    ymax, optionally width and height, which are compared with the image, and difficult, truncated, pose. A row with
    only a file name is an image without objects. Labels follow the sorted names from 1, or --classes; classes.txt and
    label_map.pbtxt have them. Features are those of voc-det.

    With --exif apply, boxes are expected to fit the upright image; if they fit the stored pixels: --exif keep.
    """
