"""Sources of `tfr build` that read datasets in a known format: tables, clips, archives."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

import typer

from tfrkit.cli import build_options as opt
from tfrkit.cli.options import Incomplete

ImageColumn = Annotated[
    str | None,
    typer.Option("--image-column", metavar="NAME", help="The column of image files; their bytes are stored."),
]
Types = Annotated[
    list[str] | None,
    typer.Option("--type", metavar="COLUMN=TYPE,...", help="int64, float or text, instead of inferring it."),
    lambda texts: opt.parse_pairs(texts, "--type"),
]
Missing = Annotated[
    list[str] | None,
    typer.Option(
        "--missing", metavar="TEXT", help="Cells without a value, in addition to empty cells; may be repeated."
    ),
    opt.or_nothing,
]
TableFormat = Annotated[
    Literal["auto", "csv", "jsonl", "parquet", "arrow"],
    typer.Option("--table-format", metavar="auto|csv|jsonl|parquet|arrow", help="Format of the file."),
]
Columns = Annotated[
    str | None,
    typer.Option("--columns", metavar="A,B,...", help="Names of columns, if CSV has no header."),
    lambda text: None if text is None else [name.strip() for name in text.split(",")],
]
LabelColumn = Annotated[
    str | None, typer.Option("--label-column", metavar="NAME", help="The column of classes; text becomes ids.")
]
SplitColumn = Annotated[
    str | None, typer.Option("--split-column", metavar="NAME", help="The column with the split of each row.")
]
GroupColumn = Annotated[
    str | None,
    typer.Option("--group-column", metavar="NAME", help="Rows with the same value in this column stay in one split."),
]


def _refuse_no_header(is_given: bool) -> bool:
    """Reject an option known from pandas: a table without a header still needs column names."""
    if is_given:
        raise typer.BadParameter("a file without a header needs names of its columns: --columns a,b,c")
    return is_given


NoHeader = Annotated[
    bool,
    typer.Option(
        "--no-header", hidden=True, callback=_refuse_no_header, is_eager=True, help="Not supported: see --columns."
    ),
]


def table(
    path: opt.File,
    table_format: TableFormat = "auto",
    separator: opt.Separator = None,
    encoding: opt.Encoding = "utf-8",
    columns: Columns = None,
    no_header: NoHeader = False,
    missing: Missing = None,
    types: Types = None,
    floats: opt.Floats = "ask",
    label_column: LabelColumn = None,
    classes: opt.Classes = None,
    label_offset: opt.LabelOffset = 0,
    split_column: SplitColumn = None,
    group_column: GroupColumn = None,
    image_column: ImageColumn = None,
    image_root: opt.ImageRoot = None,
    *,
    images: opt.Images,
) -> Any:
    """Rows of a CSV, JSON lines, Parquet or Arrow file, one feature per column.

    \b
      tfr build table train.csv -o train.tfrecord --floats float32
      tfr build table data.csv -o out/ --image-column path --label-column label --split-column split

    Types are inferred from whole columns; a missing cell stays missing. 007 and +49 are text. A column of numbers
    with some text in it stops the build, and so do floats that float32 would round, until --type or --floats
    is given. --label-column turns text into class ids and keeps it as <name>/text; --image-column stores the bytes of
    files as image/encoded, with image/format, image/height, image/width and image/channels. In JSON lines an inner
    object becomes columns, outer/inner; {"base64": "..."}, {"float": "nan"} and {"tensor": {"dtype", "shape",
    "values"}} are bytes, a number and an array, as tfr export jsonl writes them. Lines of the
    form {"context": {...}, "feature_lists": {...}} become SequenceExamples. Parquet and Arrow need the extra
    tfrkit[arrow].
    """
    options = {**locals(), "format": table_format, "images": images.make()}
    del options["path"], options["table_format"], options["no_header"]
    from tfrkit import sources

    return sources.table(path, **options)


FrameRate = Annotated[
    float | None, typer.Option("--frame-rate", metavar="N", help="Frames per second, for timestamps.")
]
ClipColumn = Annotated[
    str | None, typer.Option("--clip-column", metavar="NAME", help="Of a table: which clip a row belongs to.")
]
OrderColumn = Annotated[
    str | None, typer.Option("--order-column", metavar="NAME", help="Of a table: the order of a clip's rows.")
]
Context = Annotated[
    list[str] | None,
    typer.Option("--context", metavar="NAME", help="Of a table: a column of one value per clip; may be repeated."),
    opt.or_nothing,
]


def frames(
    path: Annotated[str, typer.Argument(metavar="PATH", help="The folder, or the table.", show_default=False)],
    frame_rate: FrameRate = None,
    classes: opt.Classes = None,
    label_offset: opt.LabelOffset = 0,
    clip_column: ClipColumn = None,
    order_column: OrderColumn = None,
    context: Context = None,
    image_column: ImageColumn = None,
    image_root: opt.ImageRoot = None,
    missing: Missing = None,
    types: Types = None,
    floats: opt.Floats = "ask",
    *,
    images: opt.Images,
) -> Any:
    """Folders of frames, or a table of frames: one SequenceExample per clip.

    \b
      tfr build frames clips/ -o clips_tfr/ --frame-rate 25
      tfr build frames frames.csv -o clips_tfr/ --clip-column video --order-column t \\
          --image-column path --context label

    Each folder with images is a clip; frames follow the numbers in their names. <class>/<clip>/frame gives clips a
    label. Context: clip/media_id, clip/length, clip/label/index, clip/label/string, image/format, image/height,
    image/width, image/channels; lists: image/encoded, image/filename, image/timestamp. In a table, rows with the same
    value of --clip-column are a clip; --context columns have one value per clip, all others become lists.
    """
    from tfrkit import sources

    given: Any = {"images": images.make()}
    if clip_column is None:
        if os.path.isfile(path):
            raise ValueError("a table of frames expected --clip-column, got none")
        return sources.frames(path, frame_rate=frame_rate, classes=classes, label_offset=label_offset, **given)
    given |= {"context": context, "image_column": image_column, "types": types, "missing": missing, "floats": floats}
    return sources.frames_table(path, group=clip_column, order=order_column, image_root=image_root, **given)


SplitNames = Annotated[
    bool, typer.Option("--split-names", help="Keep records in the split their file is named for: train-00000-of-00005.")
]


def tfrecord(
    path: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", help="Files, globs or folders.", show_default=False),
        opt.one_or_all,
    ],
    split_names: SplitNames = False,
    incomplete: Incomplete = False,
) -> None:
    """Records of TFRecord files, byte for byte, into other shards.

    \b
      tfr build tfrecord 'old/train-*' -o new/ --shards 8
      tfr build tfrecord old/ -o new/ --split test=.1 --compression gzip

    Any kind of record and any compression. Both checksums of every record are compared. The order is kept unless
    records are split. Splits that the files name are combined unless --split-names is given.
    """


def webdataset(
    path: Annotated[
        list[str],
        typer.Argument(metavar="PATH...", help="Tar files, globs, folders.", show_default=False),
        opt.one_or_all,
    ],
    split_names: SplitNames = False,
    floats: opt.Floats = "ask",
    *,
    images: opt.Images,
) -> None:
    """Samples of tar files, in the form of WebDataset.

    \b
      tfr build webdataset 'shards/x-{000..099}.tar' -o out/
      tfr build webdataset shards/ -o out/ --resize 224x224

    Members that share a name up to its first dot are one sample; the rest of the name is the kind: .jpg and other
    images become image/encoded with image/format, image/height, image/width, image/channels; .cls image/class/label;
    .txt text; .json one feature per key, json/<key>; .npy an array; anything else its bytes, under its suffix. Links
    and names that point outside the archive are refused; nothing is unpickled. The order is kept unless samples are
    split. Splits that the files name are combined unless --split-names is given.
    """
