"""Sources of `tfr build` that read datasets of a known form: annotated images, tables, clips, archives."""

from __future__ import annotations

import os
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
ImageRootOption = Annotated[
    str | None, typer.Option("--image-root", metavar="FOLDER", help="Where paths of images start.")
]
ImageColumnOption = Annotated[
    str | None,
    typer.Option("--image-column", metavar="NAME", help="The column of image files; their bytes are stored."),
]
TypeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--type", metavar="COLUMN=TYPE,...", help="int64, float or text, instead of finding out.", show_default=False
    ),
]
MissingOption = Annotated[
    list[str] | None,
    typer.Option("--missing", metavar="TEXT", help="Cells that hold nothing, beside empty ones; may be repeated."),
]

VOC_SEG = """Pascal VOC segmentation: images with masks of class numbers.

\b
  tfr build voc-seg VOCdevkit/VOC2007 -o voc/ --set train --set val
  tfr build voc-seg VOCdevkit/VOC2007 -o voc/ --encode raw \\
      --keys image/encoded=image_raw,image/height=height

Masks are read as palette indices and stored as a gray PNG of the same numbers, 0 to 20 and 255 for VOC; any other
number stops the build, with a histogram. Sets are lists of ImageSets/Segmentation. Features: image/encoded,
image/format, image/height, image/width, image/channels, image/filename, image/segmentation/class/encoded,
image/segmentation/class/format.
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

Images and .xml files may lie in VOC's folders or in any. Boxes are held against the true size of their image. Labels
follow the sorted names from 1, or --classes; VOC's own annotations (folder VOC2007, or database The VOC2007 Database)
have VOC's 20 numbers, which --classes voc gives to others. classes.txt and label_map.pbtxt have the labels. Features
are those of the TensorFlow Object Detection API: image/encoded, image/format, image/height, image/width,
image/filename, image/source_id, image/key/sha256, image/object/bbox/xmin ..., image/object/class/text,
image/object/class/label (from 1), image/object/difficult, truncated, view.
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
"""

MasksOption = Annotated[bool, typer.Option("--masks", help="Also store the outline of each object, as a PNG.")]
CaptionsOption = Annotated[
    str | None,
    typer.Option("--captions", metavar="auto|FILE", help="Also store captions; auto takes captions_<set>.json."),
]


def make_coco(
    path: Annotated[str, typer.Argument(metavar="PATH", help="The JSON file, or the folder.", show_default=False)],
    sets: SetsOption = None,
    image_root: ImageRootOption = None,
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


TABLE = """Rows of a CSV, JSON lines, Parquet or Arrow file, one feature a column.

\b
  tfr build table train.csv -o train.tfrecord --floats float32
  tfr build table data.csv -o out/ --image-column path --label-column label --split-column split

Types are found over whole columns; a cell that is missing stays missing. 007 and +49 are text. A column of numbers
with some text in it stops the build, and so do floats that float32 would round, until --type or --floats says what
to do. --label-column turns text into class ids and keeps it as <name>/text; --image-column stores the bytes of files
as image/encoded, with image/format, image/height, image/width and image/channels. In JSON lines an inner object is
columns of its own, outer/inner; {"base64": "..."}, {"float": "nan"} and {"tensor": {"dtype", "shape", "values"}} are
bytes, a number and an array, as tfr export jsonl writes them. Parquet and Arrow need the extra tfrkit[arrow], which
also reads CSV many times faster.
"""

TableFormatOption = Annotated[
    Literal["auto", "csv", "jsonl", "parquet", "arrow"],
    typer.Option("--table-format", metavar="auto|csv|jsonl|parquet|arrow", help="What the file is."),
]
SeparatorOption = Annotated[
    str | None, typer.Option("--separator", metavar="CHAR", help="Between cells of CSV; found by default.")
]
EncodingOption = Annotated[str, typer.Option("--encoding", metavar="NAME", help="Of CSV and JSON lines.")]
ColumnsOption = Annotated[
    str | None, typer.Option("--columns", metavar="A,B,...", help="Names of columns, where CSV has no header.")
]
LabelColumnOption = Annotated[
    str | None, typer.Option("--label-column", metavar="NAME", help="The column of classes; text becomes ids.")
]
SplitColumnOption = Annotated[
    str | None, typer.Option("--split-column", metavar="NAME", help="The column that says in which split a row goes.")
]
GroupColumnOption = Annotated[
    str | None, typer.Option("--group-column", metavar="NAME", help="Rows with one value there stay in one split.")
]


def make_table(
    path: opt.FileArgument,
    table_format: TableFormatOption = "auto",
    separator: SeparatorOption = None,
    encoding: EncodingOption = "utf-8",
    columns: ColumnsOption = None,
    missing: MissingOption = None,
    types: TypeOption = None,
    floats: opt.FloatsOption = "ask",
    label_column: LabelColumnOption = None,
    classes: opt.ClassesOption = None,
    label_offset: opt.LabelOffsetOption = 0,
    split_column: SplitColumnOption = None,
    group_column: GroupColumnOption = None,
    image_column: ImageColumnOption = None,
    image_root: ImageRootOption = None,
    resize: opt.ResizeOption = None,
    gray: opt.GrayOption = False,
    encode: opt.EncodeOption = "auto",
    quality: opt.QualityOption = 95,
    check: opt.CheckOption = "decode",
    exif: opt.ExifOption = "keep",
) -> Any:
    """Rows of a table."""
    from tfrkit import sources

    return sources.table(
        path,
        format=table_format,
        separator={"tab": "\t", "\\t": "\t"}.get(separator or "", separator),
        encoding=encoding,
        columns=None if columns is None else [name.strip() for name in columns.split(",")],
        missing=missing or (),
        types=opt.parse_pairs(types, "--type"),
        floats=floats,
        label_column=label_column,
        classes=classes,
        label_offset=label_offset,
        split_column=split_column,
        group_column=group_column,
        image_column=image_column,
        image_root=image_root,
        images=opt.make_images(resize, gray, encode, quality, check, exif),
    )


FRAMES = """Folders of frames, or a table of frames: one SequenceExample a clip.

\b
  tfr build frames clips/ -o clips_tfr/ --frame-rate 25
  tfr build frames frames.csv -o clips_tfr/ --clip-column video --order-column t \\
      --image-column path --context label

Each folder with images is a clip; frames follow the numbers in their names. <class>/<clip>/frame gives clips a label.
Context: clip/media_id, clip/length, clip/label/index, clip/label/string, image/format, image/height, image/width,
image/channels; lists: image/encoded, image/filename, image/timestamp. Of a table, rows with one value of
--clip-column are a clip; --context columns hold one value for all of it, all others become lists.
"""

FrameRateOption = Annotated[
    float | None, typer.Option("--frame-rate", metavar="N", help="Frames a second, for timestamps.")
]
ClipColumnOption = Annotated[
    str | None, typer.Option("--clip-column", metavar="NAME", help="Of a table: which clip a row belongs to.")
]
OrderColumnOption = Annotated[
    str | None, typer.Option("--order-column", metavar="NAME", help="Of a table: the order of a clip's rows.")
]
ContextOption = Annotated[
    list[str] | None,
    typer.Option("--context", metavar="NAME", help="Of a table: a column of one value a clip; may be repeated."),
]


def make_frames(
    path: Annotated[str, typer.Argument(metavar="PATH", help="The folder, or the table.", show_default=False)],
    frame_rate: FrameRateOption = None,
    classes: opt.ClassesOption = None,
    label_offset: opt.LabelOffsetOption = 0,
    clip_column: ClipColumnOption = None,
    order_column: OrderColumnOption = None,
    context: ContextOption = None,
    image_column: ImageColumnOption = None,
    image_root: ImageRootOption = None,
    missing: MissingOption = None,
    types: TypeOption = None,
    floats: opt.FloatsOption = "ask",
    resize: opt.ResizeOption = None,
    gray: opt.GrayOption = False,
    encode: opt.EncodeOption = "auto",
    quality: opt.QualityOption = 95,
    check: opt.CheckOption = "decode",
    exif: opt.ExifOption = "keep",
) -> Any:
    """Clips."""
    from tfrkit import sources

    images = opt.make_images(resize, gray, encode, quality, check, exif)
    if clip_column is None:
        if os.path.isfile(path):
            raise ValueError("a table of frames expected --clip-column, got none")
        return sources.frames(path, frame_rate=frame_rate, classes=classes, label_offset=label_offset, images=images)
    return sources.frames_table(
        path,
        group=clip_column,
        order=order_column,
        context=context or (),
        image_column=image_column,
        image_root=image_root,
        types=opt.parse_pairs(types, "--type"),
        missing=missing or (),
        floats=floats,
        images=images,
    )


TFRECORD = """Records of TFRecord files, byte for byte, into other shards.

\b
  tfr build tfrecord 'old/train-*' -o new/ --shards 8
  tfr build tfrecord old/ -o new/ --split test=.1 --compression gzip

Any kind of record and any compression. Both checksums of every record are compared. The order is kept unless records
are split.
"""

SplitNamesOption = Annotated[
    bool, typer.Option("--split-names", help="Keep records in the split their file is named for: train-00000-of-00005.")
]


def make_tfrecord(
    path: Annotated[list[str], typer.Argument(metavar="PATH...", help="Files, globs or folders.", show_default=False)],
    split_names: SplitNamesOption = False,
) -> Any:
    """Records as they are."""
    from tfrkit import sources

    return sources.tfrecord(path[0] if len(path) == 1 else path, split_names=split_names)


WEBDATASET = """Samples of tar files, in the form of WebDataset.

\b
  tfr build webdataset 'shards/x-{000..099}.tar' -o out/
  tfr build webdataset shards/ -o out/ --resize 224x224

Members that share a name up to its first dot are one sample; the rest of the name says what each is: .jpg and other
images become image/encoded with image/format, image/height, image/width, image/channels; .cls image/class/label; .txt
text; .json one feature a key, json/<key>; .npy an array; anything else its bytes, under its suffix. Links and names
that lead out of the archive are refused; nothing is unpickled. The order is kept unless samples are split.
"""


def make_webdataset(
    path: Annotated[
        list[str], typer.Argument(metavar="PATH...", help="Tar files, globs, folders.", show_default=False)
    ],
    floats: opt.FloatsOption = "ask",
    resize: opt.ResizeOption = None,
    gray: opt.GrayOption = False,
    encode: opt.EncodeOption = "auto",
    quality: opt.QualityOption = 95,
    check: opt.CheckOption = "decode",
    exif: opt.ExifOption = "keep",
) -> Any:
    """Samples of tar files."""
    from tfrkit import sources

    images = opt.make_images(resize, gray, encode, quality, check, exif)
    return sources.webdataset(path[0] if len(path) == 1 else path, floats=floats, images=images)


DATASETS: dict[str, opt.SourceCommand] = {
    "voc-seg": opt.SourceCommand(VOC_SEG, make_voc_seg),
    "voc-det": opt.SourceCommand(VOC_DET, make_voc_det),
    "coco": opt.SourceCommand(COCO, make_coco),
    "yolo": opt.SourceCommand(YOLO, make_yolo),
    "table": opt.SourceCommand(TABLE, make_table),
    "frames": opt.SourceCommand(FRAMES, make_frames),
    "tfrecord": opt.SourceCommand(TFRECORD, make_tfrecord),
    "webdataset": opt.SourceCommand(WEBDATASET, make_webdataset),
}
