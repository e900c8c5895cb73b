"""Arguments and options shared by several commands."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Annotated, Any, Literal, get_args, get_type_hints

import typer

from tfrkit.cli.output import Format, set_quiet
from tfrkit.container.codecs import COMPRESSIONS, Compression
from tfrkit.engines.base import EngineName

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH...",
        help="Files, folders, quoted globs or addresses (s3://bucket/x); - is stdin.",
        show_default=False,
    ),
]

# For commands that need more than one pass over the bytes.
FilePaths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH...", help="Files, folders, quoted globs or addresses (s3://bucket/x).", show_default=False
    ),
]

FormatOption = Annotated[
    Format,
    typer.Option("--format", "-f", metavar="text|json|jsonl|csv", help="Format of the result."),
]

Json = Annotated[bool, typer.Option("--json", help="Short for --format json.")]

Output = Annotated[
    str, typer.Option("-o", "--output", metavar="PATH", help="File or folder to write.", show_default=False)
]

Force = Annotated[bool, typer.Option("--force", help="Replace existing files.")]

EngineOption = Annotated[
    EngineName,
    typer.Option(
        "--engine", metavar="|".join(get_args(EngineName)), help="What runs the work; the result is the same."
    ),
]
EngineAddress = Annotated[
    str | None,
    typer.Option(
        "--engine-address",
        metavar="ADDRESS",
        help="The cluster, such as auto or tcp://host:8786; started on this machine by default.",
    ),
]

Shape = Annotated[
    str | None,
    typer.Option("--shape", metavar="HxW[xC]", help="Shape of raw pixels, height first: 224x224, 480x640x3."),
]
BoxOrderOption = Annotated[
    Literal["xyxy", "yxyx", "xywh", "cxcywh"] | None,
    typer.Option("--box-order", metavar="xyxy|yxyx|xywh|cxcywh", help="Four numbers of a box; default yxyx."),
]
BoxUnitsOption = Annotated[
    Literal["fraction", "pixels"] | None,
    typer.Option("--box-units", metavar="fraction|pixels", help="Units of boxes; guessed by default."),
]

Incomplete = Annotated[
    bool, typer.Option("--incomplete", help="Continue if shards of a set (-00000-of-00012) are missing.")
]

CompressionChoice = Literal[Compression, "gz"]
COMPRESSION_METAVAR = "|".join(COMPRESSIONS)
CompressionOption = Annotated[
    CompressionChoice | None,
    typer.Option(
        "--compression",
        case_sensitive=False,
        metavar=COMPRESSION_METAVAR,
        help="Default: by the suffix of one file (.gz), else that of the source.",
    ),
]

InferOption = Annotated[
    Literal["sample", "all"],
    typer.Option(
        "--infer", metavar="sample|all", help="Records to infer the schema from; a sample is all of a small file."
    ),
]

Jobs = Annotated[
    int | None, typer.Option("-j", "--jobs", min=1, metavar="N", help="Threads or processes; default one per core.")
]

Quiet = Annotated[
    bool, typer.Option("-q", "--quiet", help="Print results and errors only.", callback=set_quiet, is_eager=True)
]


@dataclass(frozen=True)
class RemoteOptions:
    """How remote addresses are read; every command that reads them has these options."""

    endpoint: Annotated[
        str | None, typer.Option("--endpoint", metavar="URL", help="Server of the store, such as MinIO for s3://.")
    ] = None
    profile: Annotated[
        str | None, typer.Option("--profile", metavar="NAME", help="Profile in ~/.aws with the keys for s3://.")
    ] = None
    anonymous: Annotated[bool, typer.Option("--anonymous", help="Read public remote data without keys.")] = False
    cache: Annotated[
        str | None, typer.Option("--cache", metavar="DIR:SIZE", help="Keep remote blocks there: /scratch/c:200G.")
    ] = None

    def use(self) -> None:
        """Set the given options for the whole process."""
        if self != RemoteOptions():
            from tfrkit.storage.options import use_storage

            use_storage(**vars(self))


@dataclass(frozen=True)
class OnCluster:
    """Options of the commands that workers of a cluster can run."""

    engine: EngineOption = "local"
    engine_address: EngineAddress = None
    part: Annotated[
        str | None,
        typer.Option("--part", metavar="I/N|finish", help="Do one of N parts, from 0; the last one gives the result."),
    ] = None
    parts: Annotated[
        str | None,
        typer.Option(
            "--parts", metavar="DIR", help="Folder in which parts meet; all machines see it.", show_default=False
        ),
    ] = None

    def choose(self) -> dict[str, Any]:
        """Return the arguments `engine` and `engine_address` of a function of `tfr.tools`."""
        if (self.part is None) != (self.parts is None):
            raise ValueError("--part and --parts expected together, such as --part 0/4 --parts DIR")
        if self.part is None or self.parts is None:
            return {"engine": self.engine, "engine_address": self.engine_address}
        if self.engine != "local":
            raise ValueError(f"--part is for schedulers without an engine, got --engine {self.engine} with it")
        from tfrkit.engines.part import Part

        return {"engine": Part(self.part, self.parts), "engine_address": self.engine_address}


def spread_groups(run: Callable[..., int], *, reads_remote: bool = False) -> Callable[..., int]:
    """Return a command with an option for each field of its dataclass parameters, which `run` gets as objects.

    The metadata of an option may contain a function that converts its value. With `reads_remote`, the command has
    `RemoteOptions`, too.
    """
    asked = list(inspect.signature(run, eval_str=True).parameters.values())
    if reads_remote:
        asked.append(inspect.Parameter("remote", inspect.Parameter.KEYWORD_ONLY, annotation=RemoteOptions))
    groups: dict[str, Any] = {one.name: one.annotation for one in asked if is_dataclass(one.annotation)}

    spread: list[inspect.Parameter] = []
    for one in asked:
        if one.name not in groups:
            spread.append(one.replace(kind=one.KEYWORD_ONLY))
            continue
        hints = get_type_hints(one.annotation, include_extras=True)
        for field in fields(one.annotation):
            default = one.empty if field.default is MISSING else field.default
            spread.append(one.__class__(field.name, one.KEYWORD_ONLY, default=default, annotation=hints[field.name]))
    parameters: list[inspect.Parameter] = []
    converters: dict[str, Callable[[Any], Any]] = {}
    for one in spread:
        metadata = getattr(one.annotation, "__metadata__", ())
        if functions := [each for each in metadata if callable(each)]:
            [converters[one.name]] = functions
            # Drop the function, so that a command that is spread again converts only once.
            rest = tuple(each for each in metadata if not callable(each))
            one = one.replace(annotation=Annotated[(one.annotation.__origin__, *rest)])
        parameters.append(one)

    def call(**given: Any) -> int:
        for name, convert in converters.items():
            given[name] = convert(given[name])
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        if reads_remote:
            given.pop("remote").use()
        return run(**given)

    call.__signature__ = inspect.Signature(parameters, return_annotation=int)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in parameters}
    return call


def split_names(texts: list[str] | None) -> list[str]:
    """Split names given by repeated options or separated by commas."""
    return [name.strip() for text in texts or () for name in text.split(",") if name.strip()]
