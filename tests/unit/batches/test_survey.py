from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from tfrkit._limits import LIMITS
from tfrkit.batches.survey import Surveyed, find_schema, kind_of_shapes
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard
from tfrkit.errors import SchemaError
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.features.tfds_export import to_tfds
from tfrkit.storage.memory import MemoryReader
from tfrkit.testing.corruption import flip, make_frame
from tfrkit.testing.reference import (
    Feature,
    FeatureLists,
    Features,
    encode_example,
    encode_sequence_example,
    encode_tensor,
    write_frames,
)

SHAPES = ("empty", "example", "sequence_example", "loose_example", "loose_sequence", "other")


def ints(*values: int) -> Feature:
    return "int64", list(values)


def examples(*rows: Features) -> bytes:
    return write_frames([encode_example(row) for row in rows])


def sequences(*rows: tuple[Features, FeatureLists]) -> bytes:
    return write_frames([encode_sequence_example(context, lists) for context, lists in rows])


def infer(*shards: bytes, policy: Policy | None = None) -> Schema:
    return find_schema([Shard(MemoryReader(data)) for data in shards], policy or Policy())


@pytest.mark.parametrize(
    ("counts", "kind"),
    [
        ({}, "example"),
        ({"empty": 3}, "example"),
        ({"example": 1, "empty": 1}, "example"),
        ({"loose_example": 1}, "example"),
        ({"sequence_example": 1, "example": 5}, "sequence_example"),
        ({"loose_sequence": 1}, "sequence_example"),
        ({"other": 1}, "raw"),
        ({"other": 1, "empty": 5}, "raw"),
        ({"other": 1, "example": 5}, "mixed"),
    ],
)
def test_kind_is_inferred_from_records(counts: dict[str, int], kind: str) -> None:
    assert kind_of_shapes({shape: counts.get(shape, 0) for shape in SHAPES}) == kind


def test_scalar_or_array_is_decided_per_column() -> None:
    schema = infer(examples({b"a": ints(1), b"b": ints(1)}, {b"a": ints(2), b"b": ints(1, 2)}))
    assert schema["a"].shape == ()
    assert schema["b"].shape == (None,)


def test_shards_are_surveyed_together() -> None:
    schema = infer(examples({b"a": ints(1)}), b"", gzip.compress(examples({b"a": ints(1, 2)}, {})))
    assert schema["a"].shape == (None,)
    assert schema["a"].optional


def test_feature_that_some_records_lack_is_optional() -> None:
    schema = infer(examples({b"a": ints(1), b"b": ints(1)}, {b"b": ints(2)}, {b"a": None, b"b": ints(1)}))
    assert schema["a"].optional
    assert schema["a"].shape == ()
    assert not schema["b"].optional


def test_list_that_some_records_lack_is_optional() -> None:
    schema = infer(sequences(({b"a": ints(1)}, {b"f": [ints(1)]}), ({b"a": ints(1)}, {})))
    assert schema.kind == "sequence_example"
    assert schema.feature_lists["f"].optional


def test_tensor_is_recognised_with_dtype_and_shape() -> None:
    schema = infer(examples(*[{b"t": ("bytes", [encode_tensor(4, (2, 3), bytes(6))])}] * 3))
    assert (schema["t"].encoding, schema["t"].dtype, schema["t"].shape) == ("tensor_proto", "uint8", (2, 3))


def test_tensor_that_some_records_lack_stays_a_tensor() -> None:
    tensor: Feature = ("bytes", [encode_tensor(4, (2, 3), bytes(6))])
    schema = infer(examples({b"t": tensor}, {}, {b"t": None}))
    assert schema["t"].encoding == "tensor_proto"
    assert schema["t"].optional


def test_empty_dataset_has_no_features() -> None:
    for schema in (infer(b""), infer(), infer(gzip.compress(b""))):
        assert schema.kind == "example"
        assert schema.names == ()


@pytest.mark.parametrize("records", [[b"hello"], [b"hello", encode_example({b"a": ints(1)})], [b"\xff" * 9, b""]])
def test_other_records_are_raw(records: list[bytes]) -> None:
    assert infer(write_frames(records)).kind == "raw"


def test_few_other_records_among_examples_do_not_make_it_raw() -> None:
    schema = infer(examples(*[{b"a": ints(1)}] * 9) + make_frame(b"hello"))
    assert schema.kind == "example"
    assert schema.names == ("a",)


@pytest.mark.parametrize("name", [b"", b"\0", b"a\0b", "\u00e9".encode()])
def test_any_text_may_be_a_name(name: bytes) -> None:
    schema = infer(examples({name: ints(1)}, {name: ints(2)}))
    assert schema.kind == "example"
    assert schema.names == (name.decode("utf-8", "surrogateescape"),)


def test_name_that_utf8_does_not_hold_is_no_example() -> None:
    # As protobuf has it: a key that is not text makes the message unreadable.
    assert infer(examples({b"\xff\xfe": ints(1)})).kind == "raw"


def test_damage_says_nothing_about_the_schema() -> None:
    rows = [{b"a": ints(number)} for number in range(9)]
    policy = Policy()
    schema = infer(flip(examples(*rows), 13), policy=policy)
    assert schema["a"].shape == ()
    assert policy.findings == {}


def test_large_shard_is_sampled_in_many_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "schema_nbytes", 0)
    rows: list[Features] = [{b"a": ints(number)} for number in range(1000)]
    rows[-1] = {b"a": ints(1, 2)}
    data = examples(*rows)
    assert infer(data)["a"].shape == (None,)
    assert infer(gzip.compress(data))["a"].shape == (None,)


def test_large_shard_with_damage_is_still_surveyed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "schema_nbytes", 0)
    assert infer(flip(examples(*[{b"a": ints(1)}] * 100), 3)).names == ("a",)


def test_number_of_surveyed_records_can_be_limited() -> None:
    surveyed = Surveyed()
    shard = Shard(MemoryReader(examples(*[{b"a": ints(1)}] * 100)))
    assert surveyed.add_shard(shard, Policy(), max_records=30) == 30
    assert surveyed.survey.num_records == 30
    assert surveyed.add_shard(shard, Policy()) == 100


# --- features.json next to the shard -------------------------------------------------------------------


def write_folder(folder: Path, features: Any) -> list[Shard]:
    (folder / "d.tfrecord").write_bytes(examples(*[{b"label": ints(number)} for number in (0, 1)]))
    text = features if isinstance(features, str) else json.dumps(features)
    (folder / "features.json").write_text(text)
    return [Shard.open(str(folder / "d.tfrecord"))]


def tfds(**features: Any) -> dict[str, Any]:
    return {
        "pythonClassName": "tensorflow_datasets.core.features.features_dict.FeaturesDict",
        "featuresDict": {"features": features},
    }


LABEL = {
    "pythonClassName": "tensorflow_datasets.core.features.class_label_feature.ClassLabel",
    "classLabel": {"numClasses": "2"},
}


def test_features_json_next_to_the_data_is_honoured(tmp_path: Path) -> None:
    shards = write_folder(tmp_path, tfds(label=LABEL))
    (tmp_path / "label.labels.txt").write_text("cat\ndog\n")
    spec = find_schema(shards, Policy())["label"]
    assert spec.logical == "class_label"
    assert spec.classes == ("cat", "dog")


@pytest.mark.parametrize("content", ["", "{", "[]", "null", "{}", "[" * 100_000, '{"featuresDict": 3}', "\u00e9"])
def test_unrelated_features_json_is_ignored(tmp_path: Path, content: str) -> None:
    spec = find_schema(write_folder(tmp_path, content), Policy())["label"]
    assert (spec.kind, spec.shape) == ("int64", ())


def test_features_json_that_the_records_contradict_is_not_believed(tmp_path: Path) -> None:
    text = {"pythonClassName": "tensorflow_datasets.core.features.text_feature.Text", "text": {}}
    assert find_schema(write_folder(tmp_path, tfds(label=text)), Policy())["label"].kind == "int64"


def test_schema_is_required_for_a_pipe() -> None:
    class Pipe(MemoryReader):
        size = None  # type: ignore[assignment]

        def span(self) -> None:
            return None

    shard = Shard(Pipe(examples({b"a": ints(1)}), name="-"))
    with pytest.raises(
        SchemaError, match=r"expected a schema, because records of a pipe can be read only once - at -\n"
    ):
        find_schema([shard], Policy())


def test_text_whose_values_are_all_empty_is_text_by_its_sidecar(tmp_path: Path) -> None:
    (tmp_path / "a.tfrecord").write_bytes(examples({b"t": ("bytes", [b""])}))
    text = Schema({"t": Spec("bytes", logical="text")})
    (tmp_path / "features.json").write_text(json.dumps(to_tfds(text).features))
    assert find_schema([Shard.open(str(tmp_path / "a.tfrecord"))], Policy())["t"].logical == "text"


def test_sample_of_large_shards_is_divided_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LIMITS, "schema_nbytes", 0)
    monkeypatch.setattr(LIMITS, "schema_records", 200)
    data = gzip.compress(examples(*[{b"a": ints(number)} for number in range(300)]))
    surveyed = Surveyed()
    find_schema([Shard(MemoryReader(data), compression="gzip") for _ in range(2)], Policy(), surveyed=surveyed)
    assert surveyed.survey.num_records == 200 and surveyed.is_sample
