"""Writes a change: shards, indexes and sidecars, as a copy or in place, all or nothing."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from tfrkit import _native
from tfrkit.container.index import index_path, load_index, write_dali_index
from tfrkit.container.locate import save_index
from tfrkit.container.records import FrameStream, Policy
from tfrkit.container.shards import Shard
from tfrkit.errors import ContainerError, StaleIndexError, Step, misuse
from tfrkit.ops.edit.change import Changed, ChangeOptions, ShardWork, list_changed
from tfrkit.ops.reshape.layout import choose_name
from tfrkit.ops.reshape.outputs import Outputs, OutShard
from tfrkit.ops.reshape.rewrite import Rewrite, WriteOptions
from tfrkit.outputs.dataset import open_staging
from tfrkit.outputs.shard import OutputThreads, Tally, Written
from tfrkit.outputs.target import Target
from tfrkit.passes.frame_sources import FrameSources, deal_frames
from tfrkit.sidecars.carry import collect_carried
from tfrkit.sidecars.manifest import ShardChange, update_manifest
from tfrkit.sidecars.places import INFO, MANIFEST, TABLE
from tfrkit.sidecars.update import list_sidecars, update_info
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.base import ByteSource, explain_os_error
from tfrkit.storage.digest import hash_file
from tfrkit.storage.local import require_space
from tfrkit.storage.lookup import is_file, measure_file
from tfrkit.storage.resolve import open_reader
from tfrkit.storage.sync import sync_path
from tfrkit.storage.text_files import format_json, write_text
from tfrkit.storage.transaction import Replacement

_COPY_NBYTES = 8 << 20


class _NothingChangedError(Exception):
    """No record changed."""


@dataclass
class Change:
    """One run of a verb that changes a dataset.

    Attributes:
        verb: Name of the verb.
        recipe: The options that affect records, for the manifest.
        is_named_folder: The user named a folder, so the copy is a folder.
    """

    verb: str
    sources: FrameSources
    works: list[ShardWork]
    options: ChangeOptions
    recipe: Mapping[str, Any]
    is_named_folder: bool = False
    more_sources: Sequence[str] = ()
    is_optional: bool = False
    """Write nothing if no record changes."""
    notes: list[str] = field(default_factory=list)

    def run(self) -> Changed:
        """Write the change, or describe it for a dry run."""
        is_same = self.is_optional and all(work.feed is None for work in self.works)
        try:
            return self._describe() if self.options.dry_run or is_same else self._write()
        except _NothingChangedError:
            return self._describe()

    def _describe(self) -> Changed:
        if self.is_optional and self.options.dry_run:
            # The number of changes in a shard is known only after reading it.
            for work in self.works:
                if work.feed is not None and not work.is_touched:
                    work.feed(lambda frames: None)
        files = list_changed(self.works, self._folder)
        return Changed(self._place, False, files, [*self.sources.notes, *self.notes])

    def _write(self) -> Changed:
        options = self.options
        if options.in_place:
            return self._run_in_place()
        assert options.output is not None
        is_many = len(self.works) > 1 or (self.is_named_folder and not Target(options.output).is_file)
        is_folder = is_many or os.path.isdir(options.output) or options.output.endswith(os.sep)
        if is_folder and Target(options.output).is_file:
            raise misuse(
                f"{len(self.works)} files go into a folder, got the name of one file, {options.output}",
                Step("name a folder: {output}", output=f"{options.output}/"),
            )
        return self._write_folder(options.output) if is_folder else self._write_file(options.output)

    @property
    def _folder(self) -> str:
        return self.sources.sidecars.folders[0]

    @property
    def _place(self) -> str:
        """Path of the changed dataset: its folder, or its only file."""
        is_file = len(self.sources.paths) == 1 and not self.is_named_folder
        return self.sources.paths[0] if is_file else self._folder or "."

    # ---- a copy --------------------------------------------------------------------------------------------------

    def _write_file(self, out: str) -> Changed:
        """Write the only shard to one file, with the usual sidecars."""
        [work] = self.works
        carried = collect_carried(self.sources.sidecars)
        write = WriteOptions(None, "default", self.options.force, self.options.jobs, self.options.progress)
        job = Rewrite(self.verb, self.sources, carried, write, self.recipe, notes=self.notes)
        job.edit_schema = lambda schema: schema  # kinds do not change, but the bytes of records do

        def feed(outputs: Outputs) -> Tally:
            if work.feed is None:
                return deal_frames(self.sources, None, 1, outputs.put, self.options.progress)
            work.feed(lambda frames: outputs.put(0, frames))
            self._require_change()
            return Tally(work.num_records)

        target = Target(out, as_file=True)
        self._begin()
        made = job.run(target, choose_name(carried, out), [OutShard(os.path.basename(out))], feed)
        return Changed(out, True, list_changed(self.works, out, is_file=True), made.notes)

    def _write_folder(self, out: str) -> Changed:
        target = Target(out, as_file=False)
        names = [work.name for work in self.works]
        paths = [*self.sources.paths, *self.more_sources]
        with open_staging(target, names, sources=paths, force=self.options.force) as staging:
            staging.require_space(sum(work.nbytes for work in self.works))
            written = self._write_shards(staging.folder, out)
            for work in self.works:
                if work.name not in written:
                    assert work.source is not None
                    _copy_shard(work.source, staging.path(work.name))
                    staging.take(staging.path(work.name))
            texts, left_out = self._update_sidecars(written, only=True)
            kept = [name for name in list_sidecars(self.sources.sidecars) if name not in left_out]
            for name in kept:
                os.makedirs(os.path.dirname(staging.path(name)), exist_ok=True)
                if name in texts:
                    write_text(staging.path(name), texts[name])
                else:
                    _copy_file(os.path.join(self._folder, name), staging.path(name))
            staging.commit(kept)
        return Changed(out, True, list_changed(self.works, out), [*self.sources.notes, *self.notes])

    # ---- in place ------------------------------------------------------------------------------------------------

    def _run_in_place(self) -> Changed:
        folder = self._folder
        with Replacement(folder) as change:
            self._require_unchanged()
            rewritten = [work for work in self.works if work.feed is not None]
            require_space(folder or ".", sum(work.nbytes for work in rewritten))
            written = self._write_shards(change.new, folder)
            for made in written.values():
                _check_written(made)
            self._place_shards(change, written)
            texts, left_out = self._update_sidecars(written, only=False)
            for name in sorted(texts, key=lambda name: os.path.basename(name).endswith(MANIFEST)):
                write_text(change.path(name), texts[name])
                change.put(name)
            for name in [*left_out, TABLE]:  # the table is made of the old manifest
                change.remove(name)
            self.sources.close()
            change.commit()
        return Changed(self._place, True, list_changed(self.works, folder), [*self.sources.notes, *self.notes])

    def _require_unchanged(self) -> None:
        """Raise if another process changed a shard since it was opened. Called with the folder locked."""
        for shard in self.sources.shards:
            shard.reader.park()  # reopening compares the file with its state at the first open
            shard.reader.descriptor()
            shard.reader.park()

    def _place_shards(self, change: Replacement, written: Mapping[str, Written]) -> None:
        """Put rewritten and renamed shards into place, with their indexes."""
        had_index = any(os.path.exists(index_path(path)) for path in self.sources.paths)
        for work in self.works:
            old = None if work.source is None else os.path.basename(work.source)
            is_moved = old is not None and old != work.name
            if work.name not in written and not is_moved:
                continue
            if work.name not in written:
                assert old is not None
                change.link(old, work.name)
            self._place_indexes(change, work, old, is_new=work.name in written, had_index=had_index)
            if is_moved and old is not None:
                for name in (old, index_path(old), f"{old}.idx"):
                    change.remove(name)
            change.put(work.name, at_once=True)

    def _place_indexes(
        self, change: Replacement, work: ShardWork, old: str | None, *, is_new: bool, had_index: bool
    ) -> None:
        """Move the index of a shard and its NVIDIA DALI index into place, if the old shard had them.

        A shard without an old one gets an index if `had_index`.
        """
        name, dali = index_path(work.name), f"{work.name}.idx"
        has_index = had_index if old is None else os.path.exists(os.path.join(self._folder, index_path(old)))
        if has_index:
            if not is_new and old is not None:
                change.link(index_path(old), name)
            change.put(name)
        if old is not None and os.path.exists(os.path.join(self._folder, f"{old}.idx")):
            if not is_new:
                change.link(f"{old}.idx", dali)
            elif work.compression == "none":
                _write_dali(change.path(work.name), change.path(dali))
            else:
                change.remove(dali)
                return
            change.put(dali)

    # ---- both ----------------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        rewritten = [work for work in self.works if work.feed is not None]
        self.options.progress.begin(sum(work.num_records for work in rewritten), None)

    def _write_shards(self, folder: str, shown: str) -> dict[str, Written]:
        """Write every shard with a feed into a folder; shards that turn out unchanged are discarded."""
        self._begin()
        fed = [(work, work.feed) for work in self.works if work.feed is not None]
        shards = [OutShard(work.name, compression=work.compression) for work, _ in fed]
        try:
            final = partial(os.path.join, shown)
            with Outputs(shards, OutputThreads(self.options.jobs), folder=folder, final=final) as outputs:
                for number, (_, feed) in enumerate(fed):
                    feed(partial(outputs.put_last, number))
                made_shards = outputs.finish()
        finally:
            self.options.progress.end()
        self._require_change()
        written = {}
        for (work, _), made in zip(fed, made_shards, strict=True):
            if not work.is_touched:
                os.unlink(made.path)
                os.unlink(index_path(made.path))
                continue
            written[work.name] = made
            if made.tally.num_records != work.num_records:
                raise ContainerError(
                    f"{self.verb} expected to write {work.num_records} records, wrote {made.tally.num_records}, "
                    "nothing was kept",
                    shard=os.path.join(shown, work.name),
                    hint="this is a bug of tfrkit: report it with the command",
                )
        return written

    def _require_change(self) -> None:
        if self.is_optional and not any(work.is_touched for work in self.works):
            raise _NothingChangedError

    def _update_sidecars(self, written: Mapping[str, Written], *, only: bool) -> tuple[dict[str, str], list[str]]:
        """Return the new texts of sidecars by path, and the sidecars to remove."""
        sidecars = self.sources.sidecars
        manifests = {manifest.path: manifest for manifest in sidecars.manifests if manifest is not None}
        wants_sha256 = any("sha256" in row for one in manifests.values() for row in one.content.get("shards") or ())
        changes = [self._describe_shard(work, written.get(work.name), wants_sha256) for work in self.works]
        entry = {
            "verb": self.verb,
            "options": dict(self.recipe),
            "changed": sum(work.changed for work in self.works),
            "dropped": sum(work.dropped for work in self.works),
            "added": sum(work.added for work in self.works),
        }
        texts: dict[str, str] = {}
        left_out: list[str] = []
        info = sidecars.info_of(0)
        if info is not None:
            updated = update_info(info, changes, only=only)
            if updated is not None:
                texts[INFO] = format_json(updated)
            else:
                left_out.append(INFO)
                self.notes.append(f"{INFO} does not fit these shards and was left out")
        for path, manifest in manifests.items():
            content = update_manifest(manifest.content, changes, entry, only=only)
            content["files"] = [name for name in content.get("files") or () if name not in left_out]
            texts[os.path.relpath(path, self._folder or ".")] = format_json(content)
        return texts, left_out

    def _describe_shard(self, work: ShardWork, made: Written | None, wants_sha256: bool) -> ShardChange:
        old_nbytes = 0 if work.source is None else measure_file(work.source)
        return ShardChange(
            None if work.source is None else os.path.basename(work.source),
            work.name,
            work.split,
            work.num_records,
            old_nbytes if made is None else made.nbytes,
            old_nbytes,
            is_changed=made is not None,
            sha256=hash_file(made.path) if made is not None and wants_sha256 else None,
        )


def _copy_shard(source: str, target: str) -> None:
    """Copy a shard with its index; make a new index if there is none or it is stale."""
    _copy_file(source, target)
    shard = Shard.open(target)
    try:
        os.makedirs(os.path.dirname(index_path(target)), exist_ok=True)
        if is_file(index_path(source)):
            _copy_file(index_path(source), index_path(target))
            if load_index(shard.reader) is not None:
                return
    except StaleIndexError:
        pass
    finally:
        shard.close()
    save_index(target)


def _copy_file(source: str, target: str) -> None:
    try:
        if has_scheme(source):
            _fetch_file(source, target)
        else:
            shutil.copyfile(source, target)
        sync_path(target)
    except OSError as error:
        raise explain_os_error(error, source, verb="copy") from None


def _fetch_file(source: str, target: str) -> None:
    stream = open_reader(source).stream(0)
    with open(target, "wb") as file:
        while piece := stream.read(_COPY_NBYTES):
            file.write(piece)


def _write_dali(shard_path: str, path: str) -> None:
    with contextlib.closing(Shard.open(shard_path)) as shard:
        index = load_index(shard.reader)
        assert index is not None
        write_dali_index(path, index.offsets, index.inflated_size)


def _check_written(made: Written) -> None:
    """Read a new shard back and verify all checksums, before the old one is removed."""
    shard = Shard.open(made.path)
    stream = FrameStream(shard, Policy())
    read = Tally()

    def consume(data: ByteSource, start: int, stop: int) -> tuple[int, int, _native.Fault | None]:
        nonlocal read
        offsets, digest, after, fault = _native.sum_frames(data, start, stop, 1 << 62, 1 << 62, "all")
        read += Tally(len(offsets), after - start, int(np.uint64(digest)))
        return len(offsets), after, fault

    try:
        while stream.step(consume):
            pass
    finally:
        shard.close()
    if read != made.tally:
        raise ContainerError(
            f"{os.path.basename(made.path)} was read back as {read.num_records} records, digest {read.digest:#018x}, "
            f"expected {made.tally.num_records}, {made.tally.digest:#018x}; the old file was kept",
            hint="check the disk, then try again",
        )
