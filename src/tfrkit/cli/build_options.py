"""Options all `tfr build` commands share, and how their texts are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple

import typer

from tfrkit.cli.progress import ProgressForm

OutOption = Annotated[
    str,
    typer.Option(
        "--out",
        "-o",
        metavar="OUT",
        help="A folder, or NAME.tfrecord (.record, .tfrec) for one file, also with .gz.",
        show_default=False,
    ),
]
SplitOption = Annotated[
    list[str] | None,
    typer.Option(
        "--split",
        metavar="NAME=SIZE,...",
        help="Splits by ratio (.1), count (500) or list file (test.txt); the rest goes to train.",
        show_default=False,
    ),
]
ShardsOption = Annotated[
    str | None,
    typer.Option("--shards", metavar="N|NAME=N,...", help="Files of each split, never more than its records."),
]
ShardSizeOption = Annotated[
    str | None,
    typer.Option("--shard-size", metavar="SIZE", help="About how large a file is to be; 256MiB where nothing is said."),
]
SeedOption = Annotated[int, typer.Option("--seed", metavar="N", help="Decides splits and order.")]
OrderOption = Annotated[
    Literal["seeded", "source"] | None,
    typer.Option(
        "--order",
        metavar="seeded|source",
        help="Mix the records, or keep their order; folders and splits are mixed by default.",
        show_default=False,
    ),
]
StratifyOption = Annotated[bool, typer.Option("--stratify", help="Every split holds each class in the same share.")]
GroupOption = Annotated[
    str | None,
    typer.Option("--group", metavar="REGEX", help="Inputs in whose name this finds the same stay in one split."),
]
CompressionOption = Annotated[
    str | None,
    typer.Option(
        "--compression", metavar="none|gzip|zlib|xz|zstd", help="Of the shards; TensorFlow reads the first three."
    ),
]
KeysOption = Annotated[
    list[str] | None,
    typer.Option("--keys", metavar="OLD=NEW,...", help="Rename features.", show_default=False),
]
OnBadOption = Annotated[
    Literal["fail", "skip"],
    typer.Option("--on-bad", metavar="fail|skip", help="Bad inputs: name all and stop, or leave out and exit 1."),
]
JobsOption = Annotated[
    int | None, typer.Option("--jobs", "-j", min=1, metavar="N", help="Worker processes; all processors by default.")
]
OverwriteOption = Annotated[bool, typer.Option("--overwrite", "--force", help="Replace what is there.")]
DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Look at everything, write nothing.")]
ProgressOption = Annotated[
    ProgressForm,
    typer.Option("--progress", metavar="auto|bar|lines|json|none", help="How to show progress on stderr."),
]
ReportFormat = Annotated[
    Literal["text", "json"],
    typer.Option("--format", "-f", metavar="text|json", help="How to print the report."),
]

ResizeOption = Annotated[
    str | None, typer.Option("--resize", metavar="WxH", help="Bring every image to this width and height.")
]
GrayOption = Annotated[bool, typer.Option("--gray", help="One channel instead of three.")]
EncodeOption = Annotated[
    Literal["auto", "keep", "raw", "png", "jpeg"],
    typer.Option(
        "--encode",
        metavar="auto|keep|raw|png|jpeg",
        help="How images are stored; auto keeps files as they are, resized ones are raw pixels.",
    ),
]
QualityOption = Annotated[int, typer.Option("--quality", min=1, max=100, metavar="N", help="Of JPEGs made here.")]
CheckOption = Annotated[
    Literal["decode", "header", "none"],
    typer.Option("--check", metavar="decode|header|none", help="How closely kept images are looked at."),
]
ExifOption = Annotated[
    Literal["keep", "apply", "fail"],
    typer.Option(
        "--exif",
        metavar="keep|apply|fail",
        help="Images with an EXIF orientation: pixels as stored, turned upright, or bad.",
    ),
]
ClassesOption = Annotated[
    str | None,
    typer.Option("--classes", metavar="FILE", help="Class names in the order of their ids; sorted by default."),
]
LabelOffsetOption = Annotated[
    int, typer.Option("--label-offset", min=0, metavar="N", help="The id of the first class.")
]


def parse_pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    """Name → value from "a=b,c=d", given once or several times."""
    pairs: dict[str, str] = {}
    for text in texts or ():
        for piece in text.split(","):
            name, equals, value = (part.strip() for part in piece.partition("="))
            if not equals or not name or not value:
                raise ValueError(f"{option} expected NAME=VALUE, got {piece!r}")
            if name in pairs:
                raise ValueError(f"{option} expected {name!r} once, got it twice")
            pairs[name] = value
    return pairs


def parse_splits(texts: Sequence[str] | None) -> dict[str, Any] | None:
    """Splits as `build` takes them: a ratio, a count, "rest", or the path of a list.

    Example:
        >>> parse_splits(["train=.8,test=500"]), parse_splits(["val=10%,test=lists/test.txt"])
        ({'train': 0.8, 'test': 500}, {'val': 0.1, 'test': 'lists/test.txt'})
    """
    splits: dict[str, Any] = {}
    for name, value in parse_pairs(texts, "--split").items():
        if value == "rest":
            splits[name] = None
        elif value.isdigit():
            splits[name] = int(value)
        else:
            try:
                splits[name] = float(value[:-1]) / 100 if value.endswith("%") else float(value)
            except ValueError:
                splits[name] = value
    return splits or None


def parse_shards(text: str | None) -> int | dict[str, int] | None:
    """Shards as `build` takes them: a number, or one for each split."""
    if text is None:
        return None
    try:
        if "=" not in text:
            return int(text)
        return {name: int(value) for name, value in parse_pairs([text], "--shards").items()}
    except ValueError:
        raise ValueError(f"--shards expected N or NAME=N,..., got {text!r}") from None


def parse_dimensions(text: str | None) -> tuple[int, int] | None:
    """Width and height from "224x224"."""
    if text is None:
        return None
    width, cross, height = text.lower().partition("x")
    if not (cross and width.isdigit() and height.isdigit()):
        raise ValueError(f"--resize expected WIDTHxHEIGHT such as 224x224, got {text!r}")
    return int(width), int(height)


class SourceCommand(NamedTuple):
    """One sub-command: its help, and a function whose signature has the source's own options."""

    HELP: str
    make: Callable[..., Any]


RootArgument = Annotated[str, typer.Argument(metavar="PATH", help="The folder to read.", show_default=False)]
FileArgument = Annotated[str, typer.Argument(metavar="PATH", help="The file to read.", show_default=False)]
FloatsOption = Annotated[
    Literal["ask", "float32", "float64"],
    typer.Option("--floats", metavar="ask|float32|float64", help="What becomes of floats float32 does not hold."),
]


ImageRootOption = Annotated[
    str | None, typer.Option("--image-root", metavar="FOLDER", help="Where paths of images start.")
]
SeparatorOption = Annotated[
    str | None, typer.Option("--separator", metavar="CHAR", help="Between cells of CSV; found by default.")
]
EncodingOption = Annotated[str, typer.Option("--encoding", metavar="NAME", help="Of CSV and JSON lines.")]
# Separators by the words that a shell can pass on.
SEPARATORS = {"tab": "\t", "\\t": "\t"}


def make_images(resize: str | None, gray: bool, encode: str, quality: int, check: str, exif: str) -> Any:
    """Image options from those of the command."""
    from tfrkit.sources import ImageOptions

    choices: Any = {"encode": encode, "check": check, "exif": exif}
    return ImageOptions(resize=parse_dimensions(resize), gray=gray, quality=quality, **choices)
