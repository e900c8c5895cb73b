"""Arrays, tables and tar files."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from streets.building import build_from
from streets.make_written import ABSENT, DENSE, NUM_ROWS, Column, build_rows, rows_of, truth_of
from streets.pictures import draw, encode
from streets.placing import place
from streets.storages import Storage
from streets.truth import Feature, Made, Truth

# Columns that an array of one row each can hold.
_ARRAYS = {name: DENSE[name] for name in DENSE if name not in ("flag", "rank0", "tiny", "text", "blob", "words")}
# NumPy stacks Python numbers as float64, and an array keeps its dtype even if float32 holds every value.
_ARRAYS["score"] = Feature("float64"), DENSE["score"][1]
# An empty list would look like one whose length varies.
_ARRAYS["no_values"] = Feature("float32", (0,), encoding="tensor_proto"), lambda i: np.zeros(0, np.float32)


def make_arrays_npz(folder: Path, storage: Storage) -> Made:
    np.savez(folder / "in.npz", **_stacked(_ARRAYS))
    return build_from(folder, storage, truth_of(_ARRAYS), "arrays", folder / "in.npz")


def make_arrays_npy(folder: Path, storage: Storage) -> Made:
    columns: dict[str, Column] = {"data": DENSE["a_float16"]}
    np.save(folder / "in.npy", _stacked(columns)["data"])
    return build_from(folder, storage, truth_of(columns), "arrays", folder / "in.npy")


def make_arrays_dict(folder: Path, storage: Storage) -> Made:
    out = folder / ("data.tfrecord" if storage.layout == "file" else "data")
    build_rows(_stacked(_ARRAYS), out, storage)
    return place(out, truth_of(_ARRAYS), storage)


_CLASSES = ("cat", "dog", "fish")
_CELLS: dict[str, Column] = {
    "id": (Feature(), lambda i: i),
    "score": (Feature("float32"), lambda i: i * 0.5),
    "name": (Feature("bytes", logical="text"), lambda i: f"größe, {i}"),
    "code": (Feature("bytes", logical="text"), lambda i: f"{i:03d}"),
    "gap": (Feature(optional=True), lambda i: i if i % 3 else ABSENT),
    "gap_text": (Feature("bytes", logical="text", optional=True), lambda i: f"t{i}" if i % 3 != 1 else ABSENT),
}
_LABEL: dict[str, Column] = {
    "kind": (Feature(logical="class_label", classes=_CLASSES), lambda i: i % 3),
    "kind/text": (Feature("bytes", logical="text"), lambda i: _CLASSES[i % 3]),
}


def make_table_csv(folder: Path, storage: Storage) -> Made:
    path = folder / "in.csv"
    path.write_text(_to_csv([{**row, "kind": row["kind/text"]} for row in rows_of({**_CELLS, **_LABEL})],
                            [*_CELLS, "kind"]), encoding="utf-8")  # fmt: skip
    return build_from(folder, storage, truth_of({**_CELLS, **_LABEL}), "table", path, "--label-column", "kind")


def make_table_float64(folder: Path, storage: Storage) -> Made:
    """Numbers that float32 does not hold, kept as they are."""
    columns: dict[str, Column] = {
        "id": _CELLS["id"],
        "fine": (Feature("float64", (), "tensor_proto"), lambda i: i + 0.1),
        "gap_fine": (
            Feature("float64", (), "tensor_proto", optional=True),
            lambda i: i / 3 + 1 / 7 if i % 3 != 2 else ABSENT,
        ),
    }
    path = folder / "in.csv"
    path.write_text(_to_csv(rows_of(columns), list(columns)), encoding="utf-8")
    return build_from(folder, storage, truth_of(columns), "table", path, "--floats", "float64")


_LISTS: dict[str, Column] = {
    "list": (Feature("int64", (None,)), lambda i: list(range(i % 3))),
    "texts": (Feature("bytes", (None,), logical="text"), lambda i: [f"ä{k}" for k in range(i % 3 + 1)]),
}


def make_table_jsonl(folder: Path, storage: Storage) -> Made:
    columns = {**_CELLS, **_LISTS}
    path = folder / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows_of(columns)), encoding="utf-8")
    return build_from(folder, storage, truth_of(columns), "table", path)


def make_table_parquet(folder: Path, storage: Storage) -> Made:
    import pyarrow.parquet

    columns: dict[str, Column] = {
        **_CELLS,
        **_LISTS,
        "blob": (Feature("bytes"), lambda i: b"\xff\x00" + bytes([i, 0])),
    }
    pyarrow.parquet.write_table(_to_arrow(columns), folder / "in.parquet")
    return build_from(folder, storage, truth_of(columns), "table", folder / "in.parquet")


class _Stream:
    """What DataFrames of any library have in common; in several batches."""

    def __init__(self, columns: Mapping[str, Column]) -> None:
        self._table = _to_arrow(columns)

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        import pyarrow

        batches = self._table.to_batches(max_chunksize=5)
        return pyarrow.RecordBatchReader.from_batches(self._table.schema, batches).__arrow_c_stream__()


def make_table_stream(folder: Path, storage: Storage) -> Made:
    """A DataFrame: anything with Arrow's stream."""
    columns = {**_CELLS, **_LISTS}
    out = folder / ("data.tfrecord" if storage.layout == "file" else "data")
    build_rows(_Stream(columns), out, storage)
    return place(out, truth_of(columns), storage)


def _to_arrow(columns: Mapping[str, Column]) -> Any:
    import pyarrow

    rows = rows_of(columns)
    table = pyarrow.table({name: [row.get(name) for row in rows] for name in columns})
    index = table.schema.get_field_index("score")
    return table.set_column(index, "score", table["score"].cast(pyarrow.float32()))


def make_webdataset(folder: Path, storage: Storage) -> Made:
    columns: dict[str, Column] = {
        "image/encoded": (Feature("bytes", logical="image"), lambda i: encode(draw(i), "PNG")),
        "image/format": (Feature("bytes"), lambda i: "png"),
        "image/height": (Feature(), lambda i: 6),
        "image/width": (Feature(), lambda i: 8),
        "image/channels": (Feature(), lambda i: 3),
        "image/class/label": (Feature(), lambda i: i % 3),
        "text": (Feature("bytes", logical="text"), lambda i: f"größe {i}"),
        "json/id": (Feature(), lambda i: i),
        "json/list": (Feature("int64", (None,)), lambda i: list(range(i % 3 + 1))),
        "npy": (Feature("uint16", (2, 2), "tensor_proto"), lambda i: np.full((2, 2), i, "uint16")),
        "bin": (Feature("bytes"), lambda i: b"\xff\x00" + bytes([i, 0])),
    }
    with tarfile.open(folder / "in.tar", "w") as archive:
        for number, row in enumerate(rows_of(columns)):
            array = io.BytesIO()
            np.save(array, row["npy"])
            document = {"id": row["json/id"], "list": row["json/list"]}
            _add(archive, f"{number:03d}.png", row["image/encoded"])
            _add(archive, f"{number:03d}.cls", str(row["image/class/label"]).encode())
            _add(archive, f"{number:03d}.txt", row["text"].encode())
            _add(archive, f"{number:03d}.json", json.dumps(document).encode())
            _add(archive, f"{number:03d}.npy", array.getvalue())
            _add(archive, f"{number:03d}.bin", row["bin"])
    truth = truth_of(columns)
    keyed = [{**row, "__key__": ("bytes", (), (b"%03d" % n,))} for n, row in enumerate(truth.rows)]
    features = {**truth.features, "__key__": Feature("bytes")}
    return build_from(folder, storage, Truth(features, keyed, keeps_order=True), "webdataset", folder / "in.tar")


def _stacked(columns: Mapping[str, Column]) -> dict[str, Any]:
    return {name: np.stack([value(i) for i in range(NUM_ROWS)]) for name, (_, value) in columns.items()}


def _to_csv(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> str:
    def cell(value: object) -> str:
        text = "" if value is None else str(value)
        return f'"{text}"' if "," in text else text

    lines = [",".join(cell(row.get(name)) for name in names) for row in rows]
    return "\n".join([",".join(names), *lines]) + "\n"


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    info = tarfile.TarInfo(name)
    info.size = len(data)
    archive.addfile(info, io.BytesIO(data))
