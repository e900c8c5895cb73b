"""Options shared by all `tfr build` commands, and the parsers of their values."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import typer

from tfrkit._limits import DEFAULT_SHARD_NBYTES
from tfrkit.build.run import build
from tfrkit.cli.options import COMPRESSION_METAVAR, EngineAddress, EngineOption, Force
from tfrkit.cli.output import say
from tfrkit.cli.progress import ProgressForm, ShownProgress

Classes = Annotated[
    str | None,
    typer.Option("--classes", metavar="FILE", help="Class names in the order of their ids; sorted by default."),
]
LabelOffset = Annotated[int, typer.Option("--label-offset", min=0, metavar="N", help="The id of the first class.")]


def parse_pairs(texts: Sequence[str] | None, option: str) -> dict[str, str]:
    """Parse names and values from "a=b,c=d", given once or several times."""
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
    """Parse splits for `build`: a ratio, a count, "rest", or the path of a list.

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
    """Parse the number of shards for `build`: one number, or one for each split."""
    if text is None:
        return None
    try:
        if "=" not in text:
            return int(text)
        return {name: int(value) for name, value in parse_pairs([text], "--shards").items()}
    except ValueError:
        raise ValueError(f"--shards expected N or NAME=N,..., got {text!r}") from None


def parse_dimensions(text: str | None) -> tuple[int, int] | None:
    """Parse width and height from "224x224"."""
    if text is None:
        return None
    width, cross, height = text.lower().partition("x")
    if not (cross and width.isdigit() and height.isdigit()):
        raise ValueError(f"--resize expected WIDTHxHEIGHT such as 224x224, got {text!r}")
    return int(width), int(height)


Root = Annotated[str, typer.Argument(metavar="PATH", help="The folder to read.", show_default=False)]
File = Annotated[str, typer.Argument(metavar="PATH", help="The file to read.", show_default=False)]
Floats = Annotated[
    Literal["ask", "float32", "float64"],
    typer.Option("--floats", metavar="ask|float32|float64", help="What to do with floats that do not fit in float32."),
]


ImageRoot = Annotated[
    str | None, typer.Option("--image-root", metavar="FOLDER", help="The folder that paths of images are relative to.")
]
# Separators, by words that are easy to pass in a shell.
SEPARATORS = {"tab": "\t", "\\t": "\t"}
Separator = Annotated[
    str | None,
    typer.Option("--separator", metavar="CHAR", help="Separator of CSV cells; detected by default."),
    lambda text: SEPARATORS.get(text or "", text),
]
Encoding = Annotated[str, typer.Option("--encoding", metavar="NAME", help="Encoding of CSV and JSON lines.")]


def or_nothing(texts: Sequence[str] | None) -> Sequence[str]:
    """Return the values of a repeatable option, empty if it is not given."""
    return texts or ()


def one_or_all(paths: list[str]) -> str | list[str]:
    """Return a single path by itself, several as a list."""
    return paths[0] if len(paths) == 1 else paths


@dataclass
class Images:
    """Image options."""

    resize: Annotated[
        str | None, typer.Option("--resize", metavar="WxH", help="Resize every image to this width and height.")
    ] = None
    gray: Annotated[bool, typer.Option("--gray", help="One channel instead of three.")] = False
    encode: Annotated[
        Literal["auto", "keep", "raw", "png", "jpeg"],
        typer.Option(
            "--encode",
            metavar="auto|keep|raw|png|jpeg",
            help="How images are stored; auto keeps files unchanged, and stores resized images as raw pixels.",
        ),
    ] = "auto"
    quality: Annotated[
        int, typer.Option("--quality", min=1, max=100, metavar="N", help="Quality of JPEGs that are encoded here.")
    ] = 95
    check: Annotated[
        Literal["decode", "header", "none"],
        typer.Option(
            "--check", metavar="decode|header|none", help="How thoroughly to check images that are kept unchanged."
        ),
    ] = "decode"
    exif: Annotated[
        Literal["keep", "apply", "fail"],
        typer.Option(
            "--exif",
            metavar="keep|apply|fail",
            help="Images with an EXIF orientation: pixels as stored, turned upright, or bad.",
        ),
    ] = "keep"

    def make(self) -> Any:
        """Return the options as sources accept them."""
        from tfrkit.sources import ImageOptions

        return ImageOptions(**{**vars(self), "resize": parse_dimensions(self.resize)})


_DEFAULT: Any = SimpleNamespace(**(inspect.unwrap(build).__kwdefaults__ or {}))


@dataclass
class Building:
    """Options for making a dataset from the rows of any source, with the defaults of `build`, and for the report."""

    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            metavar="OUT",
            help="A folder, or NAME.tfrecord (.record, .tfrec) for one file, also with .gz.",
            show_default=False,
        ),
    ]
    split: Annotated[
        list[str] | None,
        typer.Option(
            "--split",
            metavar="NAME=SIZE,...",
            help="Splits by ratio (.1), count (500) or list file (test.txt); the rest goes to train.",
        ),
    ] = _DEFAULT.splits
    shards: Annotated[
        str | None,
        typer.Option("--shards", metavar="N|NAME=N,...", help="Files per split, at most one per record."),
    ] = _DEFAULT.shards
    shard_size: Annotated[
        str | None,
        typer.Option(
            "--shard-size",
            metavar="SIZE",
            help=f"Approximate size of a file; {DEFAULT_SHARD_NBYTES >> 20}MiB by default.",
        ),
    ] = _DEFAULT.shard_size
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Seed of the splits and of the order.")] = (
        _DEFAULT.seed
    )
    order: Annotated[
        Literal["seeded", "source"] | None,
        typer.Option(
            "--order",
            metavar="seeded|source",
            help="Shuffle the records, or keep their order; folders and splits are shuffled by default.",
        ),
    ] = _DEFAULT.order
    stratify: Annotated[bool, typer.Option("--stratify", help="Give every split the same share of each class.")] = (
        _DEFAULT.stratify
    )
    group: Annotated[
        str | None,
        typer.Option(
            "--group", metavar="REGEX", help="Inputs whose names match this with the same text stay in one split."
        ),
    ] = _DEFAULT.group
    compression: Annotated[
        str | None,
        typer.Option(
            "--compression",
            metavar=COMPRESSION_METAVAR,
            help="Compression of the shards; TensorFlow reads the first three.",
        ),
    ] = _DEFAULT.compression
    keys: Annotated[list[str] | None, typer.Option("--keys", metavar="OLD=NEW,...", help="Rename features.")] = (
        _DEFAULT.keys
    )
    on_bad: Annotated[
        Literal["fail", "skip"],
        typer.Option(
            "--on-bad", metavar="fail|skip", help="Bad inputs: list all and stop, or leave them out and exit 1."
        ),
    ] = _DEFAULT.on_bad
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, metavar="N", help="Worker processes; all processors by default."),
    ] = _DEFAULT.jobs
    engine: EngineOption = _DEFAULT.engine
    engine_address: EngineAddress = _DEFAULT.engine_address
    part: Annotated[
        str | None,
        typer.Option(
            "--part",
            metavar="I/N|finish",
            help="Make the shards of one of N parts, from 0; the part that makes the last shard finishes the dataset.",
        ),
    ] = _DEFAULT.part
    force: Force = _DEFAULT.force
    overwrite: Annotated[bool, typer.Option("--overwrite", hidden=True, help="Deprecated: --force.")] = False
    clean: Annotated[
        bool,
        typer.Option("--clean", help="Remove what an interrupted build left in OUT, uploads too, and build nothing."),
    ] = False
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Read everything, write nothing.")] = _DEFAULT.dry_run
    progress: Annotated[
        ProgressForm,
        typer.Option("--progress", metavar="auto|bar|lines|json|none", help="How to show progress on stderr."),
    ] = "auto"
    format: Annotated[
        Literal["text", "json"],
        typer.Option("--format", "-f", metavar="text|json", help="How to print the report."),
    ] = "text"

    def arguments(self) -> dict[str, Any]:
        """Return the options as `build` accepts them."""
        given = {**vars(self), "splits": parse_splits(self.split), "shards": parse_shards(self.shards)}
        if self.overwrite:
            say("note: --overwrite is deprecated, use --force")
            given["force"] = True
        del given["split"], given["format"], given["overwrite"], given["clean"]
        return {**given, "keys": parse_pairs(self.keys, "--keys"), "progress": ShownProgress(self.progress)}
