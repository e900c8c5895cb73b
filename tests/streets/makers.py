"""All ways to make a dataset. A maker takes a folder and a storage and returns what it wrote."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from streets import make_foreign, make_pictures, make_reshaped, make_tables, make_written
from streets.building import from_store
from streets.storages import Storage
from streets.truth import Made

Make = Callable[[Path, Storage], Made]


@dataclass(frozen=True)
class Maker:
    """One way to make a dataset; `covers` names its commands and sources, `layouts` its outputs."""

    make: Make
    covers: tuple[str, ...]
    layouts: frozenset[str] = frozenset({"file", "folder"})

    def can_store(self, storage: Storage) -> bool:
        return storage.layout in self.layouts


_FILE = frozenset({"file"})
_FOLDER = frozenset({"folder"})
_BOTH = _FILE | _FOLDER
_LAYOUTS = {"merge": _FILE, "sample": _FILE, "split": _FOLDER}

MAKERS: dict[str, Maker] = {
    "rows": Maker(make_written.make_rows, ("sources.rows",)),
    "rows_ragged": Maker(make_written.make_rows_ragged, ("sources.rows",)),
    "rows_schema": Maker(make_written.make_rows_schema, ("sources.rows",)),
    "writer_rows": Maker(make_written.make_writer_rows, ("Writer",)),
    "writer_gaps": Maker(make_written.make_writer_gaps, ("Writer",)),
    "writer_columns": Maker(make_written.make_writer_columns, ("Writer",)),
    "writer_sequence": Maker(make_written.make_writer_sequence, ("Writer",)),
    "arrays_npz": Maker(make_tables.make_arrays_npz, ("build arrays", "sources.arrays")),
    "arrays_npy": Maker(make_tables.make_arrays_npy, ("build arrays", "sources.arrays")),
    "arrays_dict": Maker(make_tables.make_arrays_dict, ("sources.arrays",)),
    "table_csv": Maker(make_tables.make_table_csv, ("build table", "sources.table")),
    "table_float64": Maker(make_tables.make_table_float64, ("build table", "sources.table")),
    "table_jsonl": Maker(make_tables.make_table_jsonl, ("build table", "sources.table")),
    "table_parquet": Maker(make_tables.make_table_parquet, ("build table", "sources.table")),
    "table_stream": Maker(make_tables.make_table_stream, ("sources.table",)),
    "webdataset": Maker(make_tables.make_webdataset, ("build webdataset", "sources.webdataset")),
    "class_folders": Maker(make_pictures.make_class_folders, ("build class-folders", "sources.class_folders")),
    "class_folders_exif": Maker(make_pictures.make_class_folders_exif, ("build class-folders",)),
    "names_class": Maker(make_pictures.make_names_class, ("build file-names", "sources.file_names")),
    "names_text": Maker(make_pictures.make_names_text, ("build file-names",)),
    "names_raw": Maker(make_pictures.make_names_raw, ("build file-names", "sources.ImageOptions")),
    "voc_seg": Maker(make_pictures.make_voc_seg, ("build voc-seg", "sources.voc_seg")),
    "voc_det": Maker(make_pictures.make_voc_det, ("build voc-det", "sources.voc_det")),
    "voc_det_exif": Maker(make_pictures.make_voc_det_exif, ("build voc-det",)),
    "coco": Maker(make_pictures.make_coco, ("build coco", "sources.coco")),
    "yolo": Maker(make_pictures.make_yolo, ("build yolo", "sources.yolo")),
    "csv_boxes": Maker(make_pictures.make_csv_boxes, ("build csv-boxes", "sources.csv_boxes")),
    "frames": Maker(make_pictures.make_frames, ("build frames", "sources.frames")),
    "frames_table": Maker(make_pictures.make_frames_table, ("build frames", "sources.frames_table")),
    "class_folders_in_store": Maker(from_store(make_pictures.make_class_folders), ("build class-folders",)),
    "coco_in_store": Maker(from_store(make_pictures.make_coco), ("build coco",)),
    "table_in_store": Maker(from_store(make_tables.make_table_parquet), ("build table",)),
    "build_tfrecord": Maker(make_reshaped.make_build_tfrecord, ("build tfrecord", "sources.tfrecord")),
    "tfds": Maker(make_foreign.make_tfds, ("a TFDS folder",), _FOLDER),
    "bare": Maker(make_foreign.make_bare, ("bare files",)),
    "bare_bfloat16": Maker(make_foreign.make_bare_bfloat16, ("bare files",)),
    "bare_raw": Maker(make_foreign.make_bare_raw, ("bare files",)),
    **{
        f"{verb}_{base}": Maker(make, (verb,), _LAYOUTS.get(verb, _BOTH))
        for (verb, base), make in make_reshaped.RESHAPED.items()
    },
}
