"""The commands of `tfr` as functions: `tfrkit.tools.repair("bad.tfrecord", "good.tfrecord")`."""

from tfrkit.engines.part import Part
from tfrkit.ops.count import count_records as count
from tfrkit.ops.diff.diff import diff
from tfrkit.ops.edit.append import append
from tfrkit.ops.edit.dedupe import dedupe
from tfrkit.ops.edit.edit import edit
from tfrkit.ops.export.coco import export_coco
from tfrkit.ops.export.images import export_images
from tfrkit.ops.export.npz import export_npz
from tfrkit.ops.export.parquet import export_parquet
from tfrkit.ops.export.rows import export_csv, export_jsonl
from tfrkit.ops.export.voc import export_voc
from tfrkit.ops.export.webdataset import export_webdataset
from tfrkit.ops.export.yolo import export_yolo
from tfrkit.ops.query.query import sql
from tfrkit.ops.repair import repair
from tfrkit.ops.reshape.convert import convert
from tfrkit.ops.reshape.merge import merge
from tfrkit.ops.reshape.reshard import reshard
from tfrkit.ops.reshape.sample_records import sample
from tfrkit.ops.reshape.shuffle import shuffle
from tfrkit.ops.reshape.split import split
from tfrkit.ops.sheet import sheet
from tfrkit.ops.verify.verify import verify
from tfrkit.storage.options import use_storage
from tfrkit.storage.pace import count_requests
from tfrkit.view.stats import stats

__all__ = [
    "Part",
    "append",
    "convert",
    "count",
    "count_requests",
    "dedupe",
    "diff",
    "edit",
    "export_coco",
    "export_csv",
    "export_images",
    "export_jsonl",
    "export_npz",
    "export_parquet",
    "export_voc",
    "export_webdataset",
    "export_yolo",
    "merge",
    "repair",
    "reshard",
    "sample",
    "sheet",
    "shuffle",
    "split",
    "sql",
    "stats",
    "use_storage",
    "verify",
]
