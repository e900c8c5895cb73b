"""Sources of samples for `tfr.build`.

Example:
    >>> source = file_names("captcha/images", label=r"^(?P<text>.{5})")
"""

from __future__ import annotations

import importlib
import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfrkit.images.encode import ImageOptions
    from tfrkit.sources.arrays import Arrays as arrays
    from tfrkit.sources.class_folders import ClassFolders as class_folders
    from tfrkit.sources.coco import Coco as coco
    from tfrkit.sources.csv_boxes import CsvBoxes as csv_boxes
    from tfrkit.sources.file_names import FileNames as file_names
    from tfrkit.sources.frames import Frames as frames
    from tfrkit.sources.frames_table import FramesTable as frames_table
    from tfrkit.sources.iterable import Rows as rows
    from tfrkit.sources.table import Table as table
    from tfrkit.sources.tfrecords import TFRecords as tfrecord
    from tfrkit.sources.voc_det import VocDet as voc_det
    from tfrkit.sources.voc_seg import VocSeg as voc_seg
    from tfrkit.sources.webdataset import WebDataset as webdataset
    from tfrkit.sources.yolo import Yolo as yolo

# Public name: its module and its name there. Imported on first use, because reading a dataset needs no source.
_PLACES = {
    "ImageOptions": ("tfrkit.images.encode", "ImageOptions"),
    "arrays": ("tfrkit.sources.arrays", "Arrays"),
    "class_folders": ("tfrkit.sources.class_folders", "ClassFolders"),
    "coco": ("tfrkit.sources.coco", "Coco"),
    "csv_boxes": ("tfrkit.sources.csv_boxes", "CsvBoxes"),
    "file_names": ("tfrkit.sources.file_names", "FileNames"),
    "frames": ("tfrkit.sources.frames", "Frames"),
    "frames_table": ("tfrkit.sources.frames_table", "FramesTable"),
    "rows": ("tfrkit.sources.iterable", "Rows"),
    "table": ("tfrkit.sources.table", "Table"),
    "tfrecord": ("tfrkit.sources.tfrecords", "TFRecords"),
    "voc_det": ("tfrkit.sources.voc_det", "VocDet"),
    "voc_seg": ("tfrkit.sources.voc_seg", "VocSeg"),
    "webdataset": ("tfrkit.sources.webdataset", "WebDataset"),
    "yolo": ("tfrkit.sources.yolo", "Yolo"),
}

__all__ = [
    "ImageOptions",
    "arrays",
    "class_folders",
    "coco",
    "csv_boxes",
    "file_names",
    "frames",
    "frames_table",
    "rows",
    "table",
    "tfrecord",
    "voc_det",
    "voc_seg",
    "webdataset",
    "yolo",
]


class _Late:
    """A source that is imported when it is first used.

    Sources have the names of their modules. Importing a module sets it as an attribute of its package; `__set__`
    ignores that, so that the name still refers to the source.
    """

    def __init__(self, module: str, name: str) -> None:
        self._place = module, name

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        module, name = self._place
        return getattr(importlib.import_module(module), name)

    def __set__(self, owner: Any, value: Any) -> None:
        pass


class _Sources(ModuleType):
    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *__all__})


for _name, _place in _PLACES.items():
    setattr(_Sources, _name, _Late(*_place))
sys.modules[__name__].__class__ = _Sources
