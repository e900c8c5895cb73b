"""The sources of `tfr build`: one function each, with its options as the signature and its help as the docstring.

A function without a body represents the source of its name in `tfrkit.sources`, which takes the same arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from tfrkit.cli import build_annotated as annotated
from tfrkit.cli import build_datasets as datasets
from tfrkit.cli import build_options as opt

SplitFolders = Annotated[
    bool,
    typer.Option(
        "--split-folders", help="Folders of the first level are splits: train/, test/; class folders are below them."
    ),
]


def class_folders(
    path: opt.Root,
    classes: opt.Classes = None,
    label_offset: opt.LabelOffset = 0,
    split_folders: SplitFolders = False,
    *,
    images: opt.Images,
) -> None:
    """Images in one folder per class.

    \b
      tfr build class-folders flowers/ -o flowers_tfr/ --split train=.8,val=.1,test=.1 --stratify

    The class is the name of the folder below PATH; ids follow the sorted names. Features: image/encoded, image/format,
    image/height, image/width, image/channels, image/filename, image/class/label, image/class/text.
    """


Label = Annotated[
    str, typer.Option("--label", metavar="REGEX", help="With a group named class or text.", show_default=False)
]
Charset = Annotated[
    str,
    typer.Option(
        "--charset",
        metavar="auto|digits|lower|upper|letters|alnum|FILE",
        help="Characters of texts; auto takes the smallest that has all characters found.",
    ),
]


def file_names(
    path: opt.Root,
    label: Label,
    charset: Charset = "auto",
    classes: opt.Classes = None,
    label_offset: opt.LabelOffset = 0,
    *,
    images: opt.Images,
) -> None:
    """Images labelled by their file names.

    \b
      tfr build file-names captcha/images -o captcha/ --label '^(?P<text>[0-9A-Za-z]{5})' \\
          --gray --resize 224x224 --split test=500 --shards 5 --seed 0
      tfr build file-names data/ -o fruit.tfrecord --label '^(?P<class>[a-z]+)' \\
          --resize 32x32 --encode raw

    --label is a regular expression searched for in each file name. Its group `class` is the class of the image:
    features label, label/text. Its group `text` is the text in the image: features label0, label1, ... (one per
    character), label/ids, label/text, label/length; shorter texts are padded with an extra id, <pad>. Other features:
    image, height, width, channels, format, filename.
    """


LabelArray = Annotated[
    str | None, typer.Option("--label", metavar="NAME", help="The array of classes, for --stratify.")
]


def arrays(
    path: opt.File,
    label: LabelArray = None,
    floats: opt.Floats = "ask",
) -> None:
    """Arrays of a .npy or .npz file, one feature each.

    \b
      tfr build arrays digits.npz -o digits.tfrecord

    Row i of every array is record i. Integers are stored as int64, float32 as float; rows of any other dtype or rank
    are stored as serialized tensors, which keep dtype and shape. The order is kept unless records are split.
    """


# In the order of the help.
SOURCES: tuple[Callable[..., Any], ...] = (
    *(class_folders, file_names),
    *(annotated.voc_seg, annotated.voc_det, annotated.coco, annotated.yolo, annotated.csv_boxes),
    *(datasets.table, datasets.frames, datasets.tfrecord, datasets.webdataset),
    arrays,
)
