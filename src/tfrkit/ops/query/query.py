"""SQL over TFRecord files: DuckDB runs the query, on columns decoded on demand."""

from __future__ import annotations

import contextlib
import io
import os
import warnings
import weakref
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tfrkit._familiar import OF_ANSWER, explain_attribute
from tfrkit._threads import choose_threads
from tfrkit._types import Infer, Row, Verify
from tfrkit.container.codecs import CompressionWord
from tfrkit.engines.part import Part
from tfrkit.errors import Hint, QueryError, SchemaError, Step, StorageError, TfrkitError
from tfrkit.features.schema import describe_missing
from tfrkit.feeds.arrow_layout import NOT_TEXT
from tfrkit.ops.query.engine import defer_signals, get_engine, import_duckdb
from tfrkit.ops.query.errors import QueryPart, SharedName, quote_name, read_facts, refuse_shared, to_query_error
from tfrkit.ops.query.limits import QueryWatch, parse_memory, parse_timeout
from tfrkit.ops.query.places import NUMBER_COLUMN, PLACE_COLUMNS
from tfrkit.ops.query.scan import QueryPolicy, QueryTable, TableScan, show_as
from tfrkit.ops.query.text import ParsedQuery, fold_name, hide_places, parse_query
from tfrkit.ops.query.values import cell_to_json, name_uniquely
from tfrkit.passes.shard_tasks import OnEngine, VerbEngine, choose_cluster, connect_if, refuse_pipes
from tfrkit.storage.local import NamedFile
from tfrkit.storage.resolve import open_reader, show_address
from tfrkit.storage.temporaries import make_scratch

if TYPE_CHECKING:
    from tfrkit.ops.query.save import Saved

T = TypeVar("T")

_FETCHED_ROWS = 1024
_FETCHED_BLOBS = 32  # rows per fetch, if they may hold images
_SHOWN_COLUMNS = 8


def sql(
    query: str,
    *,
    tables: Mapping[str, Any] | None = None,
    binary: Collection[str] = (),
    infer: Infer = "sample",
    verify: Verify = "all",
    jobs: int | None = None,
    timeout: float | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    engine: VerbEngine = "local",
    engine_address: str | None = None,
) -> Answer:
    """Run a SELECT, in DuckDB's SQL, over TFRecord files that FROM names by path or glob, in quotes.

    Only the features that the query names are decoded. Nothing is read before rows are requested, and each pass runs
    the query again. The query cannot reach any other file, nor the network.

    A feature is a column: text is VARCHAR, other bytes are BLOB, several values are a list. A SequenceExample is two
    structs, `context` and `feature_lists`. Records that are not Examples have the column `record`. `_record` is the
    number of a record in its table, from 0, `_file` its file, `_split` its split; none of them is part of `*`. If class
    names are known, `label_name` is the name of the class in `label`.

    Args:
        query: One SELECT. Names with characters other than letters, digits and _ go in double quotes: `"image/height"`.
        tables: Names to use in FROM: addresses of TFRecord files, or objects that Arrow can read (a Dataset, a pandas,
            polars or pyarrow table).
        binary: Text features to return as bytes, if some of their values are not UTF-8.
        infer: The records from which columns are inferred: "sample" uses all of a small table and some thousands of a
            large one, "all" uses all. A column that the sample lacks is searched in all records before it is an error.
        verify: "all" compares both checksums of every frame, "lengths" only those of lengths, "none" neither.
        jobs: Decoding threads; default one per core.
        timeout: Seconds that one run of the query may take before it raises `QueryError`; default no limit.
        memory: Memory limit of DuckDB, in bytes or as "2GB"; default half of what this process may use. Data that does
            not fit is spilled to the folder for temporary files (TMPDIR), up to half of the free space there.
        threads: Deprecated name of `jobs`.
        engine: With "ray" or "dask", workers of a cluster read the files, each a shard at a time; see `build`. They
            compute count, sum, min, max and avg of one table, grouped or not, and apply its WHERE. Of any other query
            they return the columns that it names, up to 256 MB; more is refused.
        engine_address: Address of the cluster.

    Example:
        >>> answer = tfr.sql("select label, count(*) n from 'train-*' group by label order by n desc")
        >>> list(answer)
        [{'label': 3, 'n': 7321}, {'label': 1, 'n': 6802}]
    """
    if threads is not None:
        warnings.warn("threads is deprecated, use jobs", DeprecationWarning, stacklevel=2)
        jobs = threads if jobs is None else jobs
    if not isinstance(query, str):
        raise TypeError(f"query expected a str, got {type(query).__name__}")
    if isinstance(binary, str):
        raise TypeError(f"binary expected a list of names, got the string {binary!r}")
    if infer not in ("sample", "all"):
        raise ValueError(f"infer expected 'sample' or 'all', got {infer!r}")
    session = QuerySession(
        query,
        tables or {},
        binary=binary,
        infer=infer,
        verify=verify,
        threads=choose_threads(jobs),
        timeout=parse_timeout(timeout),
        memory=None if memory is None else parse_memory(memory),
        cluster=choose_cluster(engine, engine_address, jobs),
    )
    return Answer(session)


class Answer:
    """The result of a query: rows to iterate over, an Arrow stream, or a file.

    `pyarrow.table(answer)` and `polars.DataFrame(answer)` accept it directly. One pass at a time.
    """

    def __init__(self, session: QuerySession) -> None:
        self._session = session
        described = session.describe()
        self._columns = name_uniquely([name for name, _ in described])
        self._types = [kind for _, kind in described]

    def __repr__(self) -> str:
        shown = [f"{name} {kind}" for name, kind in zip(self._columns[:_SHOWN_COLUMNS], self._types, strict=False)]
        if len(self._columns) > _SHOWN_COLUMNS:
            shown.append(f"… {len(self._columns)} columns")
        return f"Answer({', '.join(shown)})"

    @property
    def columns(self) -> list[str]:
        """Names of the columns; duplicates get a number."""
        return list(self._columns)

    @property
    def types(self) -> list[str]:
        """DuckDB types of the columns."""
        return list(self._types)

    def rows(self) -> Iterator[Row]:
        """Run the query and yield its rows as dicts. A missing value is None."""
        names = self._columns
        for values in self.tuples():
            yield dict(zip(names, values, strict=True))

    __iter__ = rows

    def tuples(self) -> Iterator[tuple[Any, ...]]:
        """Run the query and yield its rows as tuples."""
        has_blobs = any("BLOB" in kind for kind in self._types)
        yield from self._session.run(_FETCHED_BLOBS if has_blobs else _FETCHED_ROWS)

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: columns (name, type), rows."""
        return {"columns": self.describe(), "rows": list(self.json_rows())}

    def describe(self) -> list[dict[str, str]]:
        """List the name and type of each column."""
        return [{"name": name, "type": kind} for name, kind in zip(self._columns, self._types, strict=True)]

    def json_rows(self) -> Iterator[dict[str, Any]]:
        """Run the query and yield its rows as JSON values, in the form of `tfr head`."""
        for row in self.rows():
            yield {name: cell_to_json(value) for name, value in row.items()}

    def save(
        self, path: str | os.PathLike[str], *, force: bool = False, compression: CompressionWord | None = None
    ) -> Saved:
        """Write the rows to a .parquet, .csv, .jsonl or TFRecord file, which appears whole or not at all.

        The path may be an address (s3://bucket/cats.parquet).

        For a TFRecord file, `select * from` one table copies records byte for byte; any other query writes new Examples
        of its columns, without NULL values.
        """
        from tfrkit.ops.query.save import save_answer

        return save_answer(self, self._session, show_address(path), force=force, compression=compression)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._session.open_stream()

    def close(self) -> None:
        """Close open files."""
        self._session.close()

    if not TYPE_CHECKING:  # a type checker reports a wrong name by itself

        def __getattr__(self, name: str) -> Any:
            raise explain_attribute(self, name, OF_ANSWER)

    def __enter__(self) -> Answer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class QuerySession:
    """A connection to DuckDB with the tables of one query."""

    def __init__(
        self,
        text: str,
        given: Mapping[str, Any],
        *,
        threads: int,
        binary: Collection[str] = (),
        infer: Infer = "sample",
        verify: Verify = "all",
        timeout: float | None = None,
        memory: int | None = None,
        parts: Sequence[QueryPart] = (),
        policy: QueryPolicy | None = None,
        cluster: OnEngine | None = None,
    ) -> None:
        self._parts = parts
        self._cluster = cluster
        self._verify: Verify = verify
        self.is_everything = False
        self.described: list[tuple[str, str]] = []
        self._policy = policy
        self.duckdb = import_duckdb()
        self._threads = threads
        self._watch = QueryWatch(timeout)
        self._engine = get_engine(self.duckdb, memory)
        self.connection = self._engine.connect()
        self._text = text
        with defer_signals():
            self.parsed = parse_query(self.connection, text)
        self.tables: dict[str, QueryTable] = {}
        self._objects: dict[str, Any] = {}
        self._scans: list[TableScan] = []
        self._relation: Any = None
        self._infer = infer
        self._options = (text, sorted(binary), infer, verify)
        self._before_output: Callable[[], None] | None = None
        self._open_tables(given, binary, verify)
        places = (*PLACE_COLUMNS, NUMBER_COLUMN)
        self._hidden = [name for name in places if not any(table.has_column(name) for table in self.tables.values())]
        self._text = hide_places(self.connection, self.parsed, self._hidden)

    @property
    def files(self) -> list[str]:
        """Every file the query reads."""
        return [path for table in self.tables.values() for path in table.files]

    @property
    def memory(self) -> int:
        """The memory limit of DuckDB, in bytes."""
        return self._engine.memory

    @property
    def scans(self) -> list[TableScan]:
        """The streams of the tables, from the last call of `prepare`."""
        return list(self._scans)

    def describe(self) -> list[tuple[str, str]]:
        """List (name, type) of each column, without running the query."""
        self._watch.begin()
        try:
            relation = self._bind()
        except QueryError as error:
            # A column that the sample lacks may be in a record outside the sample.
            if error.missing_column is None or not self._look_at_all():
                raise
            relation = self._bind()
        self.described = list(zip(relation.columns, map(str, relation.types), strict=True))
        return list(self.described)

    def run(self, num_fetched: int) -> Iterator[tuple[Any, ...]]:
        """Run the query and yield its rows, fetched from DuckDB `num_fetched` at a time."""
        is_done = False
        self._watch.begin()
        with self.own_errors():
            self._bind()
            text = self._gather(self.parsed, self._text)
            result = self.call(lambda: self.connection.execute(text))
            try:
                while rows := self.call(lambda: result.fetchmany(num_fetched)):
                    yield from rows
                is_done = True
            finally:
                if not is_done:
                    # A result that was not read to its end would block the connection.
                    with contextlib.suppress(self.duckdb.Error):
                        self.connection.abort()

    def open_stream(self) -> object:
        """Return the result of the query as an Arrow stream capsule."""
        self._watch.begin()
        with self.own_errors():
            relation = self._bind()
            if self._cluster is not None:
                relation = self._make_relation(self._gather(self.parsed, self._text))
            self._watch.start_timer(self.connection)
            stream: object = self.call(relation.__arrow_c_stream__)
            return stream

    def call(self, function: Callable[[], T], *others: Any) -> T:
        """Call into DuckDB on this connection and `others`; Ctrl-C and the timeout interrupt the call."""
        return self._watch.call(function, [self.connection, *others])

    def fetch_numbers(self, parsed: ParsedQuery) -> Any:
        """Run another query over the same tables; return its only column as an array of integers."""
        with self.own_errors(parsed.text):
            self._watch.begin()
            self.prepare(parsed)
            text = hide_places(self.connection, parsed, self._hidden)
            if self._cluster is not None:
                self.described = list(zip(("number",), map(str, self._make_relation(text).types), strict=True))
            text = self._gather(parsed, text)
            (column,) = self.call(lambda: self.connection.execute(text).fetchnumpy()).values()
        return column

    def _gather(self, parsed: ParsedQuery, text: str) -> str:
        """Let the workers of a cluster read the tables; return the query that is left for this process."""
        if self._cluster is not None and self.tables:
            from tfrkit.ops.query.on_workers import gather_tables

            with self._cluster.connect() as workers:
                self._relation = None  # the tables are other ones from now on
                try:
                    text = gather_tables(self, workers, parsed, text, self._verify)
                except SchemaError as error:
                    raise _mind_text(error) from None
        if self._before_output is not None:
            self._before_output()
        return text

    @contextlib.contextmanager
    def make_output(self, path: str, how: object, require_free: Callable[[bool], None]) -> Iterator[None]:
        """Prepare one run of the query that writes its rows to `path`; `how` is the compression.

        `require_free(force)` is called before the first row: at once, or, if several parts share the work, by the part
        that has all results. If several parts have them at the same time, only one gets the rows, and the others raise
        `OtherPartsError`.
        """
        with contextlib.ExitStack() as stack:
            workers = stack.enter_context(connect_if(self._cluster if self._is_part else None))
            if workers is None:
                require_free(False)
                yield
                return
            workers.plan_output((self._options, self.described, path, how), reads=self.files)

            def begin() -> None:
                ending = stack.enter_context(workers.finish())
                require_free(ending.is_repeated)
                ending.begin()

            self._before_output = begin
            try:
                yield
            finally:
                self._before_output = None

    @property
    def _is_part(self) -> bool:
        return self._cluster is not None and isinstance(self._cluster.name, Part)

    def prepare(self, parsed: ParsedQuery, *, everything: bool = False) -> None:
        """Register the tables of a query under their names, with the columns that the query may use."""
        self._scans, self._relation, self.is_everything = [], None, everything
        for number, (name, table) in enumerate(self.tables.items()):
            scan = table.scan(parsed, everything=everything, threads=self._threads)
            self._scans.append(scan)
            table.show(self.connection, name, f"tfrkit_scan_{number}", scan, parsed)
        for number, (name, content) in enumerate(self._objects.items()):
            show_as(self.connection, name, f"tfrkit_object_{number}", content)

    @contextlib.contextmanager
    def own_errors(self, text: str | None = None) -> Iterator[None]:
        """Raise DuckDB's errors as `QueryError`, or as the original error if it came from one of our streams."""
        try:
            yield
        except self.duckdb.Error as error:
            raise self._explain(error, self.parsed.text if text is None else text) from None

    def close(self) -> None:
        """Close the connection and the tables."""
        self._watch.stop_timer()
        try:
            self.connection.close()
        except self.duckdb.Error:  # busy: a signal came while the thread of a query was being started
            self.connection.interrupt()
        for table in self.tables.values():
            table.shard_set.close()

    def _look_at_all(self) -> bool:
        """Find the columns of each table from all its records; False if that has been done for all tables."""
        return any(list(map(QueryTable.look_at_all, self.tables.values())))

    def _open_tables(self, given: Mapping[str, Any], binary: Collection[str], verify: Verify) -> None:
        folded = {fold_name(name): content for name, content in given.items()}
        if len(folded) != len(given):
            raise ValueError("names of tables expected to differ by more than case")
        left = set(binary)
        for name in self.parsed.tables:
            content = folded.get(fold_name(name), name)
            if hasattr(content, "__arrow_c_stream__"):
                self._objects[name] = content
                continue
            shown = None
            if content == "-":
                if self._cluster is not None:
                    refuse_pipes([content])
                content, shown = self._spool_stdin(), content
            try:
                self.tables[name] = QueryTable(
                    content, verify=verify, infer=self._infer, policy=self._policy, shown=shown
                )
            except StorageError as error:
                if not name.isidentifier() or os.path.exists(name):
                    raise
                in_python = Step(f'a Dataset or DataFrame of Python: tables={{"{name}": {name}}}', in_python=True)
                raise error.replace(hint=Hint(*filter(None, [error.hint]), in_python)) from None
            left -= self.tables[name].take_as_bytes(left)
        if left:
            features = [feature for table in self.tables.values() for feature in table.schema.names]
            raise QueryError(describe_missing(min(left), features))

    def _spool_stdin(self) -> str:
        """Copy stdin to a temporary file, because a query may read a table several times; return its path."""
        scratch = make_scratch("tfrkit-sql")
        weakref.finalize(self, scratch.remove)
        path = os.path.join(scratch.path, "stdin.tfrecord")
        reader = open_reader("-")
        with NamedFile(path, "wb", shown=path) as raw, io.BufferedWriter(raw) as file:
            while piece := reader.read(1 << 20):
                file.write(piece)
        return path

    def _bind(self) -> Any:
        """Bind the query to the columns it names or, if that fails, to all columns."""
        if self._relation is not None:
            return self._relation
        loose = self._find_shared(self.parsed.loose_names)
        if loose is not None:
            raise refuse_shared(loose)
        try:
            self.prepare(self.parsed)
            relation = self._make_relation()
        except self.duckdb.Error:
            with self.own_errors():
                self.prepare(self.parsed, everything=True)
                try:
                    relation = self._make_relation()
                except self.duckdb.Error:
                    # Unlike `sql`, `execute` reports the position of the error.
                    self.call(lambda: self.connection.execute(self.parsed.text))
                    self.connection.abort()
                    with self.own_errors(self._text):
                        self.call(lambda: self.connection.execute(self._text))
                    raise
        self._relation = relation
        return relation

    def _make_relation(self, text: str | None = None) -> Any:
        def make() -> Any:
            relation = self.connection.sql(self._text if text is None else text)
            _ = relation.types
            return relation

        return self.call(make)

    def _explain(self, error: Exception, text: str) -> TfrkitError | Exception:
        if self._watch.is_over:
            return QueryError(
                f"the query was stopped, it took longer than {self._watch.timeout:g} seconds",
                hint=Hint(Step("give it more time: {timeout}", timeout=...)),
            )
        for scan in self._scans:
            if scan.error is not None:
                # Drop it: its traceback refers to this session, in a cycle that the garbage collector cannot see.
                found, scan.error = scan.error, None
                return _mind_text(found)
        facts = read_facts(error)
        if isinstance(error, self.duckdb.OutOfMemoryException):
            detail = str(facts["exception_message"]).split("\n")[0]
            return QueryError(
                f"the query needs more memory than it may use, {self._engine.memory / 1e6:,.0f} MB and "
                f"{self._engine.spill / 1e6:,.0f} MB of temporary files, {detail}",
                hint=Hint(Step("allow more: {memory}", memory=...)),
            )
        if text != self.parsed.text or (self._text != text and self._relation is not None):
            facts.pop("position", None)  # in a text that the user did not write
        shared = None
        if isinstance(error, self.duckdb.BinderException):
            missing = facts.get("name") if facts.get("error_subtype") == "COLUMN_NOT_FOUND" else None
            shared = self._find_shared(self.parsed.names if missing is None else {fold_name(str(missing))})
        columns = [column for table in self.tables.values() for column in table.columns]
        columns += [(name, name) for name in PLACE_COLUMNS if columns]
        named = [column.name for table in self.tables.values() for column in table.class_columns]
        hint = None
        # DuckDB reports a type ("Conversion", "Binder") and no code: only the message says which error it is.
        message = str(facts["exception_message"])
        if message.startswith("Could not convert string") and named:
            hint = f"names of classes are in {', '.join(map(quote_name, named))}"
        elif "BLOB" in message:
            hint = "bytes that are text: decode(column)"
        elif "file system operations are disabled" in message:
            hint = "tables are TFRecord files: from 'train-*.tfrecord'"
        return to_query_error(facts, text, columns=columns, hint=hint, parts=self._parts, shared=shared)

    def _find_shared(self, names: Collection[str]) -> SharedName | None:
        found = (table.find_shared(names) for table in self.tables.values())
        return next(filter(None, found), None)


def _mind_text(error: Exception) -> Exception:
    if isinstance(error, SchemaError) and error.fault == NOT_TEXT:
        error.hint = Hint(Step("take it as bytes: {binary}", binary=[...]))
    return error
