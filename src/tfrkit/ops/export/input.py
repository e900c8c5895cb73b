"""Input of an export: shards with their splits, their schema from all records, and rows with record numbers.

Every record is read once before anything is written, so that damage is reported while there is nothing to clean up,
and a feature that only the last record has is a column from the start: a schema from a sample would lose it.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

from tfrkit._types import Row
from tfrkit.batches.survey import SurveyCounts, Surveyed, kind_of_shapes
from tfrkit.codec.decode import Batch, Decoder
from tfrkit.container.faults import advise_repair
from tfrkit.container.index import ShardIndex
from tfrkit.container.locate import load_frames, scan_frames_once
from tfrkit.container.records import Finding, FrameStream, Policy, read_records
from tfrkit.container.shards import Shard, find_shards
from tfrkit.engines.base import Tick
from tfrkit.errors import ContainerError, SchemaError, StorageError
from tfrkit.features.schema import Schema
from tfrkit.features.spec import RecordKind
from tfrkit.passes.shard_tasks import Workers, refuse_pipes
from tfrkit.progress import Progress, Quiet
from tfrkit.sidecars.read import Sidecars
from tfrkit.storage.local import NamedFile
from tfrkit.storage.resolve import Address, open_reader
from tfrkit.storage.temporaries import TemporaryFolder, make_scratch

# Rows decoded per step: enough to hide the cost of a call, few enough to stay small with images.
_ROWS_NBYTES = 4 << 20
_MAX_ROWS = 1024
_SPOOL_NBYTES = 1 << 20


class RecordNumber(NamedTuple):
    """Position of a record: the number of its shard, and its number in that shard."""

    shard: int
    record: int


class SourceBatch(NamedTuple):
    """Consecutive records of one shard as columns, and the size of their frames in bytes, after inflating."""

    first: RecordNumber
    num_rows: int
    columns: Batch
    nbytes: int


class KnownInput(NamedTuple):
    """What a worker of a cluster must know about the whole input, of which it reads one shard."""

    kind: RecordKind
    schema: Schema
    num_records: int
    nbytes: int


class ShardSurvey(NamedTuple):
    """The survey of one shard, its number of records, and the size of its frames."""

    counts: SurveyCounts
    num_records: int
    nbytes: int


class ExportInput:
    """An opened dataset. Close it, or use it in a `with` statement. With `workers`, a cluster surveys the shards."""

    def __init__(
        self,
        address: Address | Iterable[Address],
        progress: Progress | None = None,
        *,
        incomplete: bool = False,
        workers: Workers | None = None,
    ) -> None:
        self.paths = find_shards(address, incomplete="warn" if incomplete else "refuse")
        self.sidecars = Sidecars(self.paths)
        self._progress: Progress = progress or Quiet()
        self._scratch: TemporaryFolder | None = None
        self._frames: dict[int, ShardIndex] = {}  # only the shard of the last `locate`
        self.shards: list[Shard] = []
        self.counts: list[int] = []
        self._sizes: list[int] = []
        try:
            if workers is not None:
                refuse_pipes(self.paths)
            self.shards += [self._open(path) for path in self.paths]
            surveyed = self._survey() if workers is None else self._survey_on(workers)
        except BaseException:
            self.close()
            raise
        self.kind: RecordKind = kind_of_shapes(surveyed.shapes)
        inferred = surveyed.infer()
        self.report = {(row["name"], row["list"]): row for row in inferred.report}
        self.schema: Schema = self.sidecars.refine(inferred)

    @classmethod
    def of_shard(cls, path: str, known: KnownInput) -> ExportInput:
        """Open one shard of an input that another process has surveyed."""
        source = cls.__new__(cls)
        source.paths = [path]
        source.sidecars = Sidecars(source.paths)
        source._progress = Quiet()
        source._scratch = None
        source._frames = {}
        source.shards = [Shard.open(path)]
        source.counts, source._sizes = [known.num_records], [known.nbytes]
        source.kind, source.schema, source.report = known.kind, known.schema, {}
        return source

    def know(self, number: int) -> KnownInput:
        """Return what another process must know to read one shard."""
        return KnownInput(self.kind, self.schema, self.counts[number], self._sizes[number])

    def __enter__(self) -> ExportInput:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the files and remove the spooled copies of pipes."""
        for shard in self.shards:
            shard.close()
        if self._scratch is not None:
            self._scratch.remove()

    @property
    def num_records(self) -> int:
        return sum(self.counts)

    @property
    def nbytes(self) -> int:
        """Size of all frames after inflating."""
        return sum(self._sizes)

    @property
    def _mean_nbytes(self) -> int:
        return max(1, self.nbytes // max(1, self.num_records))

    @property
    def source_kind(self) -> str | None:
        """The source kind of `tfr build` that the records come from, if a manifest names it."""
        return self.sidecars.source_kind

    @property
    def splits(self) -> dict[str, list[int]]:
        """The shard numbers of each split; if only some shards are in a split, "" has the others."""
        splits = self.sidecars.splits
        others = [number for number, name in enumerate(self.sidecars.split_names) if name is None]
        return {**splits, "": others} if splits and others else splits

    def split_names(self) -> list[str]:
        """Return the split of each shard; "" for none."""
        return [name or "" for name in self.sidecars.split_names]

    def require_examples(self) -> None:
        """Raise unless every record is an Example or a SequenceExample."""
        if self.kind in ("raw", "mixed"):
            what = "none" if self.kind == "raw" else "others among them"
            raise SchemaError(
                f"expected records that are Examples, got {what}",
                shard=self.paths[0],
                hint="write their bytes: tfr export jsonl",
            )

    def batches(
        self,
        features: Sequence[str] | None = None,
        *,
        shards: Sequence[int] | None = None,
        max_nbytes: int = _ROWS_NBYTES,
        max_rows: int | None = None,
        watched: bool = True,
    ) -> Iterator[SourceBatch]:
        """Yield the columns of all records, or of those in some shards, in file order, about `max_nbytes` at a time.

        Progress is reported unless `watched` is False.
        """
        decoder = self.new_decoder(features)
        builder = decoder.new_builder()
        most = max(1, max_nbytes // self._mean_nbytes) if max_rows is None else max_rows
        for number in range(len(self.shards)) if shards is None else shards:
            stream = FrameStream(self.shards[number], Policy(), columns=decoder.column_names)
            record = offset = 0
            is_over = False
            while not is_over:
                is_over = stream.take(builder.append_frames, most - builder.num_rows) is None
                nbytes, num_rows = stream.offset - offset, builder.num_rows
                if num_rows and (is_over or num_rows >= most or nbytes >= max_nbytes):
                    yield SourceBatch(RecordNumber(number, record), num_rows, decoder.take_batch(builder), nbytes)
                    record, offset = stream.record, stream.offset
                    if watched:
                        self._progress.advance(num_rows, nbytes, 0)

    def rows(
        self,
        features: Sequence[str] | None = None,
        *,
        shards: Sequence[int] | None = None,
        chosen: Collection[int] | None = None,
    ) -> Iterator[tuple[RecordNumber, Row]]:
        """Yield every row with its position, in file order; `chosen` limits them to record numbers of the dataset."""
        starts = [0, *accumulate(self.counts)]
        wanted = None if chosen is None else frozenset(chosen)
        decoder = self.new_decoder(features)
        most = max(1, min(_MAX_ROWS, _ROWS_NBYTES // self._mean_nbytes))
        for batch in self.batches(features, shards=shards, max_rows=most):
            number, record = batch.first
            start = starts[number] + record
            if wanted is not None and wanted.isdisjoint(range(start, start + batch.num_rows)):
                continue
            for index, row in enumerate(decoder.rows(batch.columns, batch.num_rows)):
                if wanted is None or start + index in wanted:
                    yield RecordNumber(number, record + index), row

    def records(self, *, shards: Sequence[int] | None = None) -> Iterator[bytes]:
        """Yield the payload of every record, in file order."""
        for number in range(len(self.shards)) if shards is None else shards:
            for records in read_records(self.shards[number], Policy()):
                yield from records
                self._progress.advance(len(records), sum(map(len, records)), 0)

    def new_decoder(self, features: Sequence[str] | None) -> Decoder:
        """Return a decoder for these features, None for all."""
        return Decoder(self.schema if features is None else self.schema.select(features))

    def begin(self) -> None:
        """Report that writing starts."""
        self._progress.begin(self.num_records, self.nbytes)

    def advance(self, num_items: int, nbytes: int, num_bad: int) -> None:
        """Report records written by workers."""
        self._progress.advance(num_items, nbytes, num_bad)

    def end(self) -> None:
        """Report that everything is written."""
        self._progress.end()

    def locate(self, place: RecordNumber, cause: str) -> Finding:
        """Return a finding at a record, with the offset of its frame."""
        index = self._frames.get(place.shard)
        if index is None:
            shard = self.shards[place.shard]
            index = load_frames(shard, Policy()) or scan_frames_once(shard, Policy())
            self._frames = {place.shard: index}
        return Finding(self.paths[place.shard], place.record, int(index.offsets[place.record]), cause)

    def _open(self, path: str) -> Shard:
        reader = open_reader(path)
        if reader.size is not None:
            return Shard(reader)
        # An export reads its input twice, so a pipe is copied to disk first.
        if self._scratch is None:
            self._scratch = make_scratch("tfrkit-export")
        spooled = os.path.join(self._scratch.path, f"{len(self.shards)}.tfrecord")
        with NamedFile(spooled, "wb", shown=spooled) as raw, io.BufferedWriter(raw) as file:
            while piece := reader.read(_SPOOL_NBYTES):
                file.write(piece)
        reader.close()
        shard = Shard.open(spooled)
        shard.name = path  # messages show the address that the user typed
        return shard

    def _survey(self) -> SurveyCounts:
        surveyed = Surveyed()
        for shard in self.shards:
            self._take(*_survey_shard(shard, surveyed))
        return self._require_records(surveyed.counts)

    def _survey_on(self, workers: Workers) -> SurveyCounts:
        counts = Surveyed().counts
        for found in workers.run([SurveyTask(path) for path in self.paths], lambda *_: None):
            self._take(found.num_records, found.nbytes)
            counts.merge(found.counts)
        return self._require_records(counts)

    def _take(self, num_records: int, nbytes: int) -> None:
        self.counts.append(num_records)
        self._sizes.append(nbytes)

    def _require_records(self, counts: SurveyCounts) -> SurveyCounts:
        if not self.num_records:
            raise StorageError("expected at least one record, got none", shard=self.paths[0])
        return counts


@dataclass(frozen=True)
class SurveyTask:
    """Counts the features of one shard."""

    path: str

    def run(self, tick: Tick) -> ShardSurvey:
        """Return the counts."""
        surveyed = Surveyed()
        with contextlib.closing(Shard.open(self.path)) as shard:
            num_records, nbytes = _survey_shard(shard, surveyed)
        return ShardSurvey(surveyed.counts, num_records, nbytes)


def _survey_shard(shard: Shard, surveyed: Surveyed) -> tuple[int, int]:
    """Add the records of a shard; return their number and the size of their frames."""
    stream = FrameStream(shard, Policy())
    try:
        while stream.take(surveyed.survey.add_frames):
            pass
    except ContainerError as error:
        error.hint = advise_repair(shard.name, can_skip=False)
        raise
    return stream.record, stream.offset
