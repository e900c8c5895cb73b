"""Rewrite files with another compression, or with features dropped, renamed, cast or renumbered."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tfrkit import _native
from tfrkit.codec.edit_record import CAST_KINDS, CastKind, ClassError, RecordEditor
from tfrkit.container.codecs import CompressionWord, Level, read_compression
from tfrkit.container.index import FRAME_OVERHEAD
from tfrkit.container.records import FrameStream, Policy
from tfrkit.container.shards import Shard
from tfrkit.container.writer import frame_records
from tfrkit.errors import (
    CodecError,
    FeatureKindError,
    Hint,
    MissingFeatureError,
    SchemaError,
    Step,
    StorageError,
    misuse,
)
from tfrkit.features.rename import rename_schema
from tfrkit.features.schema import PARTS, Schema, decode_name, describe_missing, encode_name, map_specs
from tfrkit.features.spec import Spec
from tfrkit.ops.reshape.layout import choose_name
from tfrkit.ops.reshape.new_classes import find_new_classes, rename_classes, replace_class_files
from tfrkit.ops.reshape.on_workers import WorkerOutputs
from tfrkit.ops.reshape.outputs import Outputs, OutShard
from tfrkit.ops.reshape.rewrite import STDOUT, Rewrite, Rewritten, WriteOptions
from tfrkit.outputs.shard import Tally
from tfrkit.outputs.target import Target
from tfrkit.passes.frame_sources import FrameSources, deal_frames, open_sources
from tfrkit.passes.shard_tasks import VerbEngine, choose_cluster, connect_if
from tfrkit.progress import Progress, Quiet
from tfrkit.sidecars.carry import collect_carried
from tfrkit.storage.base import ByteSource
from tfrkit.storage.resolve import Address, show_address

_EDITED_NBYTES = 1 << 20


def convert(
    address: Address | Iterable[Address],
    output: str | os.PathLike[str],
    *,
    compression: CompressionWord | None = None,
    level: Level = "default",
    drop: Sequence[str] = (),
    keep: Sequence[str] | None = None,
    rename: Mapping[str, str] | None = None,
    cast: Mapping[str, CastKind] | None = None,
    classes: Mapping[str, str | Sequence[str]] | None = None,
    force: bool = False,
    incomplete: bool = False,
    jobs: int | None = None,
    engine: VerbEngine = "local",
    engine_address: str | None = None,
    progress: Progress | None = None,
) -> Rewritten:
    """Rewrite files, each under its own name, with another compression or with edited features.

    One file is written to the file `output`, several into the folder `output`. Without edits the bytes of records do
    not change; with edits, the other features are copied unchanged. Raises for a value that the new kind cannot hold,
    and for a feature that no record has.

    Args:
        address: Path, glob, folder, or a list of these; - is standard input.
        output: A file or a folder; - is standard output.
        compression: "none", "gzip", "zlib", "xz" or "zstd"; default: that of the output's suffix, else of the source.
        level: "default", "fast", "small", or a level number of the codec.
        drop: Features to drop.
        keep: Features to keep; all others are dropped.
        rename: Maps old feature names to new ones.
        cast: Maps features to their new kind: "bytes" (numbers as text), "float" or "int64".
        classes: Maps features to their new class names, in the order of their ids: a list, or a file as for `build`.
            Ids are renumbered by name. A feature without class names keeps its ids and gets the names.
        force: Replace existing files.
        incomplete: Continue if shards of a set are missing.
        jobs: Compression threads; with an engine, tasks at a time.
        engine: With "ray" or "dask", workers of a cluster write, each a file at a time; see `build`.
        engine_address: Address of the cluster.
        progress: Progress callback.
    """
    cluster = choose_cluster(engine, engine_address, jobs)
    options = WriteOptions(read_compression(compression), level, force, jobs, progress or Quiet())
    editor = _make_editor(drop, keep, rename or {}, cast or {}, classes or {})
    path = show_address(output)
    with open_sources(address, incomplete=incomplete) as sources, connect_if(cluster) as workers:
        carried = collect_carried(sources.sidecars)
        new_classes = {name: find_new_classes(name, names, sources.sidecars) for name, names in (classes or {}).items()}
        editor.renumber = {name: new.ids for name, new in new_classes.items()}
        replace_class_files(carried, new_classes)
        is_folder = len(sources.paths) > 1 or os.path.isdir(path) or path.endswith(os.sep)
        if is_folder and Target(path).is_file:
            raise misuse(
                f"{len(sources.paths)} files go into a folder, got the name of one file, {path}",
                Step("name a folder: {output}", output=f"{path}/"),
                "or put them together first: tfr merge",
            )
        recipe: dict[str, Any] = {
            "compression": options.compression,
            "drop": [*drop],
            "rename": dict(rename or {}),
            "cast": dict(cast or {}),
        }
        recipe["keep"] = None if keep is None else [*keep]
        if new_classes:
            recipe["classes"] = {name: [*new.labels.names] for name, new in new_classes.items()}
        job = Rewrite("convert", sources, carried, options, recipe, workers=workers)
        if editor.named:
            job.edit_schema = lambda schema: edit_schema(rename_classes(schema, new_classes), editor)
        sources.begin(options.progress)

        def feed(outputs: Outputs) -> Tally:
            read = _convert_frames(sources, editor, outputs, options.progress)
            _require_names(sources, editor)
            return read

        def feed_on_workers(outputs: WorkerOutputs) -> Tally:
            parts = [((number,), ConvertPart(path, editor)) for number, path in enumerate(sources.paths)]
            read = outputs.write(parts)
            for seen in outputs.facts:
                editor.seen |= seen
            _require_names(sources, editor)
            return read

        if path == STDOUT:
            if is_folder:
                raise ValueError(
                    f"standard output expected one file, got {len(sources.paths)}\n  merge them: tfr merge"
                )
            if workers is not None:
                raise ValueError("workers of a cluster write files, got standard output")
            return job.run_to_stdout(feed)
        if not is_folder:
            target = Target(path, as_file=True)
            planned, name = [OutShard(os.path.basename(path))], target.name
        else:
            target = Target(path, as_file=False)
            planned, name = _name_outputs(sources), choose_name(carried, path)
        return job.run(target, name, planned, feed, on_workers=feed_on_workers)


def edit_schema(schema: Schema, editor: RecordEditor) -> Schema:
    """Return the schema of the records after the edits."""

    def edit(specs: Mapping[str, Spec]) -> dict[str, Spec]:
        kept = {
            name: spec
            for name, spec in specs.items()
            if name not in editor.drop and (editor.keep is None or name in editor.keep)
        }
        return {name: _cast_spec(spec, editor.cast.get(name)) for name, spec in kept.items()}

    edited = map_specs(schema, edit)
    return rename_schema(edited, {old: new for old, new in editor.rename.items() if old in edited})


def _cast_spec(spec: Spec, kind: CastKind | None) -> Spec:
    if kind is None or (spec.kind == kind and spec.seen is None):
        return spec
    shape = spec.shape if spec.encoding == "list" else ()
    is_label = kind == "int64" and spec.kind == "int64"
    return Spec(
        kind,
        shape,
        optional=spec.optional,
        is_list=spec.is_list,
        classes=spec.classes if is_label else None,
        num_classes=spec.num_classes if is_label else None,
    )


def _make_editor(
    drop: Sequence[str],
    keep: Sequence[str] | None,
    rename: Mapping[str, str],
    cast: Mapping[str, CastKind],
    classes: Mapping[str, object],
) -> RecordEditor:
    for name, kind in cast.items():
        if kind not in CAST_KINDS:
            raise ValueError(f"cast of {name!r} expected one of {', '.join(CAST_KINDS)}, got {kind!r}")
    gone = {*drop} & {*rename, *cast, *classes, *(keep or ())}
    if keep is not None:
        gone |= {*rename, *cast, *classes} - {*keep}
    if gone:
        raise ValueError(f"feature {sorted(gone)[0]!r} is left out and cannot be edited or kept as well")
    if both := {*cast} & {*classes}:
        raise ValueError(f"feature {sorted(both)[0]!r} expected a new kind or new classes, got both")
    names = [*rename.values()]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"two features would be called {twice[0]!r}")
    return RecordEditor(frozenset(drop), None if keep is None else frozenset(keep), rename, cast)


def _name_outputs(sources: FrameSources) -> list[OutShard]:
    """Name each output as its source; if names are equal, with their folders: train-a for train/a."""
    parts = [path.split("/") for path in sources.paths]
    names = [path[-1] for path in parts]
    for depth in range(2, max(map(len, parts), default=0) + 1):
        if len(set(names)) == len(names):
            break
        names = ["-".join(filter(None, path[-depth:])) for path in parts]
    for name, count in Counter(names).items():
        if count > 1:
            raise StorageError("a file would be written twice", shard=name, hint="name each file once")
    return [OutShard(name, split) for name, split in zip(names, sources.sidecars.split_names, strict=True)]


@dataclass(frozen=True)
class ConvertPart:
    """All records of one file, edited."""

    path: str
    editor: RecordEditor

    def feed(self, outputs: Outputs, progress: Progress) -> tuple[Tally, set[str]]:
        """Put the frames into the only output; the facts are the names that the records have."""
        with contextlib.closing(FrameSources([self.path], Shard.open_all([self.path]))) as sources:
            return _convert_frames(sources, self.editor, outputs, progress), self.editor.seen


def _convert_frames(sources: FrameSources, editor: RecordEditor, outputs: Outputs, progress: Progress) -> Tally:
    if editor.named:
        return _edit_frames(sources, editor, outputs, progress)
    return deal_frames(sources, None, len(sources.paths), outputs.put_last, progress)


def _edit_frames(sources: FrameSources, editor: RecordEditor, outputs: Outputs, progress: Progress) -> Tally:
    total = 0
    quick = _make_quick_editor(editor)
    for number, shard in enumerate(sources.shards):
        stream = FrameStream(shard, Policy())
        edited: Any = b""
        nbytes = 0

        def consume(
            data: ByteSource, start: int, stop: int, shard: Shard = shard, stream: FrameStream = stream
        ) -> tuple[int, int, _native.Fault | None]:
            nonlocal edited, nbytes
            num_frames, fault, after = 0, None, start
            if quick is not None:
                edited, num_frames, after, fault = quick.edit_frames(data, start, stop, _EDITED_NBYTES, "all")
            if not num_frames and fault is None:
                # Records that the native editor cannot edit: all if values change, else the next one.
                max_frames = 4096 if quick is None else 1
                records, after, fault = _native.read_frames(data, start, stop, max_frames, _EDITED_NBYTES, "all")
                edited = frame_records(_edit_records(records, editor, shard, stream, start))
                num_frames = len(records)
            nbytes = after - start
            return num_frames, after, fault

        while num_records := stream.step(consume):
            outputs.put_last(number, edited)
            progress.advance(num_records, nbytes, 0)
            total += num_records
    if quick is not None:
        editor.seen |= set(map(decode_name, quick.seen()))
    return Tally(total)


def _make_quick_editor(editor: RecordEditor) -> _native.FrameEditor | None:
    """Return the native editor, which can drop and rename only; None if values change."""
    if editor.changes_values:
        return None
    return _native.FrameEditor(
        [encode_name(name) for name in editor.drop],
        [encode_name(name) for name in editor.keep or () if name not in editor.rename],
        [(encode_name(old), encode_name(new)) for old, new in editor.rename.items()],
        editor.keep is None,
    )


def _edit_records(
    records: list[bytes], editor: RecordEditor, shard: Shard, stream: FrameStream, start: int
) -> list[bytes]:
    edited = []
    offset = stream.base + start
    for record in records:
        try:
            edited.append(editor.edit(record))
        except (CodecError, SchemaError) as error:
            raise error.replace(
                shard=shard.name,
                record=stream.record + len(edited),
                offset=offset,
                hint=_advise(error),
            ) from None
        offset += len(record) + FRAME_OVERHEAD
    return edited


def _advise(error: CodecError | SchemaError) -> str:
    if isinstance(error, FeatureKindError):
        return Hint(Step("leave the feature out: {drop}", drop=[...]))
    if isinstance(error, ClassError):
        return "add it to the new classes, or drop these records first: tfr edit --drop --where ..."
    if isinstance(error, SchemaError):
        return Hint(Step("choose another name: {rename}", rename=...))
    return "without edits records are copied as they are"


def _require_names(sources: FrameSources, editor: RecordEditor) -> None:
    """Raise for a name that no record has."""
    if not editor.seen:
        return
    for name in editor.named:
        if name not in editor.seen:
            hint = f"see what is there: tfr info {sources.paths[0]}"
            plain = next((name[len(part) + 1 :] for part in PARTS if name.startswith((f"{part}.", f"{part}/"))), "")
            if plain in editor.seen:
                hint = f"context and feature lists are edited alike: {plain}"
            elif name in editor.rename.values():
                hint = "features are named as they are before they are renamed"
            raise MissingFeatureError(
                f"{describe_missing(name, sorted(editor.seen))}, in no record", shard=sources.paths[0], hint=hint
            )
