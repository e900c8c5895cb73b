"""Askers that write the dataset in another form and read or build it back."""

from __future__ import annotations

import csv
import tarfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import tfrkit as tfr
from streets.ask_commands import freeze_json_rows
from streets.ask_python import freeze_arrow
from streets.building import run_tfr
from streets.columns import is_bytes_list, is_column, is_dense
from streets.facts import Facts
from streets.truth import Feature, Made, Row, Value, freeze, freeze_row


def ask_jsonl(made: Made, folder: Path) -> Facts:
    out = folder / "out.jsonl"
    run_tfr("export", "jsonl", made.path, "-o", out, "--quiet")
    return Facts(freeze_json_rows(out.read_text(encoding="utf-8"), made.truth))


def ask_jsonl_back(made: Made, folder: Path) -> Facts:
    run_tfr("export", "jsonl", made.path, "-o", folder / "out.jsonl", "--quiet")
    return _build_back(made, folder, "table", folder / "out.jsonl")


def ask_csv_back(made: Made, folder: Path) -> Facts:
    run_tfr("export", "csv", made.path, "-o", folder / "out.csv", "--quiet")
    return _build_back(made, folder, "table", folder / "out.csv", *_floats_option(made))


def ask_parquet(made: Made, folder: Path) -> Facts:
    import pyarrow.parquet

    run_tfr("export", "parquet", made.path, "-o", folder / "out.parquet", "--quiet")
    return Facts(freeze_arrow(pyarrow.parquet.read_table(folder / "out.parquet"), made.truth))


def ask_parquet_back(made: Made, folder: Path) -> Facts:
    selected = [name for name, feature in made.truth.features.items() if is_column(name, feature)]
    words = [word for name in selected for word in ("--select", name)]
    run_tfr("export", "parquet", made.path, "-o", folder / "out.parquet", *words, "--quiet")
    return _build_back(made, folder, "table", folder / "out.parquet", *_floats_option(made))


def ask_tables_by_split(made: Made, folder: Path) -> Facts:
    """One file for each split."""
    splits: dict[str, int] = {}
    for kind in ("jsonl", "csv"):
        out = folder / f"tables_{kind}"
        run_tfr("export", kind, made.path, "-o", f"{out}/", "--quiet")
        splits = {path.stem: _count_rows(path) for path in sorted(out.iterdir())}
        if splits != dict(made.splits) and made.is_certain:
            break
    return Facts(splits=splits if made.is_certain else None)


def ask_npz(made: Made, folder: Path) -> Facts:
    run_tfr("export", "npz", made.path, "-o", folder / "out.npz", "--quiet")
    with np.load(folder / "out.npz", allow_pickle=False) as file:
        arrays = dict(file)
    rows: list[Row] = [{} for _ in made.rows]
    for name, feature in made.truth.features.items():
        for number, row in enumerate(rows):
            found, value = _pick(arrays, name, number, feature)
            if found:
                row[name] = value
    return Facts(rows)


def ask_npz_back(made: Made, folder: Path) -> Facts:
    selected = [name for name, feature in made.truth.features.items() if is_dense(name, feature)]
    words = [word for name in selected for word in ("--select", name)]
    run_tfr("export", "npz", made.path, "-o", folder / "out.npz", *words, "--quiet")
    return _build_back(made, folder, "arrays", folder / "out.npz", *_floats_option(made))


def ask_webdataset(made: Made, folder: Path) -> Facts:
    """One sample for each record, with the stored bytes of its picture."""
    run_tfr("export", "webdataset", made.path, "-o", folder / "out.tar", "--quiet")
    with tarfile.open(folder / "out.tar") as archive:
        members = {one.name: archive.extractfile(one).read() for one in archive if one.isfile()}  # type: ignore[union-attr]
    problems = _find_missing_pictures(made, set(members.values()))
    return Facts(count=len({name.partition(".")[0] for name in members}), problems=problems)


def ask_webdataset_back(made: Made, folder: Path) -> Facts:
    """Archives are named for their splits, which can be kept."""
    out = folder / ("out" if len(made.splits) > 1 else "out.tar")
    run_tfr("export", "webdataset", made.path, "-o", out, "--quiet")
    return _build_back(made, folder, "webdataset", out, *(["--split-names"] if len(made.splits) > 1 else []))


def ask_images_back(made: Made, folder: Path) -> Facts:
    """Class folders are restored; splits add one folder level."""
    out = folder / "images"
    run_tfr("export", "images", made.path, "-o", out, "--quiet")
    names = [name for name in made.splits if (out / name).is_dir()]
    options = ["--split-folders"] if names else []
    return _build_back(made, folder, "class-folders", out, *options)


def ask_images(made: Made, folder: Path) -> Facts:
    """Every image is a file with the stored bytes."""
    run_tfr("export", "images", made.path, "-o", folder / "images", "--quiet")
    found = {path.read_bytes() for path in (folder / "images").rglob("*") if path.is_file()}
    return Facts(problems=_find_missing_pictures(made, found))


def ask_voc_back(made: Made, folder: Path) -> Facts:
    out = folder / "voc"
    run_tfr("export", "voc", made.path, "-o", out, "--quiet")
    kind = "voc-seg" if "image/segmentation/class/encoded" in made.truth.features else "voc-det"
    options: list[object] = ["--classes", out / "classes.txt"] if (out / "classes.txt").exists() else []
    return _build_back(made, folder, kind, out, *options)


def ask_yolo_back(made: Made, folder: Path) -> Facts:
    run_tfr("export", "yolo", made.path, "-o", folder / "yolo", "--quiet")
    return _build_back(made, folder, "yolo", folder / "yolo")


def ask_coco_back(made: Made, folder: Path) -> Facts:
    out = folder / "coco"
    run_tfr("export", "coco", made.path, "-o", out, "--quiet")
    masks = ["--masks"] if "image/object/mask" in made.truth.features else []
    return _build_back(made, folder, "coco", out, *masks)


def _build_back(made: Made, folder: Path, kind: str, source: Path, *options: object) -> Facts:
    out = folder / "back"
    run_tfr("build", kind, source, "-o", out, "--order", "source", "--jobs", 1, "--quiet", *options)
    ds = tfr.open(out)
    rows = [freeze_row(row, made.truth.features) for row in ds]
    splits = dict(ds.splits) if len(made.splits) > 1 and kind not in ("table", "arrays") else None
    return Facts(rows, is_ordered=False, count=len(ds), splits=splits)


def _count_rows(path: Path) -> int:
    with open(path, encoding="utf-8", newline="") as file:
        return len(list(csv.DictReader(file))) if path.suffix == ".csv" else len(file.read().split("\n")) - 1


def _find_missing_pictures(made: Made, found: set[bytes]) -> list[str]:
    problems = []
    for name, feature in made.truth.features.items():
        if feature.logical == "image" and feature.encoding == "list":
            values = [row[name] for row in made.rows]
            stored = [data for value in values if value for one in _frames(value) for data in one[2]]
            missing = [data for data in stored if data not in found]
            if missing:
                problems.append(f"{len(missing)} of {len(stored)} pictures of {name} are not among the files")
    return problems


def _floats_option(made: Made) -> list[str]:
    """The option `build table` requires when float32 cannot hold every number."""
    names = [name for name, feature in made.truth.features.items() if feature.dtype == "float64"]
    numbers = [np.frombuffer(value[2]) for name in names for row in made.rows if (value := row.get(name))]
    return ["--floats", "float64"] if any((one != one.astype("float32")).any() for one in numbers) else []


def _pick(arrays: Mapping[str, Any], name: str, number: int, feature: Feature) -> tuple[bool, Value]:
    """Whether a row of an .npz has the feature, and its value, as the help of `tfr export npz` describes the arrays."""
    presence = arrays.get(f"{name}/presence")
    if presence is not None and presence[number] < 2:
        return bool(presence[number]), None
    if name in arrays:
        value = arrays[name][number]
        return True, freeze(bytes(value) if isinstance(value, np.bytes_) else value, feature)
    if f"{name}/values/values" in arrays or f"{name}/values/offsets" in arrays:  # a list in a list
        inner = {key.removeprefix(f"{name}/values"): array for key, array in arrays.items()}
        inner = {name + key: array for key, array in inner.items() if key.startswith("/")}
        item = replace(feature, shape=()) if is_bytes_list(feature) else feature
        start, stop = arrays[f"{name}/row_splits"][number : number + 2].tolist()
        items = [_pick(inner, name, k, item) for k in range(start, stop)]
        if is_bytes_list(feature):
            return True, ("bytes", (len(items),), tuple(value[2][0] for _, value in items if value))
        return items[0]
    if f"{name}/values" not in arrays and f"{name}/offsets" not in arrays:
        return False, None
    edges = arrays.get(f"{name}/row_splits")
    start, stop = (number, number + 1) if edges is None else (int(edges[number]), int(edges[number + 1]))
    if f"{name}/offsets" in arrays:
        offsets, data = arrays[f"{name}/offsets"], arrays[f"{name}/bytes"]
        items = [data[offsets[k] : offsets[k + 1]].tobytes() for k in range(start, stop)]
        return True, freeze(items[0] if feature.shape == () and len(items) == 1 else items, feature)
    values = arrays[f"{name}/values"][start:stop]
    if f"{name}/shapes" in arrays:
        values = values.reshape(arrays[f"{name}/shapes"][number])
    return True, freeze(values[0] if feature.shape == () and np.shape(values) == (1,) else values, feature)


def _frames(value: Any) -> list[Any]:
    return list(value[1]) if value[0] == "frames" else [value]
