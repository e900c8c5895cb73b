"""Sources of `tfr build` that read images with annotations: masks, boxes, captions."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from tfrkit.cli import build_options as opt

SetsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME", help="A set to take, as a split of its name; may be repeated.", show_default=False
    ),
]
BoxesOption = Annotated[
    Literal["fail", "clip", "drop"],
    typer.Option("--boxes", metavar="fail|clip|drop", help="What becomes of boxes that do not lie in their image."),
]
FirstLabelOption = Annotated[
    int | None,
    typer.Option("--label-offset", min=0, metavar="N", help="The label of the first class.", show_default=False),
]
ClassNamesOption = Annotated[
    str | None,
    typer.Option("--classes", metavar="FILE", help="Class names in the order of their ids, or a label map .pbtxt."),
]

VOC_SEG = """Pascal VOC segmentation: images with masks of class numbers.

\b
  tfr build voc-seg VOCdevkit/VOC2007 -o voc/ --set train --set val
  tfr build voc-seg VOCdevkit/VOC2007 -o voc/ --encode raw \\
      --keys image/encoded=image_raw,image/height=height

Masks are read as palette indices and stored as a gray PNG of the same numbers, 0 to 20 and 255 for VOC; any other
number stops the build, with a histogram. Sets are lists of ImageSets/Segmentation: without --set train, val and test
or, where none of these is there, all lists, if no image is in two. Features: image/encoded, image/format, image/height,
image/width, image/channels, image/filename, image/segmentation/class/encoded, image/segmentation/class/format.

With --exif apply, masks are taken as made on the upright image; if made on the stored pixels: --exif keep.
"""

IgnoreOption = Annotated[
    int, typer.Option("--ignore", min=-1, max=255, metavar="N", help="The number that counts for nothing; -1 for none.")
]
MapOption = Annotated[
    list[str] | None,
    typer.Option("--map", metavar="N=M,...", help="Numbers of masks to change: 200=1.", show_default=False),
]
ColormapOption = Annotated[
    str | None, typer.Option("--colormap", metavar="voc|FILE", help="Masks are colours; which is which class.")
]
MaskOption = Annotated[
    Literal["gray", "keep"],
    typer.Option("--mask", metavar="gray|keep", help="Store masks as gray PNG, or the files as they are."),
]


def make_voc_seg(
    path: opt.RootArgument,
    sets: SetsOption = None,
    classes: ClassNamesOption = None,
    ignore: IgnoreOption = 255,
    map: MapOption = None,
    colormap: ColormapOption = None,
    mask: MaskOption = "gray",
    resize: opt.ResizeOption = None,
    gray: opt.GrayOption = False,
    encode: opt.EncodeOption = "auto",
    quality: opt.QualityOption = 95,
    check: opt.CheckOption = "decode",
    exif: opt.ExifOption = "keep",
) -> Any:
    """Segmentation in the form of Pascal VOC."""
    from tfrkit import sources

    try:
        changes = {int(old): int(new) for old, new in opt.parse_pairs(map, "--map").items()}
    except ValueError:
        raise ValueError(f"--map expected N=M,..., got {map!r:.64}") from None
    return sources.voc_seg(
        path,
        sets=sets or (),
        classes=classes,
        ignore=None if ignore < 0 else ignore,
        map=changes,
        colormap=colormap,
        mask=mask,
        images=opt.make_images(resize, gray, encode, quality, check, exif),
    )


VOC_DET = """Images with annotations in the XML of Pascal VOC.

\b
  tfr build voc-det VOCdevkit/VOC2007 -o det/ --set train --set val
  tfr build voc-det data/ -o det/ --split test=.1

Images and .xml files may lie in VOC's folders or in any. Sets are lists of ImageSets/Main, as for voc-seg. Boxes are
held against the true size of their image. Labels follow the sorted names from 1, or --classes; VOC's own annotations
(folder VOC2007, or database The VOC2007 Database) have VOC's 20 numbers, which --classes voc gives to others.
classes.txt and label_map.pbtxt have the labels. Features are those of the TensorFlow Object Detection API:
image/encoded, image/format, image/height, image/width, image/filename, image/source_id, image/key/sha256,
image/object/bbox/xmin ..., image/object/class/text, image/object/class/label (from 1), image/object/difficult,
truncated, view.

With --exif apply, boxes are taken as made on the upright image; if made on the stored pixels: --exif keep.
"""


def make_voc_det(
    path: opt.RootArgument,
    sets: SetsOption = None,
    classes: ClassNamesOption = None,
    label_offset: FirstLabelOption = None,
    boxes: BoxesOption = "fail",
    resize: opt.ResizeOption = None,
    gray: opt.GrayOption = False,
    encode: opt.EncodeOption = "auto",
    quality: opt.QualityOption = 95,
    check: opt.CheckOption = "decode",
    exif: opt.ExifOption = "keep",
) -> Any:
    """Boxes in the form of Pascal VOC."""
    from tfrkit import sources

    images = opt.make_images(resize, gray, encode, quality, check, exif)
    return sources.voc_det(
        path, sets=sets or (), classes=classes, label_offset=label_offset, boxes=boxes, images=images
    )


COCO = """Images with annotations in the JSON of COCO.

\b
  tfr build coco coco/ -o coco_tfr/ --set train2017 --set val2017 --masks --captions auto
  tfr build coco data/annotations.json -o data_tfr/ --image-root data/images

Labels are the category ids of the file; --label-offset numbers them anew. Features are those of the TensorFlow
Object Detection API, as for voc-det, and image/object/is_crowd, area; with --masks image/object/mask (PNG of 0 and
1 each); with --captions image/caption. classes.txt and label_map.pbtxt have the labels.

With --exif apply, boxes and outlines are taken as made on the upright image; if made on the stored pixels: --exif keep.
"""

MasksOption = Annotated[bool, typer.Option("--masks", help="Also store the outline of each object, as a PNG.")]
CaptionsOption = Annotated[
    str | None,
    typer.Option("--captions", metavar="auto|FILE", help="Also store captions; auto takes captions_<set>.json."),
]


def make_coco(
    path: Annotated[str, typer.Argument(metavar="PATH", help="The JSON file, or the folder.", show_default=False)],
    sets: SetsOption = None,
    image_root: opt.ImageRootOption = None,
    masks: MasksOption = False,
    captions: CaptionsOption = None,
    label_offset: FirstLabelOption = None,
    boxes: BoxesOption = "fail",
    resize: opt.ResizeOption = None,
    gray: opt.GrayOption = False,
    encode: opt.EncodeOption = "auto",
    quality: opt.QualityOption = 95,
    check: opt.CheckOption = "decode",
    exif: opt.ExifOption = "keep",
) -> Any:
    """Boxes, outlines and captions in the form of COCO."""
    from tfrkit import sources

    return sources.coco(
        path,
        sets=sets or (),
        image_root=image_root,
        masks=masks,
        captions=captions,
        label_offset=label_offset,
        boxes=boxes,
        images=opt.make_images(resize, gray, encode, quality, check, exif),
    )


YOLO = """Images with label files of YOLO.

\b
  tfr build yolo dataset/ -o det/
  tfr build yolo dataset/data.yaml -o det/ --set train --boxes clip

Class names and splits come from data.yaml, else from classes.txt and folders. Splits of other names than train, val and
test are taken where there are none of these, or by --set. Labels are YOLO's numbers plus 1, or plus --label-offset.
Features are those of the TensorFlow Object Detection API, as for voc-det. classes.txt and label_map.pbtxt have the
labels.

With --exif apply, boxes are taken as made on the upright image; if made on the stored pixels: --exif keep.
"""

MissingLabelsOption = Annotated[
    Literal["empty", "fail"],
    typer.Option("--missing-labels", metavar="empty|fail", help="An image without a label file: no objects, or bad."),
]


def make_yolo(
    path: Annotated[str, typer.Argument(metavar="PATH", help="The folder, or its data.yaml.", show_default=False)],
    sets: SetsOption = None,
    classes: ClassNamesOption = None,
    label_offset: opt.LabelOffsetOption = 1,
    missing_labels: MissingLabelsOption = "empty",
    boxes: BoxesOption = "fail",
    resize: opt.ResizeOption = None,
    gray: opt.GrayOption = False,
    encode: opt.EncodeOption = "auto",
    quality: opt.QualityOption = 95,
    check: opt.CheckOption = "decode",
    exif: opt.ExifOption = "keep",
) -> Any:
    """Boxes in the form of YOLO."""
    from tfrkit import sources

    return sources.yolo(
        path,
        sets=sets or (),
        classes=classes,
        label_offset=label_offset,
        missing_labels=missing_labels,
        boxes=boxes,
        images=opt.make_images(resize, gray, encode, quality, check, exif),
    )


CSV_BOXES = """Images with boxes in a CSV file, one line for each box.

\b
  tfr build csv-boxes train_labels.csv --image-root images/ -o train.record
  tfr build csv-boxes boxes.csv --image-root images/ -o det/ --column filename=image,class=label \\
      --classes label_map.pbtxt --boxes clip --split val=.2

The file is what xml_to_csv.py of many tutorials makes: a header with filename, class, xmin, ymin, xmax, ymax, perhaps
width and height, which are held against the image, and difficult, truncated, pose. A row with a file name alone is an
image without objects. Labels follow the sorted names from 1, or --classes; classes.txt and label_map.pbtxt have them.
Features are those of voc-det.

With --exif apply, boxes are taken as made on the upright image; if made on the stored pixels: --exif keep.
"""

BoxColumnsOption = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="NAME=COLUMN,...", help="Columns under other names.", show_default=False),
]
UnitsOption = Annotated[
    Literal["pixels", "parts"],
    typer.Option("--units", metavar="pixels|parts", help="Corners in pixels, or as parts of width and height."),
]
UnlistedOption = Annotated[
    Literal["skip", "keep"],
    typer.Option("--unlisted", metavar="skip|keep", help="Images that no row names: left out, or without objects."),
]


def make_csv_boxes(
    path: opt.FileArgument,
    image_root: opt.ImageRootOption = None,
    columns: BoxColumnsOption = None,
    classes: ClassNamesOption = None,
    label_offset: FirstLabelOption = None,
    units: UnitsOption = "pixels",
    unlisted: UnlistedOption = "skip",
    boxes: BoxesOption = "fail",
    separator: opt.SeparatorOption = None,
    encoding: opt.EncodingOption = "utf-8",
    resize: opt.ResizeOption = None,
    gray: opt.GrayOption = False,
    encode: opt.EncodeOption = "auto",
    quality: opt.QualityOption = 95,
    check: opt.CheckOption = "decode",
    exif: opt.ExifOption = "keep",
) -> Any:
    """Boxes of a CSV file."""
    from tfrkit import sources

    return sources.csv_boxes(
        path,
        image_root=image_root,
        columns=opt.parse_pairs(columns, "--column"),
        classes=classes,
        label_offset=label_offset,
        units=units,
        unlisted=unlisted,
        boxes=boxes,
        separator=opt.SEPARATORS.get(separator or "", separator),
        encoding=encoding,
        images=opt.make_images(resize, gray, encode, quality, check, exif),
    )


ANNOTATED: dict[str, opt.SourceCommand] = {
    "voc-seg": opt.SourceCommand(VOC_SEG, make_voc_seg),
    "voc-det": opt.SourceCommand(VOC_DET, make_voc_det),
    "coco": opt.SourceCommand(COCO, make_coco),
    "yolo": opt.SourceCommand(YOLO, make_yolo),
    "csv-boxes": opt.SourceCommand(CSV_BOXES, make_csv_boxes),
}
