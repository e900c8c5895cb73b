"""Names and arguments of other libraries raise with the tfrkit equivalent."""

from __future__ import annotations

import inspect
import pickle
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tfrkit
from tfrkit import _familiar
from tfrkit._limits import LIMITS
from tfrkit.batches.shard_set import ShardSet
from tfrkit.dataset.batched import Batches
from tfrkit.errors import (
    FeatureKindError,
    MissingFeatureError,
    QueryError,
    ShapeError,
    StorageError,
    UnlistedShardWarning,
)
from tfrkit.ops.query.query import Answer


@pytest.fixture
def ds(tmp_path: Path) -> tfrkit.Dataset:
    with tfrkit.Writer(tmp_path / "a.tfrecord") as writer:
        for number in range(30):
            writer.write({"id": number, "label": number % 3})
    return tfrkit.open(tmp_path / "a.tfrecord")


@pytest.mark.parametrize("name", _familiar.OF_DATASET)
def test_name_of_another_library_raises_with_ours(ds: tfrkit.Dataset, name: str) -> None:
    with pytest.raises(AttributeError, match=rf"Dataset has no attribute '{name}'\n  .*(ds|rows|tfrkit)") as caught:
        getattr(ds, name)
    assert caught.value.name == name and not hasattr(ds, name)


@pytest.mark.parametrize("name", _familiar.OF_BATCHES)
def test_name_of_another_library_on_batches_raises_with_ours(ds: tfrkit.Dataset, name: str) -> None:
    with pytest.raises(AttributeError, match=rf"Batches has no attribute '{name}'\n  "):
        getattr(ds.batch(4), name)


@pytest.mark.parametrize("name", _familiar.OF_ANSWER)
def test_name_of_another_library_on_an_answer_raises_with_ours(ds: tfrkit.Dataset, name: str) -> None:
    with (
        tfrkit.sql("select 1 as a") as answer,
        pytest.raises(AttributeError, match=rf"Answer has no attribute '{name}'\n  "),
    ):
        getattr(answer, name)


def test_table_of_python_that_a_query_names_has_a_hint(ds: tfrkit.Dataset) -> None:
    with pytest.raises(StorageError, match=r'no such file.* - at nd\n.*Python: tables=\{"nd": nd\}'):
        tfrkit.sql("select count(*) from nd")
    assert list(tfrkit.sql("select count(*) from nd", tables={"nd": ds}).tuples()) == [(30,)]


def test_features_without_a_list_have_a_hint(ds: tfrkit.Dataset) -> None:
    with pytest.raises(
        TypeError, match=r'select expected one argument, got several\n  a list of names: ds.select\(\["image"'
    ):
        ds.select("id", "label")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r'got the string \'id\'\n  a list of names: ds.select\(\["id"\]\)'):
        ds.select("id")
    assert ds.select(["id"]).columns == ds.select(features=["id"]).columns == ["id"]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("a.csv", "table"),
        ("x/b.PARQUET", "table"),
        ("a.npz", "arrays"),
        ("a.tar", "webdataset"),
        ("pics", "class_folders"),
    ],
)
def test_path_instead_of_a_source_names_the_source(tmp_path: Path, path: str, source: str) -> None:
    with pytest.raises(TypeError, match=rf"got str\n  for files: tfr.sources.{source}\('{path}'\)"):
        tfrkit.build(path, tmp_path / "out")


def test_split_of_a_build_names_splits(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"build has no argument split\n  splits by ratio or number: .*splits=\{"):
        tfrkit.build([{"a": 1}], tmp_path / "out", split={"test": 0.5})  # type: ignore[call-arg]


def test_float_after_integers_names_the_schema(tmp_path: Path) -> None:
    cure = r'got float - at row \d\n  store all as floats: schema=\{"a": "float"\}'
    with pytest.raises(FeatureKindError, match=cure), tfrkit.Writer(tmp_path / "x.tfrecord") as writer:
        writer.write({"a": 1})
        writer.write({"a": 1.5})
    with pytest.raises(FeatureKindError, match=cure), tfrkit.Writer(tmp_path / "y.tfrecord") as writer:
        writer.write_columns({"a": np.array([1, 2])})
        writer.write_columns({"a": np.array([0.5], np.float32)})
    with tfrkit.Writer(tmp_path / "z.tfrecord", schema={"a": "float"}) as writer:
        writer.write({"a": 1})
        writer.write({"a": 1.5})


def test_list_longer_than_in_the_sample_names_the_option(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with tfrkit.Writer(tmp_path / "short.tfrecord") as writer:
        writer.write({"v": [1, 2]})
    with tfrkit.Writer(tmp_path / "long.tfrecord") as writer:
        writer.write({"v": [1, 2, 3]})
    schema = tfrkit.open(tmp_path / "short.tfrecord").schema
    monkeypatch.setattr(ShardSet, "_check_schema", lambda *_: None)
    with pytest.raises(ShapeError, match=r'got 3 - at .*\n  take the schema from all records: infer="all"'):
        list(tfrkit.open(tmp_path / "long.tfrecord", schema=schema))


def test_names_with_a_hint_are_not_ours() -> None:
    assert not set(_familiar.OF_ANSWER) & set(dir(Answer))
    assert not set(_familiar.OF_DATASET) & set(dir(tfrkit.Dataset))
    assert not set(_familiar.OF_BATCHES) & set(dir(Batches))


def test_unknown_name_has_no_hint(ds: tfrkit.Dataset) -> None:
    with pytest.raises(AttributeError, match="^Dataset has no attribute 'colour'$"):
        _ = ds.colour  # type: ignore[attr-defined]


def test_property_that_fails_inside_keeps_its_own_error(ds: tfrkit.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: object) -> None:
        raise AttributeError("something inside")

    monkeypatch.setattr(tfrkit.Dataset, "schema", property(fail))
    with pytest.raises(AttributeError, match="something inside"):
        _ = ds.schema


def test_dataset_with_hints_is_copied_and_pickled(ds: tfrkit.Dataset) -> None:
    assert pickle.loads(pickle.dumps(ds))[3] == ds[3]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda ds: tfrkit.open(ds.files, compression="gzip"), r"open has no argument compression\n  .* the bytes"),
        (lambda ds: tfrkit.open(ds.files, compression_type="GZIP"), r"no argument compression_type\n  .* the bytes"),
        (lambda ds: tfrkit.open(ds.files, split="train"), r'no argument split\n  .*open\(folder\)\["train"\]'),
        (lambda ds: ds.shuffle(buffer_size=1000), r"shuffle has no argument buffer_size\n  all rows .* by a seed"),
        (lambda ds: ds.split(train=0.8, test=0.2), r"split has no argument train\n  parts: .*ds.split\(\{"),
        (lambda ds: ds.split([0.8, 0.2]), r"a dict of names and shares, got list\n  name them: "),
        (lambda ds: ds.map(dict, num_proc=4), r"map has no argument num_proc\n  .*processes=4"),
        (lambda ds: ds.batch(4, drop_remainder=True), r"batch has no argument drop_remainder\n  .*drop_last=True"),
        (
            lambda ds: ds.shuffle(1000, seed=3),
            r"shuffle got two values for seed\n  the number is the seed; .*without a buffer",
        ),
        (lambda ds: tfrkit.open(ds.files, shuffle=True), r"open has no argument shuffle\n  .*\.shuffle\(seed=0\)"),
        (lambda ds: tfrkit.open(ds.files, nonsense=1), r"^open\(\) got an unexpected keyword argument 'nonsense'"),
        (lambda ds: ds[["id"]], r"expected numbers of rows, got \['id'\]\n  .*ds\.select\(\['id'\]\)"),
        (lambda ds: "id" in ds, r"got 'id'\n  .*in ds\.columns"),
        (lambda ds: ds.batch(4)[0], r"iterated over.*\n.*to_torch_dataset\(\), batch_size=None\)"),
        (lambda ds: ds.shuffle(nonsense=1), r"unexpected keyword argument 'nonsense'"),
        (lambda ds: ds + ds, r"datasets cannot be added\n  .*tfrkit.open\(\[first, second\]\)"),
        (lambda ds: ds + 1, "unsupported operand"),
        (lambda ds: tfrkit.Dataset("a.tfrecord"), r"a Dataset expected .*, got str\n  .*tfrkit.open\(path\)"),
    ],
)
def test_call_of_another_library_raises_with_the_equivalent(
    ds: tfrkit.Dataset, call: Callable[[tfrkit.Dataset], object], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        call(ds)


def test_signatures_are_those_of_the_functions(ds: tfrkit.Dataset) -> None:
    assert list(inspect.signature(tfrkit.open).parameters)[:2] == ["address", "schema"]
    assert list(inspect.signature(ds.shuffle).parameters) == ["seed", "epoch", "window", "block", "mode", "groups"]


def test_feature_used_as_a_split_is_named(ds: tfrkit.Dataset, tmp_path: Path) -> None:
    tfrkit.build(iter(ds), tmp_path / "out", splits={"test": 5})
    for dataset in (ds, ds.take(3), tfrkit.open(tmp_path / "out")):
        with pytest.raises(
            QueryError, match=r"no split 'label', it is a feature - at .*\n  .*ds.select\(\['label'\]\)"
        ):
            dataset["label"]


def test_misspelt_feature_used_as_a_split_is_named(ds: tfrkit.Dataset, tmp_path: Path) -> None:
    with pytest.raises(QueryError, match=r"no split 'lable', did you mean the feature 'label'.*\n  .*ds\.select"):
        ds["lable"]
    tfrkit.build(iter(ds), tmp_path / "out", splits={"test": 5})
    with pytest.raises(QueryError, match="tset") as caught:
        tfrkit.open(tmp_path / "out")["tset"]
    assert "feature" not in str(caught.value)


def test_unknown_feature_of_decode_is_answered_with_those_there_are(ds: tfrkit.Dataset) -> None:
    with pytest.raises(MissingFeatureError, match=r"no feature 'img'\n  there are: id, label"):
        ds.decode(img=(4, 4))


@pytest.mark.parametrize("name", _familiar.OF_MODULE)
def test_name_of_another_module_raises_with_ours(name: str) -> None:
    with pytest.raises(AttributeError, match=rf"module 'tfrkit' has no attribute '{name}'\n  .*tfrkit\.(open|Writer)"):
        getattr(tfrkit, name)


def test_batches_list_their_public_names(ds: tfrkit.Dataset) -> None:
    public = [name for name in dir(ds.batch(4)) if not name.startswith("_")]
    assert public == ["epoch", "map", "schema", "set_epoch", "to_jax", "to_tf", "to_torch", "to_torch_dataset"]


def test_repr_of_mapped_rows_claims_no_features(ds: tfrkit.Dataset) -> None:
    assert repr(ds.map(lambda row: {"x": 1})) == "Dataset(a.tfrecord; 30 rows; mapped)"
    assert repr(ds.batch(4).map(lambda batch: batch)) == "Batches(4 rows, epoch 0: mapped)"
    assert repr(ds.take(1)) == "Dataset(a.tfrecord; 1 row; features id, label)"
    assert repr(ds.batch(1)).startswith("Batches(1 row, ")


def test_repr_of_a_damaged_or_large_file_shows_what_is_known(
    ds: tfrkit.Dataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert repr(tfrkit.open(ds.files)) == "Dataset(a.tfrecord; 30 rows; features id, label)"
    (tmp_path / "cut.tfrecord").write_bytes((tmp_path / "a.tfrecord").read_bytes()[:-5])
    assert repr(tfrkit.open(tmp_path / "cut.tfrecord")) == "Dataset(cut.tfrecord)"
    monkeypatch.setattr(LIMITS, "quick_count_nbytes", (tmp_path / "a.tfrecord").stat().st_size)
    assert "30 rows" in repr(tfrkit.open(ds.files))
    monkeypatch.setattr(LIMITS, "quick_count_nbytes", 10)
    assert repr(tfrkit.open(ds.files)) == "Dataset(a.tfrecord)"


def test_file_that_the_manifest_does_not_list_is_warned_of(ds: tfrkit.Dataset, tmp_path: Path) -> None:
    tfrkit.build(iter(ds), tmp_path / "out", splits={"train": None, "test": 5})
    shutil.copy(ds.files[0], tmp_path / "out" / "new.tfrecord")
    with pytest.warns(UnlistedShardWarning, match="not listed in tfrkit.json next to it, and in no split") as caught:
        tfrkit.open(tmp_path / "out")
    [warning] = caught
    assert isinstance(warning.message, UnlistedShardWarning)
    assert warning.message.shards == (str(tmp_path / "out" / "new.tfrecord"),) and warning.filename == __file__
    assert len(tfrkit.open(tmp_path / "out" / "new.tfrecord")) == 30


def test_head_is_a_list_of_the_first_rows(ds: tfrkit.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ds.shuffle(1).head(3) == ds.shuffle(1)[:3] and len(ds.shuffle(1).head()) == 5
    assert len(ds.head(100)) == 30 and ds.head(0) == []
    with pytest.raises(ValueError, match="expected a number of rows of 0 or more, got -1"):
        ds.head(-1)
    fresh = tfrkit.open(ds.files)
    monkeypatch.setattr(type(fresh.records()), "__len__", lambda _: pytest.fail("rows were counted"))
    assert fresh.head(2) == [{"id": 0, "label": 0}, {"id": 1, "label": 1}]


def test_columns_are_the_names_in_a_row(ds: tfrkit.Dataset) -> None:
    assert ds.columns == ["id", "label"] and ds.select(["label"]).columns == ["label"]
    assert ds.map(lambda row: {"twice": 2 * row["id"]}).columns == ["twice"]


def test_module_lists_its_public_names_and_version() -> None:
    listed = dir(tfrkit)
    assert set(tfrkit.__all__) <= set(listed) and {"TYPE_CHECKING", "importlib"}.isdisjoint(listed)
    assert "__version__" in listed
    code = [sys.executable, "-m", "tfrkit", "--version"]
    assert subprocess.run(code, capture_output=True, text=True).stdout == f"tfrkit {tfrkit.__version__}\n"


TYPED = """
import tfrkit as tfr
ds = tfr.open("x.tfrecord")
reveal_type(ds[0])
reveal_type(ds["train"])
reveal_type(ds[0:5])
reveal_type(ds[[1, 2]])
reveal_type(ds.split({"a": 0.5, "b": None})["a"])
reveal_type(ds.head(3))
reveal_type(tfr.__version__)
ds.prefetch(1)
ds.shuffle(buffer_size=3)
tfr.Writer("x", compression="GZIP")
tfr.Writer("x", compression="lz4")
"""


def test_type_checker_sees_rows_datasets_and_wrong_names(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    path = tmp_path / "typed.py"
    path.write_text(TYPED)
    out, err, _ = api.run(["--no-incremental", "--follow-imports=silent", "--no-error-summary", str(path)])
    found: list[Any] = [line.partition(": ")[2] for line in out.splitlines()]
    revealed = [line.partition('"')[2].rstrip('"') for line in found if line.startswith("note: Revealed")]
    row = "dict[str, Any]"
    expected = [row, "Dataset", f"list[{row}]", f"list[{row}]", "Dataset", f"list[{row}]", "str"]
    assert [kind.replace("tfrkit.dataset.dataset.", "").replace("builtins.", "") for kind in revealed] == expected, (
        out + err
    )
    errors = [line for line in found if line.startswith("error")]
    assert [word in line for word, line in zip(("prefetch", "buffer_size", "lz4"), errors, strict=True)] == [True] * 3
