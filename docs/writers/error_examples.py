"""Real messages: each function makes one error in an empty folder; docs/look-up/errors.md shows them."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path

import tfrkit as tfr
from tfrkit import errors
from tfrkit.testing.corruption import flip, make_frame


def write(name: str, count: int = 3, **options: object) -> Path:
    with tfr.Writer(name, **options) as writer:  # type: ignore[arg-type]
        for number in range(count):
            writer.write({"label": number, "name": f"row {number}"})
    return Path(name)


def storage() -> None:
    write("train.tfrecord")
    list(tfr.open("trian.tfrecord"))


def corrupt() -> None:
    path = write("train.tfrecord")
    path.write_bytes(flip(path.read_bytes(), 60))
    list(tfr.open("train.tfrecord"))


def truncated() -> None:
    path = write("train.tfrecord")
    path.write_bytes(path.read_bytes()[:-5])
    list(tfr.open("train.tfrecord"))


def not_a_tfrecord() -> None:
    Path("train.tfrecord").write_text(
        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", encoding="utf-8"
    )
    list(tfr.open("train.tfrecord"))


def wire() -> None:
    Path("train.tfrecord").write_bytes(make_frame(b"\xff\xff\xff"))
    list(tfr.open("train.tfrecord", schema={"label": "int64"}))


def kind() -> None:
    with tfr.Writer("train.tfrecord") as writer:
        writer.write({"label": 1})
        writer.write({"label": "one"})


def missing() -> None:
    write("train.tfrecord")
    tfr.open("train.tfrecord").select(["lable"])


def shape() -> None:
    with tfr.Writer("train.tfrecord", schema={"xyz": ("float", (3,))}) as writer:
        writer.write({"xyz": [0.5, 1.0]})


def source() -> None:
    Path("images/cat").mkdir(parents=True)
    Path("images/cat/1.png").write_bytes(b"nothing")
    tfr.build(tfr.sources.class_folders("images"), "cats.tfrecord")


def query() -> None:
    write("train.tfrecord")
    list(tfr.sql("select lable from 'train.tfrecord'"))


def stale_index() -> None:
    write("train.tfrecord", index=True)
    os.replace(write("other.tfrecord", 5), "train.tfrecord")
    len(tfr.open("train.tfrecord"))


def lost_rows() -> None:
    writer = tfr.Writer("train.tfrecord")
    writer.write({"label": 1})
    del writer


def incomplete() -> None:
    write("train-00000-of-00002.tfrecord")
    len(tfr.open("train-*"))


EXAMPLES: dict[type, Callable[[], None]] = {
    errors.StorageError: storage,
    errors.CorruptRecordError: corrupt,
    errors.TruncatedShardError: truncated,
    errors.NotATFRecordError: not_a_tfrecord,
    errors.WireError: wire,
    errors.FeatureKindError: kind,
    errors.MissingFeatureError: missing,
    errors.ShapeError: shape,
    errors.SourceError: source,
    errors.QueryError: query,
    errors.StaleIndexWarning: stale_index,
    errors.LostRowsWarning: lost_rows,
    errors.IncompleteSetWarning: incomplete,
}


def show_message(kind: type) -> str | None:
    """The message of an error of this type, from a real case; None if there is no short one."""
    if kind not in EXAMPLES:
        return None
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        os.chdir(folder)
        try:
            EXAMPLES[kind]()
        except Exception as error:  # compared with the expected type next
            if type(error) is not kind:
                raise
            return str(error).replace(folder + os.sep, "")
        finally:
            os.chdir(before)
    found = [str(warning.message) for warning in caught if warning.category is kind]
    assert found, f"{kind.__name__}: nothing was raised, {[str(one.message) for one in caught]}"
    return found[0].replace(folder + os.sep, "")
