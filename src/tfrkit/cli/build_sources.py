"""The sources of `tfr build`: for each its help, its own options, and how they become a source."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tfrkit.cli import build_options as opt
from tfrkit.cli.build_annotated import ANNOTATED
from tfrkit.cli.build_datasets import DATASETS

CLASS_FOLDERS = """Images in one folder per class.

\b
  tfr build class-folders flowers/ -o flowers_tfr/ --split train=.8,val=.1,test=.1 --stratify

The class is the name of the folder below PATH; ids follow the sorted names. Features: image/encoded,
image/format, image/height, image/width, image/channels, image/filename, image/class/label, image/class/text.
"""

SplitFoldersOption = Annotated[
    bool, typer.Option("--split-folders", help="The first level are splits: train/, test/; classes lie below.")
]


def make_class_folders(
    path: opt.RootArgument,
    classes: opt.ClassesOption = None,
    label_offset: opt.LabelOffsetOption = 0,
    split_folders: SplitFoldersOption = False,
    resize: opt.ResizeOption = None,
    gray: opt.GrayOption = False,
    encode: opt.EncodeOption = "auto",
    quality: opt.QualityOption = 95,
    check: opt.CheckOption = "decode",
    exif: opt.ExifOption = "keep",
) -> Any:
    """Class folders."""
    from tfrkit import sources

    images = opt.make_images(resize, gray, encode, quality, check, exif)
    return sources.class_folders(
        path, images=images, classes=classes, label_offset=label_offset, split_folders=split_folders
    )


FILE_NAMES = """Images whose file names say what they show.

\b
  tfr build file-names captcha/images -o captcha/ --label '^(?P<text>[0-9A-Za-z]{5})' \\
      --gray --resize 224x224 --split test=500 --shards 5 --seed 0
  tfr build file-names data/ -o fruit.tfrecord --label '^(?P<class>[a-z]+)' \\
      --resize 32x32 --encode raw

--label is a regular expression searched for in each file name. Its group `class` is the class of the image:
features label, label/text. Its group `text` is the text on it: features label0, label1, ... (one a character),
label/ids, label/text, label/length; shorter texts are filled up with one more id, <pad>. Always there: image,
height, width, channels, format, filename.
"""

LabelOption = Annotated[
    str, typer.Option("--label", metavar="REGEX", help="With a group named class or text.", show_default=False)
]
CharsetOption = Annotated[
    str,
    typer.Option(
        "--charset",
        metavar="auto|digits|lower|upper|letters|alnum|FILE",
        help="Characters of texts; auto takes the smallest of these that holds all seen.",
    ),
]


def make_file_names(
    path: opt.RootArgument,
    label: LabelOption,
    charset: CharsetOption = "auto",
    classes: opt.ClassesOption = None,
    label_offset: opt.LabelOffsetOption = 0,
    resize: opt.ResizeOption = None,
    gray: opt.GrayOption = False,
    encode: opt.EncodeOption = "auto",
    quality: opt.QualityOption = 95,
    check: opt.CheckOption = "decode",
    exif: opt.ExifOption = "keep",
) -> Any:
    """Labels from file names."""
    from tfrkit import sources

    images = opt.make_images(resize, gray, encode, quality, check, exif)
    return sources.file_names(
        path, label=label, images=images, charset=charset, classes=classes, label_offset=label_offset
    )


ARRAYS = """Arrays of a .npy or .npz file, one feature each.

\b
  tfr build arrays digits.npz -o digits.tfrecord

Row i of every array is record i. Integers are stored as int64, float32 as float; rows of any other dtype or rank
are stored as serialized tensors, which keep dtype and shape. The order is kept unless records are split.
"""

LabelArrayOption = Annotated[
    str | None, typer.Option("--label", metavar="NAME", help="The array of classes, for --stratify.")
]


def make_arrays(path: opt.FileArgument, label: LabelArrayOption = None, floats: opt.FloatsOption = "ask") -> Any:
    """Arrays of a file."""
    from tfrkit import sources

    return sources.arrays(path, label=label, floats=floats)


SOURCES: dict[str, opt.SourceCommand] = {
    "class-folders": opt.SourceCommand(CLASS_FOLDERS, make_class_folders),
    "file-names": opt.SourceCommand(FILE_NAMES, make_file_names),
    **ANNOTATED,
    **DATASETS,
    "arrays": opt.SourceCommand(ARRAYS, make_arrays),
}
