"""Large values of batches stay in the mapped file until they are used: the same values, and never wrong ones."""

from __future__ import annotations

import gc
import io
import os
import pickle
import shutil
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import tfrkit as tfr
from tfrkit import _native
from tfrkit.batches.loop import BatchLoop
from tfrkit.codec.columns import BytesColumn, Ragged, ViewedBytes
from tfrkit.errors import StorageError
from tfrkit.testing.reference import write_frames

pytestmark = pytest.mark.skipif(not _native.MAPS_ARE_GUARDED, reason="no engine on this system")

NUM_ROWS = 40
BATCH = 8


def make_value(number: int, *, seed: int = 0) -> bytes:
    nbytes = [10_000, 0, 5_000, 3, 60_000][number % 5]
    return np.random.default_rng([seed, number]).bytes(nbytes)


def write(path: Path, *, seed: int = 0) -> Path:
    with tfr.Writer(path) as writer:
        for number in range(NUM_ROWS):
            lists = [make_value(number + k, seed=seed) for k in range(number % 3)]
            writer.write({"n": number, "image": make_value(number, seed=seed), "parts": lists, "name": b"n%d" % number})
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "shard.tfrecord")


def take_viewed(path: Path, **options: Any) -> ViewedBytes:
    """Return the images of rows 8 to 16. Those of the first batch are copied: only then the size of values is known."""
    batches = iter(tfr.open(path, **options).batch(BATCH, threads=1))
    assert type(next(batches)["image"]) is BytesColumn
    column = next(batches)["image"]
    assert type(column) is ViewedBytes
    return column


EXPECTED = [make_value(number) for number in range(BATCH, 2 * BATCH)]

USES = {
    "item": lambda column: [column[index] for index in range(len(column))],
    "negative": lambda column: [column[index - len(column)] for index in range(len(column))],
    "iteration": list,
    "slice": lambda column: list(column[:]),
    "array": lambda column: np.asarray(column).tolist(),
    "pickle": lambda column: list(pickle.loads(pickle.dumps(column))),
    "data": lambda column: [
        column.data[start:stop].tobytes() for start, stop in zip(column.offsets[:-1], column.offsets[1:], strict=True)
    ],
}


@pytest.mark.parametrize("use", USES)
def test_viewed_column_behaves_as_a_bytes_column(path: Path, use: str) -> None:
    column = take_viewed(path)
    assert USES[use](column) == EXPECTED
    assert USES[use](column) == EXPECTED  # also after it was joined


def test_viewed_column_has_lengths_and_a_text_without_reading_values(path: Path) -> None:
    column = take_viewed(path)
    os.truncate(path, 0)
    sizes = [len(value) for value in EXPECTED]
    assert (len(column), column.lengths.tolist()) == (BATCH, sizes)
    assert repr(column) == f"BytesColumn({BATCH} values, {sum(sizes)} bytes)"
    assert type(column) is ViewedBytes
    with pytest.raises(IndexError, match="row 8 is out of range, the column has 8 rows"):
        column[BATCH]


def test_joined_data_is_made_once_and_may_be_written_to(path: Path) -> None:
    column = take_viewed(path)
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(column.data)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {id(data) for data in found} == {id(column.data)}
    column.data[0] ^= 0xFF
    assert column[0][0] == next(iter(column))[0] != EXPECTED[0][0]


def flatten(column: Any) -> list[Any]:
    return [flatten(row) if isinstance(row, BytesColumn) else row for row in column]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("is_shuffled", [False, True])
def test_viewed_batches_equal_those_of_python(
    tmp_path: Path, threads: int, is_shuffled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for shard in range(3):
        write(tmp_path / f"s-{shard:05}-of-00003", seed=shard)

    def read() -> list[dict[str, Any]]:
        ds = tfr.open(tmp_path / "s-*")
        return list((ds.shuffle(seed=3) if is_shuffled else ds).batch(7, threads=threads))

    made = read()
    assert any(isinstance(batch["image"], ViewedBytes) for batch in made)
    assert any(isinstance(batch["parts"].values, ViewedBytes) for batch in made)
    assert not any(isinstance(batch["name"], ViewedBytes) for batch in made)  # small values are copied
    monkeypatch.setattr(BatchLoop, "uses_engine", False)
    expected = read()
    assert not any(isinstance(batch["image"], ViewedBytes) for batch in expected)
    assert len(made) == len(expected)
    for one, other in zip(made, expected, strict=True):
        assert isinstance(one["parts"], Ragged)
        assert {name: flatten(column) for name, column in one.items()} == {
            name: flatten(column) for name, column in other.items()
        }


def test_views_keep_the_map_after_dataset_and_file_are_gone(path: Path) -> None:
    column = take_viewed(path)
    path.unlink()
    gc.collect()
    assert list(column) == EXPECTED


@pytest.mark.parametrize("verify", ["all", "lengths", "none"])
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("share", [0.0, 0.3, 0.35])
def test_value_of_a_file_that_was_cut_off_raises(path: Path, verify: Any, use: str, share: float) -> None:
    column = take_viewed(path, verify=verify)
    os.truncate(path, int(path.stat().st_size * share))
    with pytest.raises(StorageError, match="became shorter while it was read"):
        USES[use](column)


@pytest.mark.parametrize("use", USES)
def test_cut_inside_the_last_page_of_a_value_raises(path: Path, use: str) -> None:
    # The page is still mapped, and its rest reads as zeros without a signal.
    column = take_viewed(path)
    place = path.read_bytes().index(EXPECTED[0]) + len(EXPECTED[0])
    os.truncate(path, place - 1)
    with pytest.raises(StorageError, match="became shorter while it was read"):
        USES[use](column)


def overwrite(path: Path, data: bytes) -> None:
    """Write into the same file, with another time of change."""
    before = path.stat()
    with path.open("r+b") as file:
        file.truncate(0)
        file.write(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000))


@pytest.mark.parametrize("verify", ["all", "lengths", "none"])
@pytest.mark.parametrize("use", USES)
def test_value_of_a_file_that_was_overwritten_raises(tmp_path: Path, path: Path, verify: Any, use: str) -> None:
    other = write(tmp_path / "other.tfrecord", seed=1).read_bytes()
    assert len(other) == path.stat().st_size
    column = take_viewed(path, verify=verify)
    overwrite(path, other)
    with pytest.raises(StorageError, match="a part of it was lost while it was read"):
        USES[use](column)


@pytest.mark.parametrize("use", USES)
def test_value_of_a_file_that_grew_is_the_same(path: Path, use: str) -> None:
    column = take_viewed(path)
    overwrite(path, path.read_bytes() + write_frames([b"more"]))
    assert USES[use](column) == EXPECTED


def test_file_that_grew_without_checksums_is_refused(path: Path) -> None:
    column = take_viewed(path, verify="none")
    overwrite(path, path.read_bytes() + write_frames([b"more"]))
    with pytest.raises(StorageError, match="a part of it was lost while it was read"):
        column[0]


def test_replaced_file_does_not_matter(tmp_path: Path, path: Path) -> None:
    column = take_viewed(path)
    shutil.move(write(tmp_path / "other.tfrecord", seed=1), path)
    assert list(column) == EXPECTED


def test_values_of_memory_that_is_no_map_are_copied(path: Path) -> None:
    frames = bytearray(path.read_bytes())
    engine = _native.BatchEngine("example", [(b"image", "bytes", False, 1)], None, [False], "all", False, 0, 1 << 20, 1)
    engine.read_in_order(BATCH)
    assert engine.take() is None
    assert engine.take_wanted() == [0]
    engine.set_span(0, frames)
    for start in range(0, NUM_ROWS, BATCH):
        taken = engine.take()
        assert taken is not None
        assert not isinstance(taken[0][0][0], _native.ByteViews)
        column = BytesColumn(*taken[0][0][0])
        assert list(column) == [make_value(number) for number in range(start, start + BATCH)]


def encode_png(pixels: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(pixels).save(out, "PNG")
    return out.getvalue()


def test_images_that_are_decoded_are_copied_when_they_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (NUM_ROWS, 64, 64, 3), dtype=np.uint8)
    path = tmp_path / "images.tfrecord"
    with tfr.Writer(path) as writer:
        for image in pixels:
            writer.write({"image": encode_png(image), "other": bytes(9000)})
    seen = []
    wrap = _native.BatchEngine.take

    def note(self: Any) -> Any:
        taken = wrap(self)
        if taken is not None:
            seen.append([isinstance(column[0], _native.ByteViews) for column in taken[0]])
        return taken

    monkeypatch.setattr(_native.BatchEngine, "take", note)
    made = [batch["image"] for batch in tfr.open(path).decode(image=True).batch(BATCH, threads=2)]
    assert np.array_equal(np.concatenate(made), pixels)
    assert not any(is_viewed for is_viewed, _ in seen)
    assert seen[-1][1]  # what no step decodes
