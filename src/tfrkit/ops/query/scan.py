"""Tables of a query: TFRecord files as Arrow streams of the requested columns only."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tfrkit import _native
from tfrkit._types import Infer, Int64Array, Verify
from tfrkit.batches.engine import read_stream
from tfrkit.batches.shard_set import ShardSet
from tfrkit.batches.stream import SizedBatch
from tfrkit.codec.columns import BytesColumn
from tfrkit.codec.decode import Batch, Decoder
from tfrkit.container.records import FrameStream, Policy, read_records
from tfrkit.container.shards import Shard, find_shards
from tfrkit.errors import QueryError
from tfrkit.features.arrow_schema import ArrowField, escape_name
from tfrkit.features.schema import PARTS, Schema, map_specs, show_name
from tfrkit.features.spec import Spec
from tfrkit.feeds.arrow import ArrowStream
from tfrkit.feeds.arrow_layout import Node, lay_out_columns
from tfrkit.ops.query.engine import defer_signals
from tfrkit.ops.query.errors import SharedName, quote_name
from tfrkit.ops.query.places import NUMBER_COLUMN, PLACE_COLUMNS, RECORD_COLUMN, ShardPlaces, place_fields
from tfrkit.ops.query.text import ParsedQuery, fold_name
from tfrkit.passes.walk import walk_frames
from tfrkit.storage.resolve import Address

RAW_COLUMN = "record"
"""Name of the one column of records that are not Examples."""

_EMPTY_COLUMN = "_empty"  # of the feature '', for which DuckDB would make a name up
# Rows of a batch: enough that the overhead per batch is negligible, few enough that batches of images fit in memory.
_MAX_ROWS = 1 << 16
_BATCH_NBYTES = 8 << 20
_COUNTED_ROWS = 1 << 17
# Records sampled to estimate their size, and to decide whether raw records are text.
_SAMPLED_RECORDS = 1000
_SAMPLED_SHARDS = 4


@dataclass(frozen=True)
class ClassColumn:
    """A column of class names made from a column of class ids."""

    name: str
    ids: str
    classes: tuple[str, ...]


@dataclass(frozen=True)
class KnownTable:
    """What a worker of a cluster is given to know of a whole table, of which it reads one file.

    `first_record` is the number of the file's first record in the table, `split` the split of the file.
    """

    schema: Schema
    is_raw: bool
    class_columns: tuple[ClassColumn, ...]
    first_record: int
    split: str | None


class QueryPolicy(Policy):
    """What a query does on damage, and how it numbers the rows that are left."""

    def number_rows(self, first_row: int, num_rows: int) -> Int64Array:
        """Return the record numbers of the last rows of this pass."""
        return np.arange(first_row, first_row + num_rows, dtype=np.int64)

    def numbered(self, shard_set: ShardSet) -> ShardSet:
        """Return the shards whose records have these numbers, for a query that reads `shard_set`."""
        return shard_set


class QueryTable:
    """One table of a query: its files, and the names of its columns."""

    def __init__(
        self,
        address: Address | Iterable[Address],
        *,
        verify: Verify = "all",
        infer: Infer = "sample",
        policy: QueryPolicy | None = None,
        known: KnownTable | None = None,
        shown: str | None = None,
    ) -> None:
        """Open the files. `shown` is the name of a single file in results, if that is not its path."""
        shards = Shard.open_all(find_shards(address, incomplete="warn" if known is None else "ignore"))
        self.policy = QueryPolicy(verify) if policy is None else policy
        self.shard_set = ShardSet(shards, self.policy, infer=infer)
        self._binary: set[str] = set()
        self._batch_size: int | None = None
        self.first_record = 0
        self._known = known
        self._shown = shown
        if known is None:
            self._name_features()
        else:
            self.schema, self.is_raw, self.first_record = known.schema, known.is_raw, known.first_record
            self._name_columns()
            self.class_columns = list(known.class_columns)

    def know(self, first_record: int, split: str | None) -> KnownTable:
        """Return what another process must know to read a file of this table."""
        return KnownTable(self.schema, self.is_raw, tuple(self.class_columns), first_record, split)

    def find_places(self, policy: QueryPolicy) -> ShardPlaces:
        """Return files and splits by the number of a record. Counts the records if there are several files."""
        if self._known is not None:
            return ShardPlaces(self.files, [self._known.split], [0, 0])
        shard_set = policy.numbered(self.shard_set)
        files = shard_set.files if self._shown is None else [self._shown]
        starts = shard_set.records.find_starts() if len(files) > 1 else [0, 0]
        return ShardPlaces(files, shard_set.sidecars.split_names, starts)

    def take_as_bytes(self, features: Collection[str]) -> set[str]:
        """Treat these text features as bytes; return the names of those that this table has."""
        self._binary = {name for name in features if name in self.schema}
        if self._binary:
            self._name_features()
        return self._binary

    def look_at_all(self) -> bool:
        """Find the columns from all records; False if that has been done already."""
        if not self.shard_set.look_at_all():
            return False
        self._name_features()
        return True

    def _name_features(self) -> None:
        found = self.shard_set.schema
        self.is_raw = found.kind == "raw"
        if self.is_raw:
            logical = "text" if _are_texts(self.shard_set.shards) else "bytes"
            found = Schema({RAW_COLUMN: Spec("bytes", logical=logical)})  # type: ignore[arg-type]
        self.schema = _set_binary(found, self._binary) if self._binary else found
        self._name_columns()
        self.class_columns = self._find_class_columns()
        """Available columns of class names, `label_name` for `label`."""

    @property
    def files(self) -> list[str]:
        return self.shard_set.files

    @property
    def columns(self) -> list[tuple[str, str]]:
        """(name, reference in a query) of each column; for a SequenceExample, the reference includes the struct."""
        named = [(name, f"{part}." * bool(part) + quote_name(name)) for (part, _), name in self._names.items()]
        return named + [(column.name, quote_name(column.name)) for column in self.class_columns]

    def has_column(self, name: str) -> bool:
        """Whether there is a feature of this name."""
        return self.schema.kind != "sequence_example" and fold_name(name) in self._folded

    def find_shared(self, names: Collection[str]) -> SharedName | None:
        """Return the first of these folded names that several features share, of which none has it as its column."""
        for (part, name), features in self._groups.items():
            if len(features) > 1 and name in names:
                columns = [f"{part}." * bool(part) + quote_name(self._names[part, one]) for one in features]
                return SharedName(name, features, columns)
        return None

    def refuse_column(self, name: str) -> None:
        """Raise `QueryError` if a feature has this name, which is to number the records."""
        if self.has_column(name):
            raise QueryError(f"features expected other names than {name}, which numbers the records")

    def _name_columns(self) -> None:
        self._groups = _group_features(self.schema)
        self._names = name_columns(self.schema)
        self._folded = {name for _, name in self._groups} | set(map(fold_name, self._names.values()))

    def _find_class_columns(self) -> list[ClassColumn]:
        if self.schema.kind != "example":
            return []
        specs = {
            name: spec
            for name, spec in self.schema.features.items()
            if spec.kind == "int64" and spec.shape == () and spec.logical == "class_label" and spec.encoding == "list"
        }
        unnamed = [name for name, spec in specs.items() if spec.classes is None]
        beside = self.shard_set.sidecars.class_file if len(unnamed) == 1 else None
        columns = []
        for name, spec in specs.items():
            classes = spec.classes or (beside.spec_names() if beside is not None else None)
            ids = self._names["", name]
            if classes and fold_name(f"{ids}_name") not in self._folded:
                columns.append(ClassColumn(f"{ids}_name", ids, classes))
        return columns

    def scan(self, parsed: ParsedQuery, *, everything: bool, threads: int) -> TableScan:
        """Create a stream of the columns that a query may use; with `everything`, of all columns."""
        wanted: list[tuple[str, str]] = []
        class_ids = {fold_name(column.ids) for column in self.class_columns if parsed.names_column(column.name)}
        for (part, feature), name in self._names.items():
            folded = fold_name(name)
            is_named = folded in parsed.names or folded in class_ids
            is_used = parsed.wants_all or part in parsed.whole_structs or is_named
            specs = self.schema.feature_lists if part == PARTS[1] else self.schema.features
            kinds = specs[feature].seen or ()
            if is_used and len(kinds) > 1:
                raise QueryError(
                    f"column {show_name(feature)} expected one kind, got {' and '.join(kinds)} in different records",
                    shard=self.files[0],
                    hint=f"leave {show_name(feature)} out: name the other columns",
                )
            if is_used or (everything and len(kinds) <= 1):
                wanted.append((part, feature))
        known = (*PLACE_COLUMNS, NUMBER_COLUMN)
        places = [name for name in known if parsed.names_column(name) and not self.has_column(name)]
        if not wanted and not places:
            places = [NUMBER_COLUMN]  # Arrow has no rows without columns
        # `*` means every feature, including one that none of the sampled records has.
        is_whole = parsed.wants_all or bool(parsed.whole_structs)
        return TableScan(self, wanted, is_whole=is_whole, places=places, threads=threads)

    def show(self, connection: Any, name: str, hidden: str, scan: TableScan, parsed: ParsedQuery) -> None:
        """Register a scan under the name of the table, with the columns of class names that the query names."""
        extra = [_name_classes(column) for column in self.class_columns if parsed.names_column(column.name)]
        show_as(connection, name, hidden, scan, extra)

    def name_of(self, part: str, feature: str) -> str:
        """Return the column name of a feature."""
        return self._names[part, feature]

    def read(self, schema: Schema, threads: int, policy: Policy, *, is_whole: bool = False) -> Iterator[SizedBatch]:
        """Read the features of `schema` in file order; with `is_whole`, a feature unknown to the table is an error."""
        if self.is_raw:
            for shard in self.shard_set.shards:
                for records in read_records(shard, policy):
                    yield {RAW_COLUMN: BytesColumn.from_values(records)}, len(records)
            return
        decoder = Decoder(schema, known=self.schema if is_whole else None)
        if self._batch_size is None:
            self._batch_size = max(1, min(_MAX_ROWS, _BATCH_NBYTES // max(1, _estimate_nbytes(self.shard_set.shards))))
        yield from read_stream(self.shard_set, decoder, policy, batch_size=self._batch_size, threads=threads)


def name_columns(schema: Schema) -> dict[tuple[str, str], str]:
    """Map (struct or "", feature) to its column. All of those that DuckDB does not distinguish get a number."""
    groups = _group_features(schema)
    names: dict[tuple[str, str], str] = {}
    taken = set(groups)
    for (part, _), features in groups.items():
        number = 0
        for feature in features:
            name = made = _write_name(feature)
            while len(features) > 1 and (part, fold_name(name)) in taken:
                number += 1
                name = f"{made}_{number}"
            taken.add((part, fold_name(name)))
            names[part, feature] = name
    return {key: names[key] for key in _list_features(schema)}


def _group_features(schema: Schema) -> dict[tuple[str, str], list[str]]:
    """Map (struct or "", folded name) to its features, sorted: a number does not depend on the order of a schema."""
    groups: dict[tuple[str, str], list[str]] = {}
    for part, feature in _list_features(schema):
        groups.setdefault((part, fold_name(_write_name(feature))), []).append(feature)
    return {key: sorted(features) for key, features in groups.items()}


def _list_features(schema: Schema) -> list[tuple[str, str]]:
    is_sequence = schema.kind == "sequence_example"
    plain = [(PARTS[0] if is_sequence else "", feature) for feature in schema.features]
    return plain + [(PARTS[1], feature) for feature in schema.feature_lists if is_sequence]


def _write_name(feature: str) -> str:
    return escape_name(feature) or _EMPTY_COLUMN


class TableScan(ArrowStream):
    """Some columns of a table as an Arrow stream. Keeps the first error, of which DuckDB reports only the text."""

    def __init__(
        self,
        table: QueryTable,
        wanted: Sequence[tuple[str, str]],
        *,
        is_whole: bool,
        places: Sequence[str],
        threads: int,
    ) -> None:
        schema = _select(table.schema, wanted)
        super().__init__(lambda: (batch for batch, _ in self._read(table.policy.for_one_pass())), schema)
        self._is_whole = is_whole
        self.error: Exception | None = None
        self.num_read = 0
        """Rows read so far."""
        self._table = table
        self._threads = threads
        self._plain = [] if schema.kind == "sequence_example" else self._rename(self._fields, "")
        self._structs = [
            replace(field, type=replace(field.type, fields=tuple(self._rename(field.type.fields, field.name))))
            for field in self._fields
            if schema.kind == "sequence_example"
        ]
        self._place_columns = list(places)
        self._places: ShardPlaces | None = None
        self._fields = [*self._plain, *self._structs, *place_fields(places)]

    @property
    def features(self) -> list[str]:
        """Names of the features that are decoded."""
        return list(self.schema.names)

    def _rename(self, fields: Sequence[ArrowField], part: str) -> list[ArrowField]:
        """Convert fields for DuckDB: rename them to column names, and widen float16, which DuckDB does not have."""
        return [
            replace(field, name=self._table.name_of(part, field.feature), type=field.type.widen_halves())
            for field in fields
        ]

    def _lay_out_batches(self) -> Iterator[Node]:
        first_row, policy = self._table.first_record, self._table.policy.for_one_pass()
        try:
            for batch, num_rows in self._read(policy):
                yield self._lay_out(batch, num_rows, first_row, policy)
                first_row += num_rows
                self.num_read = first_row - self._table.first_record
        except Exception as error:
            self.error = self.error or error
            raise

    def _read(self, policy: Policy) -> Iterator[SizedBatch]:
        if len(self.schema):
            yield from self._table.read(self.schema, self._threads, policy, is_whole=self._is_whole)
            return
        if policy.on_error == "skip":
            for part in walk_frames(self._table.shard_set.shards, policy, _native.check_frames, _COUNTED_ROWS):
                yield {}, part.num_frames
            return
        num_left = len(self._table.shard_set.records)
        while num_left:
            num_rows = min(num_left, _COUNTED_ROWS)
            yield {}, num_rows
            num_left -= num_rows

    def _lay_out(self, batch: Batch, num_rows: int, first_row: int, policy: QueryPolicy) -> Node:
        nodes = lay_out_columns(batch, self._plain, first_row) if self._plain else []
        for field in self._structs:
            columns = lay_out_columns(batch[field.name], field.type.fields, first_row)
            nodes.append((num_rows, 0, (None,), tuple(columns)))
        numbers = policy.number_rows(first_row, num_rows) if self._place_columns else None
        for column in self._place_columns:
            assert numbers is not None
            if column in (RECORD_COLUMN, NUMBER_COLUMN):
                nodes.append((num_rows, 0, (None, numbers), ()))
            else:
                self._places = self._places or self._table.find_places(policy)
                nodes.append(self._places.lay_out(column, numbers))
        return num_rows, 0, (None,), tuple(nodes)


def show_as(connection: Any, name: str, hidden: str, content: Any, extra: Sequence[str] = ()) -> None:
    """Register an Arrow stream as a view with all its columns and the expressions `extra`."""
    columns = ", ".join(["*", *extra])
    with defer_signals():
        connection.register(hidden, content)
        connection.execute(f"create or replace temp view {quote_table(name)} as select {columns} from {hidden}")


def quote_table(name: str) -> str:
    """Quote the name of a table, also one that needs no quotes."""
    return '"' + name.replace('"', '""') + '"'


def _name_classes(column: ClassColumn) -> str:
    """Return the SQL expression that converts class ids to names; NULL for an id without a name."""
    names = ", ".join("'" + name.replace("\0", "").replace("'", "''") + "'" for name in column.classes)
    ids = quote_table(column.ids)
    return f"case when {ids} >= 0 then ([{names}])[{ids} + 1] end as {quote_table(column.name)}"


def _select(schema: Schema, wanted: Sequence[tuple[str, str]]) -> Schema:
    """Select the features given as (struct, feature), in the order of the schema."""
    chosen = set(wanted)
    if schema.kind != "sequence_example":
        return schema.select([feature for _, feature in wanted])
    return Schema(
        {name: spec for name, spec in schema.features.items() if (PARTS[0], name) in chosen},
        feature_lists={name: spec for name, spec in schema.feature_lists.items() if (PARTS[1], name) in chosen},
        kind=schema.kind,
    )


def _set_binary(schema: Schema, binary: Collection[str]) -> Schema:
    """Return the schema with the text features in `binary` changed to bytes."""

    def change(specs: Any) -> dict[str, Spec]:
        texts = {name for name, spec in specs.items() if name in binary and spec.logical == "text"}
        return {name: spec.replace(logical="bytes") if name in texts else spec for name, spec in specs.items()}

    return map_specs(schema, change)


def _are_texts(shards: Sequence[Shard]) -> bool:
    """Are the first raw records valid UTF-8?"""
    num_records = 0
    for shard in shards[:_SAMPLED_SHARDS]:
        for records in read_records(shard, Policy("none", "skip")):
            column = BytesColumn.from_values(records)
            if _native.find_invalid_utf8(column.data, column.offsets) >= 0:
                return False
            num_records += len(records)
            if num_records >= _SAMPLED_RECORDS:
                return True
    return num_records > 0


def _estimate_nbytes(shards: Sequence[Shard]) -> int:
    """Estimate the bytes of a record after decompression, from the first records."""
    streams = [FrameStream(shard, Policy("none", "skip")) for shard in shards[:_SAMPLED_SHARDS]]
    num_frames = 0
    for stream in streams:
        stretch = stream.take(_native.check_frames, _SAMPLED_RECORDS)
        num_frames += 0 if stretch is None else stretch.num_frames
    return sum(stream.offset for stream in streams) // max(1, num_frames)
