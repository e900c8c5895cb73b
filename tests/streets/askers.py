"""Every way to ask what a dataset holds. An asker takes what was made and returns facts in one common form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from streets import ask_commands, ask_exports, ask_python, ask_reshape
from streets.facts import Facts
from streets.truth import Made, Truth

Ask = Callable[[Made, Path], Facts]
Needs = Callable[[Truth], bool]


def _has_anything(truth: Truth) -> bool:
    return True


def _has_examples(truth: Truth) -> bool:
    return truth.kind == "example"


def _has_pictures(truth: Truth) -> bool:
    return any(feature.logical == "image" for feature in truth.features.values())


def _has_class_folders(truth: Truth) -> bool:
    return "image/class/label" in truth.features and truth.features["image/class/label"].classes is not None


def _has_boxes(truth: Truth) -> bool:
    return "image/object/bbox/xmin" in truth.features


def _has_boxes_or_masks(truth: Truth) -> bool:
    return _has_boxes(truth) or "image/segmentation/class/encoded" in truth.features


def _has_keys(truth: Truth) -> bool:
    return "__key__" in truth.features


def _has_records(truth: Truth) -> bool:
    return truth.kind != "raw"


@dataclass(frozen=True)
class Asker:
    """One way to ask; `covers` names its commands and methods, `needs` the required contents of a dataset.

    A heavy asker writes a dataset: it runs for every maker and every storage, not for each pair.
    """

    ask: Ask
    covers: tuple[str, ...] = ()
    needs: Needs = _has_anything
    is_heavy: bool = False


ASKERS: dict[str, Asker] = {
    "open": Asker(ask_python.ask_open, needs=_has_records),
    "slices": Asker(ask_python.ask_slices, needs=_has_records),
    "batches": Asker(ask_python.ask_batches, needs=_has_records),
    "map": Asker(ask_python.ask_map, needs=_has_records),
    "records": Asker(ask_python.ask_records),
    "splits": Asker(ask_python.ask_splits),
    "split_rows": Asker(ask_python.ask_split_rows, needs=_has_records),
    "split_records": Asker(ask_python.ask_split_records),
    "parts": Asker(ask_python.ask_parts, needs=_has_records),
    "decode": Asker(ask_python.ask_decode),
    "to_arrow": Asker(ask_python.ask_to_arrow, ("to_arrow",), _has_records),
    "count": Asker(ask_commands.ask_count, ("count",)),
    "info": Asker(ask_commands.ask_info, ("info",)),
    "schema": Asker(ask_commands.ask_schema, ("schema",)),
    "stats": Asker(ask_commands.ask_stats, ("stats",)),
    "verify": Asker(ask_commands.ask_verify, ("verify",)),
    "cat": Asker(ask_commands.ask_cat, ("cat",)),
    "sql": Asker(ask_commands.ask_sql, ("sql",)),
    "sql_names": Asker(ask_commands.ask_sql_names, ("sql",)),
    "sql_places": Asker(ask_commands.ask_sql_places, ("sql",)),
    "sql_count": Asker(ask_commands.ask_sql_count, ("sql",)),
    "diff": Asker(ask_commands.ask_diff, ("diff",)),
    "head": Asker(ask_commands.ask_head, ("head",), is_heavy=True),
    "tail": Asker(ask_commands.ask_tail, ("tail",), is_heavy=True),
    "sample": Asker(ask_commands.ask_sample, ("sample",), is_heavy=True),
    "schema_forms": Asker(ask_commands.ask_schema_forms, ("schema",), _has_examples, is_heavy=True),
    "index": Asker(ask_commands.ask_index, ("index",), is_heavy=True),
    "view": Asker(ask_python.ask_view, ("view",)),
    "sheet": Asker(ask_commands.ask_sheet, ("sheet",), _has_pictures, is_heavy=True),
    "rewrite": Asker(ask_python.ask_rewrite, ("Writer",), is_heavy=True),
    "export_jsonl": Asker(ask_exports.ask_jsonl, ("export jsonl",), is_heavy=True),
    "jsonl_back": Asker(ask_exports.ask_jsonl_back, ("export jsonl",), _has_records, is_heavy=True),
    "csv_back": Asker(ask_exports.ask_csv_back, ("export csv",), _has_examples, is_heavy=True),
    "export_parquet": Asker(ask_exports.ask_parquet, ("export parquet",), _has_records, is_heavy=True),
    "parquet_back": Asker(ask_exports.ask_parquet_back, ("export parquet",), _has_examples, is_heavy=True),
    "tables_by_split": Asker(ask_exports.ask_tables_by_split, ("export jsonl", "export csv"), is_heavy=True),
    "export_npz": Asker(ask_exports.ask_npz, ("export npz",), _has_examples, is_heavy=True),
    "npz_back": Asker(ask_exports.ask_npz_back, ("export npz",), _has_examples, is_heavy=True),
    "export_webdataset": Asker(ask_exports.ask_webdataset, ("export webdataset",), _has_examples, is_heavy=True),
    "webdataset_back": Asker(ask_exports.ask_webdataset_back, ("export webdataset",), _has_keys, is_heavy=True),
    "export_images": Asker(ask_exports.ask_images, ("export images",), _has_pictures, is_heavy=True),
    "images_back": Asker(ask_exports.ask_images_back, ("export images",), _has_class_folders, is_heavy=True),
    "voc_back": Asker(ask_exports.ask_voc_back, ("export voc",), _has_boxes_or_masks, is_heavy=True),
    "yolo_back": Asker(ask_exports.ask_yolo_back, ("export yolo",), _has_boxes, is_heavy=True),
    "coco_back": Asker(ask_exports.ask_coco_back, ("export coco",), _has_boxes, is_heavy=True),
    "split": Asker(ask_reshape.ask_split, ("split",), is_heavy=True),
    "shuffle": Asker(ask_reshape.ask_shuffle, ("shuffle",), is_heavy=True),
    "reshard": Asker(ask_reshape.ask_reshard, ("reshard",), is_heavy=True),
    "reshard_parts": Asker(ask_reshape.ask_reshard_parts, ("reshard",), is_heavy=True),
    "convert": Asker(ask_reshape.ask_convert, ("convert",), is_heavy=True),
    "merge": Asker(ask_reshape.ask_merge, ("merge",), is_heavy=True),
    "append_edit": Asker(ask_reshape.ask_append_edit, ("append", "edit"), is_heavy=True),
    "append_dedupe": Asker(ask_reshape.ask_append_dedupe, ("append", "dedupe"), is_heavy=True),
    "sample_out": Asker(ask_reshape.ask_sample, ("sample",), is_heavy=True),
    "repair": Asker(ask_reshape.ask_repair, ("repair",), is_heavy=True),
    "build_tfrecord": Asker(ask_reshape.ask_build_tfrecord, ("build tfrecord",), is_heavy=True),
    "sql_save": Asker(ask_reshape.ask_sql_save, ("sql",), _has_records, is_heavy=True),
}
