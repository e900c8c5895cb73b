"""One rule of precedence: manifest, TFDS's files, names of files, records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tfrkit.features.infer import InferredSchema
from tfrkit.features.schema import Schema
from tfrkit.features.schema_json import to_json
from tfrkit.features.spec import Spec
from tfrkit.features.tfds_export import to_tfds
from tfrkit.sidecars import read
from tfrkit.sidecars.manifest import fingerprint_entries, write_manifest
from tfrkit.sidecars.read import Sidecars

PIXELS = Schema({"pixels": Spec("bytes", (2, 3), logical="tensor", encoding="raw", dtype="uint8")})
PLAIN = Schema({"pixels": Spec("bytes", logical="bytes", meaning="raw bytes, 6 each")})


def write_shards(folder: Path, *names: str, nbytes: int = 4) -> list[str]:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(b"x" * nbytes)
    return [str(folder / name) for name in names]


def write_dataset(path: Path, shards: dict[str, str | None], schema: Schema | None = None, **more: Any) -> None:
    rows = [{"name": name, "split": split, "records": 7, "nbytes": 4} for name, split in shards.items()]
    content = {"shards": rows, "files": [], **more}
    write_manifest(str(path), content if schema is None else {**content, "schema": to_json(schema)})


def write_tfds(folder: Path, schema: Schema | None = None, splits: tuple[str, ...] = ()) -> None:
    if schema is not None:
        (folder / "features.json").write_text(json.dumps(to_tfds(schema).features))
    info = {"name": "x", "splits": [{"name": split, "shardLengths": ["7"]} for split in splits]}
    (folder / "dataset_info.json").write_text(json.dumps(info))


# ---- splits ------------------------------------------------------------------------------------------------------


def test_splits_of_any_name_come_from_the_manifest(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, "a", "b", "c")
    write_dataset(tmp_path / "tfrkit.json", {"c": "north", "a": "south", "b": "north"})
    assert Sidecars(paths).splits == {"north": [1, 2], "south": [0]}
    assert Sidecars(paths[:1]).splits == {"south": [0]}  # one shard alone


def test_splits_of_many_shards_take_one_look_at_each_manifest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"x-{number:03d}" for number in range(200)]
    paths = write_shards(tmp_path, *names)
    write_dataset(tmp_path / "tfrkit.json", {name: f"s{int(name[2:]) % 2}" for name in names})
    looks: list[object] = []
    monkeypatch.setattr(read, "_list_splits", lambda manifest: looks.append(manifest) or {"s0": None, "s1": None})
    assert Sidecars(paths).splits == {"s0": list(range(0, 200, 2)), "s1": list(range(1, 200, 2))}
    assert len(looks) == 1


def test_own_manifest_of_one_of_many_shards_is_found(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, *[f"x-{number:03d}" for number in range(100)])
    (tmp_path / "_index").mkdir()
    write_dataset(tmp_path / "_index" / "x-007.tfrkit.json", {"x-007": "own"})
    assert Sidecars(paths).splits == {"own": [7]}


def test_splits_of_the_manifest_win_over_names_and_tfds(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, "x-train.tfrecord-00000-of-00001")
    write_tfds(tmp_path, splits=("train",))
    assert Sidecars(paths).splits == {"train": [0]}
    write_dataset(tmp_path / "tfrkit.json", {"x-train.tfrecord-00000-of-00001": "kept"})
    assert Sidecars(paths).splits == {"kept": [0]}


def test_splits_of_a_shard_that_was_changed_stay(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, "a", nbytes=5)
    write_dataset(tmp_path / "tfrkit.json", {"a": "north"})
    sidecars = Sidecars(paths)
    assert sidecars.splits == {"north": [0]}
    assert sidecars.fits == [False]
    assert sidecars.notes == [
        f"expected 4 bytes as tfrkit.json says, got 5; its facts about the records are not used - at {paths[0]}"
    ]


def test_splits_of_unlisted_shards_come_from_names(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, "a", "x-test.tfrecord")
    write_dataset(tmp_path / "tfrkit.json", {"a": "north"})
    assert Sidecars(paths).splits == {"north": [0], "test": [1]}


def test_splits_of_several_folders_are_joined_by_name(tmp_path: Path) -> None:
    paths = write_shards(tmp_path / "one", "a") + write_shards(tmp_path / "two", "a", "b")
    write_dataset(tmp_path / "one" / "tfrkit.json", {"a": "north"})
    write_dataset(tmp_path / "two" / "tfrkit.json", {"a": "south", "b": "north"})
    assert Sidecars(paths).splits == {"north": [0, 2], "south": [1]}


def test_standard_input_has_no_sidecars(tmp_path: Path) -> None:
    (tmp_path / "classes.txt").write_text("a\n")
    sidecars = Sidecars(["-"])
    assert (sidecars.splits, sidecars.counts, sidecars.schema, sidecars.class_file) == ({}, [None], None, None)


# ---- schema ------------------------------------------------------------------------------------------------------


def test_schema_of_the_manifest_wins_over_features_json(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, "a")
    write_tfds(tmp_path, PLAIN)
    write_dataset(tmp_path / "tfrkit.json", {"a": None}, PIXELS, files=["features.json"])
    assert Sidecars(paths).schema == PIXELS
    assert Sidecars(paths).schema_origin == "manifest"
    assert Sidecars(paths).refine(InferredSchema(PLAIN, [])) == PIXELS


def test_schema_of_a_single_file_is_in_its_index_folder(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, "a.tfrecord")
    write_dataset(tmp_path / "_index" / "a.tfrecord.tfrkit.json", {"a.tfrecord": None}, PIXELS)
    assert Sidecars(paths).schema == PIXELS


def test_schema_needs_all_shards_listed_and_as_large_as_listed(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, "a", "b")
    write_dataset(tmp_path / "tfrkit.json", {"a": None}, PIXELS)
    assert Sidecars(paths).schema is None
    assert Sidecars(paths).refine(InferredSchema(PLAIN, [])) == PIXELS  # still the best that is known
    Path(paths[0]).write_bytes(b"other")
    assert Sidecars(paths[:1]).schema is None
    assert Sidecars(paths[:1]).schema_origin == "records"
    assert Sidecars(paths[:1]).refine(InferredSchema(PLAIN, [])) == PLAIN


def test_meaning_of_a_sidecar_that_decodes_differently_stays(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, "a")
    described = Schema({"pixels": PIXELS["pixels"].replace(meaning="a picture")})
    write_dataset(tmp_path / "tfrkit.json", {"a": None}, described)
    assert Sidecars(paths).refine(InferredSchema(PLAIN, []))["pixels"].meaning == "a picture"
    write_dataset(tmp_path / "tfrkit.json", {"a": None}, PIXELS)
    assert Sidecars(paths).refine(InferredSchema(PLAIN, []))["pixels"].meaning == "uint8 raw bytes (2, 3)"
    write_dataset(tmp_path / "tfrkit.json", {"a": None}, Schema({"pixels": Spec("bytes", logical="image")}))
    assert Sidecars(paths).refine(InferredSchema(PLAIN, []))["pixels"].meaning == "raw bytes, 6 each"


def test_schemas_that_differ_refine_only_what_they_agree_about(tmp_path: Path) -> None:
    paths = write_shards(tmp_path / "one", "a") + write_shards(tmp_path / "two", "a")
    other = Schema({"pixels": PIXELS["pixels"].replace(shape=(3, 2)), "label": Spec("int64", num_classes=3)})
    write_dataset(tmp_path / "one" / "tfrkit.json", {"a": None}, PIXELS)
    write_dataset(tmp_path / "two" / "tfrkit.json", {"a": None}, other)
    found = Schema({"pixels": PLAIN["pixels"], "label": Spec("int64")})
    refined = Sidecars(paths).refine(InferredSchema(found, []))
    assert Sidecars(paths).schema is None
    assert refined["pixels"].encoding == "list"
    assert refined["label"].num_classes == 3


def test_records_win_over_a_sidecar_that_says_what_they_are_not(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, "a")
    write_tfds(tmp_path, Schema({"v": "int64", "t": Spec("bytes", logical="text"), "b": Spec("bytes")}))
    tensor = Spec("bytes", (2,), logical="tensor", encoding="tensor_proto", dtype="uint8")
    found = Schema({"v": "float", "t": Spec("bytes", logical="bytes"), "b": tensor})
    assert Sidecars(paths).schema_origin == "tfds"
    assert Sidecars(paths).refine(InferredSchema(found, [])) == found


def test_text_feature_without_values_is_text_by_its_sidecar(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, "a")
    write_tfds(tmp_path, Schema({"t": Spec("bytes", logical="text")}))
    found = Schema({"t": Spec("bytes", logical="bytes")})
    row = {"name": "t", "list": False, "max_bytes": 0}
    assert Sidecars(paths).refine(InferredSchema(found, [row]))["t"].logical == "text"


def test_refused_schema_is_a_problem_and_is_not_used(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, "a")
    write_dataset(tmp_path / "tfrkit.json", {"a": None}, PIXELS)
    sidecars = Sidecars(paths)
    assert sidecars.schema is not None
    sidecars.refuse_schema(["feature 'x' expected int64, got float"])
    assert sidecars.schema is None
    assert sidecars.refine(InferredSchema(PLAIN, [])) == PLAIN
    assert "schema does not fit the records, feature 'x' expected int64, got float; it is not used" in sidecars.notes[0]


def test_sidecars_of_another_dataset_are_ignored(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, "mine.tfrecord")
    write_tfds(tmp_path, Schema({"t": Spec("bytes", logical="text")}), splits=("mine",))
    (tmp_path / "classes.txt").write_text("0:apple\n")
    listed = {"shards": [{"name": "other"}], "files": ["features.json", "dataset_info.json", "classes.txt"]}
    assert Sidecars(paths).class_file is not None
    write_manifest(str(tmp_path / "tfrkit.json"), listed)
    sidecars = Sidecars(paths)
    assert (sidecars.splits, sidecars.class_file, sidecars.is_tfds(0)) == ({}, None, False)


# ---- counts and names --------------------------------------------------------------------------------------------


def test_counts_are_those_of_shards_that_fit(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, "a", "b", "c")
    write_dataset(tmp_path / "tfrkit.json", {"a": None, "b": None})
    Path(paths[1]).write_bytes(b"longer")
    assert Sidecars(paths).counts == [7, None, None]


def test_fingerprint_is_that_of_all_shards_as_listed(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, "a", "b")
    rows = [{"name": name, "nbytes": 4, "sha256": name * 64} for name in "ab"]
    write_manifest(str(tmp_path / "tfrkit.json"), {"shards": rows})
    assert Sidecars(paths).listed_fingerprint == fingerprint_entries([(4, "a" * 64), (4, "b" * 64)])
    Path(paths[1]).write_bytes(b"longer")
    assert Sidecars(paths).listed_fingerprint is None


def test_class_names_of_the_schema_win_over_those_of_tfds(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, "a")
    tfds = Schema({"label": Spec("int64", logical="class_label", classes=("x", "y"))})
    write_tfds(tmp_path, tfds)
    (tmp_path / "label.labels.txt").write_text("x\ny\n")
    assert Sidecars(paths).classes == {"label": ("x", "y")}
    write_dataset(tmp_path / "tfrkit.json", {"a": None}, Schema({"label": Spec("int64", classes=("p", "q"))}))
    assert Sidecars(paths).classes == {"label": ("p", "q")}


@pytest.mark.parametrize(
    ("name", "text", "names"),
    [
        ("classes.txt", "0:apple\n1:pear\n", ("apple", "pear")),
        ("labels.txt", "apple\npear\n", ("apple", "pear")),
        ("label_map.pbtxt", "item { id: 1 name: 'apple' } item { id: 2 name: 'pear' }", ("apple", "pear")),
    ],
)
def test_class_file_is_in_the_folder_or_the_index_folder_of_one_file(
    tmp_path: Path, name: str, text: str, names: tuple[str, ...]
) -> None:
    [path, other] = write_shards(tmp_path, "a.tfrecord", "b.tfrecord")
    assert Sidecars([path]).class_file is None
    (tmp_path / name).write_text(text)
    assert Sidecars([path]).class_file.names == names  # type: ignore[union-attr]
    (tmp_path / "_index").mkdir()
    (tmp_path / "_index" / f"a.tfrecord.{name}").write_text(text.replace("apple", "own"))
    assert Sidecars([path]).class_file.names == ("own", "pear")  # type: ignore[union-attr]
    assert Sidecars([path, other]).class_file.names == names  # type: ignore[union-attr]
    assert Sidecars([path, *write_shards(tmp_path / "else", "c")]).class_file is None


def test_charset_of_a_single_file_is_found(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, "a.tfrecord")
    (tmp_path / "_index").mkdir()
    (tmp_path / "_index" / "a.tfrecord.charset.txt").write_text("0:x\n1:y\n")
    assert Sidecars(paths).charset.names == ("x", "y")  # type: ignore[union-attr]


@pytest.mark.parametrize("name", ["tfrkit.json", "features.json", "dataset_info.json", "classes.txt"])
@pytest.mark.parametrize("content", [b'{"half": ', b"\xff\xfe\x00"])
def test_sidecar_that_cannot_be_read_is_a_problem(tmp_path: Path, name: str, content: bytes) -> None:
    if name == "classes.txt" and content.startswith(b"{"):
        content = b""
    paths = write_shards(tmp_path, "a")
    (tmp_path / name).write_bytes(content)
    [problem] = Sidecars(paths).check()
    assert problem.path == str(tmp_path / name)


def test_sound_sidecars_have_no_problems(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, "a")
    write_tfds(tmp_path, PLAIN, splits=("train",))
    write_dataset(tmp_path / "tfrkit.json", {"a": "train"}, PIXELS)
    assert Sidecars(paths).check() == []


def test_split_of_one_shard_alone_is_the_one_it_has_among_all(tmp_path: Path) -> None:
    paths = write_shards(tmp_path, "train-00000-of-00001", "train_extra-00000-of-00001")
    assert Sidecars(paths).splits == {"train": [0], "train_extra": [1]}
    assert Sidecars(paths[1:]).splits == {"train_extra": [0]}
