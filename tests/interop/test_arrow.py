"""pyarrow and DuckDB read our stream: values equal our rows, nothing leaks, damage is reported."""

from __future__ import annotations

import gc
import os
import random
import resource
import threading
from pathlib import Path
from typing import Any

import arrow_rows
import duckdb
import numpy as np
import oracle
import pyarrow as pa
import pytest
from test_corpus_values import READABLE, label_of

import tfrkit as tfr
from tfrkit import Spec
from tfrkit.feeds.arrow import ArrowStream, to_arrow
from tfrkit.testing.corruption import flip

EXAMPLES = [entry for entry in READABLE if entry["payload"] in ("Example", "SequenceExample")]


def read_table(stream: Any) -> pa.Table:
    """Import a whole stream and let pyarrow validate every buffer."""
    table = pa.table(stream)
    table.validate(full=True)
    return table


def assert_rows_equal(ds: tfr.Dataset, *, size: int = 7) -> pa.Table:
    stream = arrow_rows.stream_of(ds, size)
    table = read_table(stream)
    assert table.schema.equals(arrow_rows.build_schema(ds.schema), check_metadata=True)
    rows = [arrow_rows.plain(row) for row in table.to_pylist()]
    assert rows == arrow_rows.expected_rows(ds)
    assert all(
        column.null_count == 0 or field.nullable for column, field in zip(table.columns, table.schema, strict=True)
    )
    return table


# -- values ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_pyarrow_reads_every_kind_of_column(tmp_path: Path, seed: int, size: int) -> None:
    ds = arrow_rows.write_examples(tmp_path / "a.tfrecord", random.Random(seed), 60, arrow_rows.all_specs())
    table = assert_rows_equal(ds, size=size)
    assert table.num_rows == 60


def test_pyarrow_reads_sequence_examples(tmp_path: Path, seed: int) -> None:
    ds = arrow_rows.write_sequences(tmp_path / "a.tfrecord", random.Random(seed), 40)
    table = assert_rows_equal(ds)
    assert table.column_names == ["context", "feature_lists"]


@pytest.mark.parametrize("make", [oracle.random_examples, oracle.random_sequences])
def test_pyarrow_reads_what_tensorflow_wrote(tmp_path: Path, seed: int, make: Any) -> None:
    rng = random.Random(seed)
    for number in range(10):
        path = tmp_path / f"{number}.tfrecord"
        oracle.write_with_tensorflow(path, make(rng, rng.choice((1, 2, 50))), "none")
        ds = tfr.open(path)
        if len(ds.schema) and ds.kind in ("example", "sequence_example"):
            assert_rows_equal(ds)


@pytest.mark.parametrize("entry", EXAMPLES, ids=label_of)
def test_pyarrow_reads_the_corpus(corpus: Path, entry: dict[str, Any], tmp_path: Path) -> None:
    # Away from its folder, whose features.json would give it a schema.
    path = tmp_path / "alone.tfrecord"
    path.write_bytes((corpus / entry["file"]).read_bytes())
    assert assert_rows_equal(tfr.open(path)).num_rows == entry["records"]


def test_pyarrow_reads_bytes_in_more_dimensions(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with tfr.Writer(path) as writer:
        for index in range(5):
            writer.write({"table": [b"%d" % i for i in range(6)], "pairs": [b"x"] * 2 * index or np.empty(0, object)})
    specs = {"table": Spec("bytes", (2, 3)), "pairs": Spec("bytes", (None, 2), logical="text")}
    assert_rows_equal(tfr.open(path, schema=tfr.Schema(specs)))


def test_pyarrow_reads_decoded_images() -> None:
    images = np.arange(2 * 4 * 5 * 3, dtype=np.uint8).reshape(2, 4, 5, 3)
    specs = {
        "same": Spec("bytes", (4, 5, 3), logical="image", encoding="raw", dtype="uint8"),
        "any": Spec("bytes", (None, None, 3), logical="image", encoding="tensor_proto", dtype="uint8"),
    }
    batch = {"same": images, "any": [images[0, :2], images[1, :, :1]]}
    table = read_table(to_arrow(lambda: iter([batch]), tfr.Schema(specs)))
    assert str(table.schema.field("same").type).count("fixed_size_list") == 3
    pixels = table["same"].combine_chunks()
    while not pa.types.is_uint8(pixels.type):
        pixels = pixels.flatten()
    assert np.array_equal(pixels.to_numpy().reshape(images.shape), images)
    assert [np.array(value).shape for value in table["any"].to_pylist()] == [(2, 5, 3), (4, 1, 3)]


def test_pyarrow_reads_slices_and_empty_batches() -> None:
    ints, words = np.arange(20), tfr.BytesColumn.from_values([b"%d" % i for i in range(20)])
    ragged = tfr.Ragged(ints, np.arange(0, 21, 2))
    batches = [
        {"n": ints[start:stop], "w": words[start:stop], "r": ragged[start:stop]}
        for start, stop in [(3, 5), (5, 5), (9, 10), (0, 0)]
    ]
    schema = tfr.Schema({"n": "int64", "w": "bytes", "r": ("int64", (None,))})
    table = read_table(to_arrow(lambda: iter(batches), schema))
    assert table.column("n").to_pylist() == [3, 4, 9]
    assert table.column("w").to_pylist() == [b"3", b"4", b"9"]
    assert table.column("r").to_pylist() == [[6, 7], [8, 9], [18, 19]]


def test_pyarrow_reads_no_rows(tmp_path: Path) -> None:
    specs = arrow_rows.all_specs()
    table = read_table(to_arrow(lambda: iter(()), tfr.Schema(specs)))
    assert (table.num_rows, table.num_columns) == (0, len(specs))
    (tmp_path / "empty.tfrecord").touch()
    assert read_table(tfr.open(tmp_path / "empty.tfrecord")).num_rows == 0


def test_pyarrow_keeps_the_metadata_in_parquet(tmp_path: Path) -> None:
    import pyarrow.parquet

    label = Spec("int64", logical="class_label", classes=("cat", "dog"))
    table = pa.table(to_arrow(lambda: iter([{"label": np.array([1, 0])}]), tfr.Schema({"label": label})))
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    field = pyarrow.parquet.read_table(tmp_path / "a.parquet").schema.field("label")
    assert b'"classes": ["cat", "dog"]' in field.metadata[b"tfrkit.feature"]


# -- ways in -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def numbers(tmp_path: Path) -> tfr.Dataset:
    path = tmp_path / "numbers.tfrecord"
    with tfr.Writer(path) as writer:
        writer.write_columns({"id": np.arange(1000), "label": np.arange(1000) % 3})
    return tfr.open(path)


def test_pyarrow_takes_the_dataset_itself(numbers: tfr.Dataset) -> None:
    assert pa.table(numbers).column("id").to_pylist() == list(range(1000))
    assert pa.schema(numbers).names == ["id", "label"]
    with pa.RecordBatchReader.from_stream(numbers) as reader:
        assert sum(batch.num_rows for batch in reader) == 1000
    wanted = pa.schema([("id", pa.int32()), ("label", pa.int32())])
    assert pa.table(numbers, schema=wanted).schema.names == ["id", "label"]


def test_duckdb_queries_the_variable_again_and_again(numbers: tfr.Dataset) -> None:
    stream = arrow_rows.stream_of(numbers, 100)
    for source in ("stream", "numbers"):
        for _ in range(3):
            found = duckdb.sql(f"select label, count(*), sum(id) from {source} group by 1 order by 1").fetchall()
            assert [(label, count) for label, count, _ in found] == [(0, 334), (1, 333), (2, 333)]
            assert sum(total for *_, total in found) == 499500
    joined = duckdb.sql("select count(*) from stream a join stream b on a.id = b.id").fetchall()
    assert joined == [(1000,)]
    assert stream is not None


def test_duckdb_reads_lists_structs_and_nulls(tmp_path: Path, seed: int) -> None:
    ds = arrow_rows.write_sequences(tmp_path / "a.tfrecord", random.Random(seed), 30)
    stream = arrow_rows.stream_of(ds)
    found = duckdb.sql(
        "select context.id, context.note, feature_lists.words, feature_lists.tokens from stream"
    ).fetchall()
    expected = arrow_rows.expected_rows(ds)
    wanted = [(row["context"]["id"], row["context"]["note"]) for row in expected]
    assert [row[:2] for row in found] == wanted
    assert [row[2] for row in found] == [row["feature_lists"]["words"] for row in expected]
    assert [row[3] for row in found] == [row["feature_lists"]["tokens"] for row in expected]
    assert stream is not None


def test_duckdb_reads_with_all_its_threads(numbers: tfr.Dataset) -> None:
    stream = to_arrow(lambda: ({"id": np.arange(n, n + 2048)} for n in range(0, 204800, 2048)), tfr.Schema({"id": int}))
    with duckdb.connect(config={"threads": 4}) as connection:
        assert connection.sql("select sum(id), count(*) from stream").fetchall() == [(204800 * 204799 // 2, 204800)]
    assert stream is not None


# -- damage ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def damaged(tmp_path: Path, numbers: tfr.Dataset) -> tfr.Dataset:
    path = Path(numbers.files[0])
    schema = numbers.schema
    numbers.close()
    data = path.read_bytes()
    broken = tmp_path / "broken.tfrecord"
    broken.write_bytes(flip(data, len(data) // 2))
    return tfr.open(broken, schema=schema)


def find_damage(ds: tfr.Dataset) -> tfr.TfrkitError:
    with pytest.raises(tfr.TfrkitError, match="mismatch") as caught:
        for _ in ds.batch(100):
            pass
    return caught.value


def test_damage_arrives_as_the_consumers_error(damaged: tfr.Dataset) -> None:
    error = find_damage(damaged)
    assert error.record is not None and 400 < error.record < 600
    where = rf"{type(error).__name__}: .*broken.tfrecord, record {error.record}, byte {error.offset}"
    stream = arrow_rows.stream_of(damaged, 100)
    with pytest.raises(OSError, match=where):
        pa.table(stream)
    with pytest.raises(duckdb.Error, match=where):
        duckdb.sql("select sum(id) from stream").fetchall()
    reader = pa.RecordBatchReader.from_stream(stream)
    rows = 0
    with pytest.raises(OSError, match=where):
        while True:
            rows += reader.read_next_batch().num_rows
    assert rows == error.record // 100 * 100
    with pytest.raises(OSError, match=where):
        reader.read_next_batch()


def test_damage_that_is_skipped_leaves_the_rest(damaged: tfr.Dataset) -> None:
    ds = tfr.open(damaged.files, schema=damaged.schema, on_error="skip")
    assert 1000 > pa.table(arrow_rows.stream_of(ds, 100)).num_rows > 900
    assert ds.errors


def test_text_that_is_not_utf8_names_feature_and_row(tmp_path: Path) -> None:
    path = tmp_path / "a.tfrecord"
    with tfr.Writer(path) as writer:
        for index in range(30):
            writer.write({"word": b"\xff" if index == 25 else b"ok"})
    ds = tfr.open(path, schema={"word": "text"})
    with pytest.raises(OSError, match="feature 'word' expected text, got bytes that are not UTF-8 - at row 25"):
        pa.table(arrow_rows.stream_of(ds))
    ds = tfr.open(path, schema={"word": "bytes"})
    assert pa.table(arrow_rows.stream_of(ds)).column("word").to_pylist()[25] == b"\xff"


# -- lifetimes ---------------------------------------------------------------------------------------------------------


def resident_bytes() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def many_batches() -> ArrowStream:
    schema = tfr.Schema({"n": "int64", "w": "bytes", "r": ("float", (None,))})

    def make_batches() -> Any:
        for _ in range(8):
            words = tfr.BytesColumn.from_values([b"x" * 100] * 10000)
            yield {"n": np.arange(10000), "w": words, "r": tfr.Ragged(np.ones(10000, np.float32), np.arange(10001))}

    return to_arrow(make_batches, schema)


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
def test_repeated_imports_do_not_leak() -> None:
    stream = many_batches()

    def import_all() -> None:
        for _ in range(5):
            assert pa.table(stream).num_rows == 80000
            next(pa.RecordBatchReader.from_stream(stream))  # abandoned half-way
            stream.__arrow_c_stream__()
            pa.schema(stream)
        gc.collect()

    import_all()
    import_all()
    before = resident_bytes()
    for _ in range(6):
        import_all()
    grown = resident_bytes() - before
    assert grown < 16 << 20, f"{grown >> 20} MiB more after 30 imports of 10 MiB"


def test_columns_outlive_table_stream_and_dataset(numbers: tfr.Dataset) -> None:
    column = pa.table(arrow_rows.stream_of(numbers, 100)).column("id")
    files = numbers.files
    del numbers
    gc.collect()
    assert column.to_pylist() == list(range(1000))
    assert files


def test_unused_capsules_are_released(numbers: tfr.Dataset) -> None:
    stream = arrow_rows.stream_of(numbers)
    for _ in range(1000):
        stream.__arrow_c_stream__()
        stream.__arrow_c_schema__()
    assert pa.table(stream).num_rows == 1000


def test_consumers_on_several_threads_get_the_same(numbers: tfr.Dataset) -> None:
    stream = arrow_rows.stream_of(numbers, 10)
    expected = pa.table(stream)
    found: list[bool] = []

    def consume() -> None:
        reader = pa.RecordBatchReader.from_stream(stream)
        found.append(reader.read_all().equals(expected))

    threads = [threading.Thread(target=consume) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def test_reader_made_here_is_read_and_dropped_elsewhere(numbers: tfr.Dataset) -> None:
    readers = [pa.RecordBatchReader.from_stream(arrow_rows.stream_of(numbers, 10))]
    found: list[int] = []

    def consume() -> None:
        reader = readers.pop()
        found.append(reader.read_next_batch().num_rows)
        del reader

    thread = threading.Thread(target=consume)
    thread.start()
    thread.join()
    assert found == [10]
