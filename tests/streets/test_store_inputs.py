"""A build from a store gives the bytes of a build from the local folder, for every source that reads files."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from streets import make_pictures, make_tables
from streets.building import from_store
from streets.storages import STORAGES, Storage
from streets.truth import Made

MAKERS = (
    make_pictures.make_class_folders,
    make_pictures.make_class_folders_exif,
    make_pictures.make_names_class,
    make_pictures.make_names_text,
    make_pictures.make_voc_seg,
    make_pictures.make_voc_det,
    make_pictures.make_voc_det_exif,
    make_pictures.make_coco,
    make_pictures.make_yolo,
    make_pictures.make_csv_boxes,
    make_pictures.make_frames,
    make_pictures.make_frames_table,
    make_tables.make_table_csv,
    make_tables.make_table_jsonl,
    make_tables.make_table_parquet,
)


@pytest.mark.parametrize("make", MAKERS)
def test_build_from_a_store_equals_a_build_from_the_folder(
    tmp_path: Path, make: Callable[[Path, Storage], Made]
) -> None:
    make(made(tmp_path / "here"), STORAGES["folder_north"])
    from_store(make)(made(tmp_path / "store"), STORAGES["folder_north"])
    assert read_built(tmp_path / "store", "s3://bucket/inputs") == read_built(tmp_path / "here", str(tmp_path / "here"))


def made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def read_built(folder: Path, inputs: str) -> dict[str, bytes]:
    """Return the files of a dataset, without what names the place of the inputs or a time."""
    left_out = ("report.json", "inputs.jsonl", ".lock")
    files = [path for path in (folder / "data").rglob("*") if path.is_file() and path.name not in left_out]
    # Options with paths, such as a file of class names, are part of the plan.
    return {
        path.name: re.sub(rb'"plan": "[0-9a-f]+"', b"", path.read_bytes().replace(inputs.encode(), b"INPUTS"))
        for path in files
    }
