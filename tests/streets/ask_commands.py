"""Askers that run a command and parse its output."""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from streets.ask_python import facts_of_schema
from streets.building import run_tfr
from streets.facts import Facts
from streets.truth import LIST, Feature, Made, Row, Truth, Value, flatten, freeze
from tfrkit.features.schema_json import from_json
from tfrkit.testing import reference


def ask_count(made: Made, folder: Path) -> Facts:
    return Facts(count=_run("count", made.path)["records"])


def ask_info(made: Made, folder: Path) -> Facts:
    answer = _run("info", made.path)
    features = None
    if made.truth.kind != "raw":
        features = {
            one["name"] + (LIST if one["list"] else ""): {
                "kind": one["type"], "present": one["present"], "unset": one["unset"]}
            for one in answer["features"]
        }  # fmt: skip
        if made.truth.kind == "sequence_example":
            features = {name: {"kind": facts["kind"]} for name, facts in features.items()}
    return Facts(count=answer["records"], kind=answer["kind"], features=features)


def ask_schema(made: Made, folder: Path) -> Facts:
    answer = _run("schema", made.path)["schema"]
    return Facts(kind=answer["kind"], features=facts_of_schema(from_json(answer)))


def ask_schema_forms(made: Made, folder: Path) -> Facts:
    """Prints every other schema format."""
    if made.truth.kind != "raw":
        for form in ("tfds", "pbtxt", "arrow", "tf", "dali", "vahidk"):
            run_tfr("schema", made.path, "--as", form, "--quiet")
    return Facts()


def ask_stats(made: Made, folder: Path) -> Facts:
    answer = _run("stats", made.path)
    features, problems = {}, []
    for one in answer["features"]:
        name = one["name"] + (LIST if one["list"] else "")
        features[name] = {"kind": one["type"]}
        if made.truth.kind == "example":
            features[name] |= {"present": one["present"], "unset": one["unset"]}
    for one in answer["classes"]:
        feature = made.truth.features.get(one["feature"] + (LIST if one["list"] else ""), Feature())
        if feature.classes is not None and feature.kind == "int64":
            problems += _check_class_names(one, feature.classes)
    splits = {one["name"]: one["records"] for one in answer["splits"]}
    return Facts(
        count=answer["records"],
        kind=answer["kind"],
        splits=splits,
        features=None if made.truth.kind == "raw" else features,
        problems=problems,
    )


def ask_verify(made: Made, folder: Path) -> Facts:
    answer = json.loads(run_tfr("verify", made.path, "--deep", "--format", "json", codes=(0, 1)).stdout)
    # Small images look alike, and a single shard is not a complete set.
    findings = [one for one in answer["findings"] if one["kind"] != "near_duplicate"]
    return Facts(count=answer["records"], problems=[f"{one['kind']}: {one['cause']}" for one in findings])


def ask_head(made: Made, folder: Path) -> Facts:
    return Facts(_rows_of_lines(run_tfr("head", made.path, "-n", 99, "--format", "jsonl").stdout, made.truth))


def ask_tail(made: Made, folder: Path) -> Facts:
    return Facts(_rows_of_lines(run_tfr("tail", made.path, "-n", 99, "--format", "jsonl").stdout, made.truth))


def ask_cat(made: Made, folder: Path) -> Facts:
    return Facts(_rows_of_lines(run_tfr("cat", made.path, "--format", "jsonl").stdout, made.truth))


def ask_sample(made: Made, folder: Path) -> Facts:
    return Facts(_rows_of_lines(run_tfr("sample", made.path, "-n", 99, "--format", "jsonl").stdout, made.truth))


def ask_sql(made: Made, folder: Path) -> Facts:
    answer = _run("sql", f"select * from '{made.path}'")
    rows = []
    for row in answer["rows"]:
        row = row if isinstance(row, Mapping) else dict(zip([c["name"] for c in answer["columns"]], row, strict=True))
        rows.append(_freeze_json_row(_without_null(row), made.truth))
    return Facts(rows)


def ask_sql_names(made: Made, folder: Path) -> Facts:
    """Class names are columns."""
    problems = []
    for name, feature in made.truth.features.items():
        if feature.classes is None or feature.shape != () or feature.kind != "int64" or made.truth.kind != "example":
            continue
        answer = _run("sql", f'select "{name}" a, "{name}_name" b from \'{made.path}\'')
        for row in answer["rows"]:
            label, found = (row["a"], row["b"]) if isinstance(row, Mapping) else row
            if found != feature.classes[label]:
                problems.append(f"{name}_name of {label} is {found!r}, expected {feature.classes[label]!r}")
    return Facts(problems=problems[:2])


def ask_sql_places(made: Made, folder: Path) -> Facts:
    """File and split of each record, and the counts by split; one without a split is NULL."""
    answer = _run("sql", f"select _record, _file, _split from '{made.path}' order by _record")
    names = [column["name"] for column in answer["columns"]]
    rows = [row if isinstance(row, Mapping) else dict(zip(names, row, strict=True)) for row in answer["rows"]]
    expected = [len(shard.records) for shard in made.shards if shard.records]
    found = [len(list(group)) for _, group in groupby(rows, lambda row: row["_file"])]
    problems = [] if found == expected else [f"files have {found} records, expected {expected}"]
    problems += [f"no file {row['_file']}" for row in rows[:1] if not Path(row["_file"]).is_file()]
    splits = Counter(row["_split"] for row in rows if row["_split"] is not None)
    return Facts(count=len(rows), splits=splits, problems=problems)


def ask_sql_count(made: Made, folder: Path) -> Facts:
    answer = _run("sql", f"select count(*) n from '{made.path}'")
    return Facts(count=next(iter(flatten([list(row.values()) if isinstance(row, Mapping) else row
                                         for row in answer["rows"]]))))  # fmt: skip


def ask_diff(made: Made, folder: Path) -> Facts:
    """Against a bare file of the same records."""
    bare = folder / "bare.tfrecord"
    bare.write_bytes(reference.write_frames(list(made.records)))
    problems = []
    for one, other in ((made.path, bare), (bare, made.path)):
        answer = json.loads(run_tfr("diff", one, other, "--format", "json", codes=(0, 1)).stdout)
        if not answer["same"] or answer["equal"] != len(made.rows):
            found = {fact: answer[fact] for fact in ("equal", "recoded", "changed", "added", "removed", "schema")}
            problems.append(f"diff against the same records finds {found!r:.300}")
    return Facts(problems=problems)


def ask_index(made: Made, folder: Path) -> Facts:
    files = _run("index", made.path)["files"]
    return Facts(count=sum(one["records"] for one in files))


def ask_sheet(made: Made, folder: Path) -> Facts:
    answer = json.loads(
        run_tfr("sheet", made.path, "-o", folder / "sheet.png", "--format", "json", codes=(0, 1)).stdout
    )
    problems = [f"tile {one['number']}: {one['cause']}" for one in answer["tiles"] if one["cause"]]
    names = {name for feature in made.truth.features.values() for name in feature.classes or ()}
    labels = [one["label"] for one in answer["tiles"]]
    has_scalar_class = any(f.classes and f.shape == () and f.kind == "int64" for f in made.truth.features.values())
    if has_scalar_class and not all(any(name in str(label) for name in names) for label in labels):
        problems.append(f"tiles are labelled {labels[:3]}, expected class names")
    if len(answer["tiles"]) != len(made.rows):
        problems.append(f"{len(answer['tiles'])} tiles, expected {len(made.rows)}")
    return Facts(problems=problems)


def thaw_json(value: Any, feature: Feature) -> Value:
    """A value as `tfr head` documents its JSON form."""
    if isinstance(value, Mapping) and set(value) == {"tensor"}:
        tensor = value["tensor"]
        items = [_thaw_item(item) for item in flatten(tensor["values"])]
        if items and isinstance(items[0], (bytes, str)):
            return ("bytes", tuple(tensor["shape"]), tuple(i.encode() if isinstance(i, str) else i for i in items))
        return (tensor["dtype"], tuple(tensor["shape"]), np.array(items, tensor["dtype"]).tobytes())
    if isinstance(value, list):
        return freeze([thaw_item(item) for item in value], feature)
    return freeze(_thaw_item(value), feature)


def thaw_item(item: Any) -> Any:
    return [thaw_item(one) for one in item] if isinstance(item, list) else _thaw_item(item)


def freeze_json_rows(lines: str, truth: Truth) -> list[Row]:
    return _rows_of_lines(lines, truth)


def _thaw_item(item: Any) -> Any:
    if isinstance(item, Mapping) and set(item) == {"base64"}:
        return base64.b64decode(item["base64"])
    if isinstance(item, Mapping) and set(item) == {"float"}:
        return float(item["float"])
    return item


def _freeze_json_row(row: Mapping[str, Any], truth: Truth) -> Row:
    if truth.kind != "sequence_example":
        return {name: thaw_json(value, truth.features.get(name, Feature())) for name, value in row.items()}
    frozen: Row = {
        name: thaw_json(value, truth.features.get(name, Feature())) for name, value in (row["context"] or {}).items()
    }
    for name, frames in (row["feature_lists"] or {}).items():
        feature = truth.features.get(name + LIST, Feature())
        frozen[name + LIST] = ("frames", tuple(thaw_json(frame, feature) for frame in _split_frames(frames)))
    return frozen


def _split_frames(frames: Any) -> list[Any]:
    """Frames of one shape are one tensor, the frame being its first dimension."""
    if not isinstance(frames, Mapping):
        return list(frames)
    tensor = frames["tensor"]
    count, *shape = tensor["shape"]
    size = len(tensor["values"]) // max(1, count)
    parts = [tensor["values"][k * size : (k + 1) * size] for k in range(count)]
    return [{"tensor": {**tensor, "shape": shape, "values": part}} for part in parts]


def _rows_of_lines(lines: str, truth: Truth) -> list[Row]:
    return [_freeze_json_row(json.loads(line), truth) for line in lines.splitlines()]


def _without_null(row: Mapping[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in row.items() if value is not None}
    return {
        name: _without_null(value) if name in ("context", "feature_lists") and isinstance(value, Mapping) else value
        for name, value in kept.items()
    }


def _check_class_names(found: Mapping[str, Any], classes: tuple[str, ...]) -> list[str]:
    names = {int(one["value"]): one["name"] for one in found["classes"]}
    return [
        f"class {value} of {found['feature']} is named {name!r}, expected {classes[value]!r}"
        for value, name in names.items()
        if name != classes[value]
    ][:1]


def _run(*arguments: object) -> Any:
    return json.loads(run_tfr(*arguments, "--format", "json", "--quiet").stdout)
