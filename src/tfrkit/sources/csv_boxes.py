"""The source `csv-boxes`: one CSV file with one line per box, as written by `xml_to_csv.py` of many tutorials.

filename,width,height,class,xmin,ymin,xmax,ymax
a.jpg,640,480,cat,12,30,200,310
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Literal

from tfrkit._limits import LIMITS
from tfrkit.errors import Hint, SourceError, Step
from tfrkit.features.labels import LabelMap, make_class_map
from tfrkit.images.encode import ImageOptions
from tfrkit.sources.base import Problem, Scan
from tfrkit.sources.boxes import BoxFitter, BoxPolicy, Corners
from tfrkit.sources.class_files import load_classes
from tfrkit.sources.csv_file import CsvFile, open_csv
from tfrkit.sources.description import DescribedSource
from tfrkit.sources.detection import (
    DetectionGatherer,
    FoundObject,
    describe_classes,
)
from tfrkit.sources.voc_det import FIELDS
from tfrkit.sources.walk import IMAGE_SUFFIXES, find_files, require_folder
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.inputs import fetch_input, read_ahead, stat_input

Units = Literal["pixels", "parts"]
Unlisted = Literal["skip", "keep"]

_SIDES = ("xmin", "ymin", "xmax", "ymax")
_NEEDED = ("filename", "class", *_SIDES)
# Used if present: the expected size of the image, and the other VOC attributes of an object.
_OPTIONAL = ("width", "height", "difficult", "truncated", "pose")


_HEADERLESS = "give it a first line, such as filename,width,height,class,xmin,ymin,xmax,ymax"


@dataclass
class _ListedImage:
    """The rows of one image: its first line, its size and its objects."""

    line: int
    size: tuple[int | None, int | None] | None = None
    objects: list[FoundObject] = field(default_factory=list)
    is_bad: bool = False


@dataclass(frozen=True)
class CsvBoxes(DescribedSource):
    """Images with boxes in a CSV file with a header, one line for each box.

    A row with empty class and box cells is an image without objects.

    Attributes:
        path: The CSV file. Columns: filename, class, xmin, ymin, xmax, ymax; optionally width and height, which are
            compared with the image, and difficult, truncated, pose.
        image_root: The folder that file names are relative to; by default that of the CSV file.
        columns: Columns that have other names in the file: {"class": "label"}.
        classes: Class names, a file that lists them, or a label map .pbtxt; any other class stops the build. By default
            the names that occur, sorted.
        label_offset: The id of the first class; by default 1, unless the file of classes defines ids.
        units: "pixels" if corners are in pixels, "parts" if they are fractions of width and height, from 0 to 1.
        unlisted: Images below `image_root` that no row names: "skip" leaves them out, "keep" adds them without
            objects.
        boxes: What to do with boxes that are not inside their image: "fail", "clip" or "drop".
        separator: The separator of cells; detected by default.
        encoding: The encoding of the file.
        images: How images are stored.
    """

    path: str
    _: KW_ONLY
    image_root: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    classes: str | Sequence[str] | None = None
    label_offset: int | None = None
    units: Units = "pixels"
    unlisted: Unlisted = "skip"
    boxes: BoxPolicy = "fail"
    separator: str | None = None
    encoding: str = "utf-8"
    images: ImageOptions = field(default_factory=ImageOptions)

    kind = "csv-boxes"

    def __post_init__(self) -> None:
        super().__post_init__()
        BoxFitter(self.boxes)
        if self.units not in ("pixels", "parts"):
            raise ValueError(f"units expected 'pixels' or 'parts', got {self.units!r:.64}")
        if self.unlisted not in ("skip", "keep"):
            raise ValueError(f"unlisted expected 'skip' or 'keep', got {self.unlisted!r:.64}")
        known = (*_NEEDED, *_OPTIONAL)
        for name in self.columns:
            if name not in known:
                raise ValueError(f"columns expected some of {', '.join(known)}, got {name!r:.64}")

    def scan(self, scratch: str) -> Scan:
        """Read every row, and the header of every image."""
        root = self.image_root or os.path.dirname(self.path) or "."
        if has_scheme(self.path):
            fetch_input(self.path, scratch)
        file = open_csv(self.path, separator=self.separator, encoding=self.encoding, headerless=_HEADERLESS)
        require_folder(root, "images")
        rows = _BoxRows(file, self._find_columns(file))
        self._check_units(rows)
        gatherer = DetectionGatherer(root, BoxFitter(self.boxes), exif=self.images.exif)
        gatherer.problems += rows.problems

        def files_of(entry: tuple[str, _ListedImage]) -> list[str]:
            file = _place_of(entry[0])
            return [] if file.startswith("..") else [os.path.join(root, file)]

        for name, listed in read_ahead(rows.images.items(), files_of, head_nbytes=LIMITS.image_head_nbytes):
            self._gather(gatherer, root, name, listed)
        notes = [*file.notes, *rows.notes, *self._take_unlisted(gatherer, root, rows.images)]
        labels = self._decide_classes(gatherer.counts)
        return gatherer.make_scan(
            f"rows of boxes in {self.path}",
            labels,
            self.images,
            fields=FIELDS,
            notes=notes,
            about_labels=describe_classes(labels),
        )

    def _find_columns(self, file: CsvFile) -> dict[str, int]:
        """Return the index of each column; raises `SourceError` if the header lacks a required column."""
        found = {}
        missing = []
        for name in (*_NEEDED, *_OPTIONAL):
            column = self.columns.get(name, name)
            if column in file.columns:
                found[name] = file.columns.index(column)
            elif name in _NEEDED or name in self.columns:
                missing.append(column)
        if missing:
            raise SourceError(
                f"header expected the columns {', '.join(map(repr, missing))}, got {', '.join(file.columns)[:200]}",
                shard=f"{self.path}, line 1",
                hint=Hint(Step("name the columns: {columns}", columns=...)),
            )
        return found

    def _check_units(self, rows: _BoxRows) -> None:
        """Raise if no coordinate is greater than 1: these are fractions of the image size, not pixels."""
        if self.units == "pixels" and rows.num_boxes and rows.furthest <= 1:
            raise SourceError(
                "boxes expected in pixels, got no corner beyond 1",
                shard=self.path,
                hint=Hint(Step("if they are parts of width and height: {units}", units="parts")),
            )

    def _gather(self, gatherer: DetectionGatherer, root: str, name: str, listed: _ListedImage) -> None:
        where = f"{self.path}, line {listed.line}"
        file = _place_of(name)
        if os.path.isabs(file) or file.split("/")[0] == "..":
            reason = f"filename expected a path below the images, got {name!r:.64}"
            gatherer.problems.append(
                Problem(where, reason, input=name, kind="file names point outside the folder of images")
            )
        elif not _exists(os.path.join(root, file)):
            reason = f"no image {file!r:.200} in {root}"
            hint = Hint(Step("name the folder where file names start: {image_root}", image_root=...))
            gatherer.problems.append(Problem(where, reason, input=name, kind="images are missing", hint=hint))
        elif not listed.is_bad:
            gatherer.add(
                file,
                file,
                listed.objects,
                source_id=os.path.basename(file),
                declared=listed.size or (None, None),
                declared_at=where,
                are_parts=self.units == "parts",
            )

    def _take_unlisted(self, gatherer: DetectionGatherer, root: str, listed: Mapping[str, _ListedImage]) -> list[str]:
        """Add the images that no row names without objects, or return a note about them."""
        known = set(map(_place_of, listed))
        others = [file.key for file in find_files(root, IMAGE_SUFFIXES).files if file.key not in known]
        if self.unlisted == "skip":
            if not others:
                return []
            what = f"images that no row names, left out: {len(others):,}; without objects: {{unlisted}}"
            return [Hint(Step(what, unlisted="keep"))]
        for file in others:
            gatherer.add(file, file, [], source_id=os.path.basename(file))
        return []

    def _decide_classes(self, counts: Mapping[str, int]) -> LabelMap:
        if self.classes is not None:
            return load_classes(self.classes, label_offset=self.label_offset)
        return make_class_map(counts, offset=1 if self.label_offset is None else self.label_offset)


def _place_of(name: str) -> str:
    return os.path.normpath(name.replace("\\", "/"))


def _exists(path: str) -> bool:
    try:
        stat_input(path)
    except OSError:
        return False
    return True


class _BoxRows:
    """The rows of a file grouped by image, in the order of their first rows, and the problems of rows."""

    def __init__(self, file: CsvFile, places: Mapping[str, int]) -> None:
        self.images: dict[str, _ListedImage] = {}
        self.problems: list[Problem] = []
        self.num_boxes = 0
        self.furthest = 0.0
        self._path = file.path
        self._places = places
        unused = [name for index, name in enumerate(file.columns) if index not in places.values()]
        self.notes = [f"columns that are not used: {', '.join(unused)}"] if unused else []
        for line, cells in file.rows():
            if len(cells) != len(file.columns):
                reason = f"row expected {len(file.columns)} cells, got {len(cells)}"
                self.problems.append(Problem(f"{file.path}, line {line}", reason, input=None))
                # The image lacks this box, so it is bad if the row names it.
                name = cells[places["filename"]].strip() if places["filename"] < len(cells) else ""
                if name:
                    self._image_of(name, line).is_bad = True
                continue
            self._add(line, {name: cells[index].strip() for name, index in places.items()})

    def _image_of(self, name: str, line: int) -> _ListedImage:
        return self.images.setdefault(name, _ListedImage(line))

    def _add(self, line: int, row: Mapping[str, str]) -> None:
        where = f"{self._path}, line {line}"
        name = row["filename"]
        if not name:
            self.problems.append(Problem(where, "filename expected, got an empty cell", input=None))
            return
        image = self._image_of(name, line)
        try:
            size = _read_size(row)
            if image.size not in (None, size):
                raise ValueError(f"image {name!r:.200} expected one width and height, got another in line {image.line}")
            image.size = size
            if any(row[part] for part in ("class", *_SIDES)):
                image.objects.append(self._read_object(row, where))
        except ValueError as error:
            self.problems.append(Problem(where, str(error), input=name))
            image.is_bad = True

    def _read_object(self, row: Mapping[str, str], where: str) -> FoundObject:
        if not row["class"]:
            raise ValueError("class expected, got an empty cell")
        xmin, ymin, xmax, ymax = (_read_number(row, side) for side in _SIDES)
        corners: Corners = (xmin, ymin, xmax, ymax)
        self.num_boxes += 1
        self.furthest = max(self.furthest, *map(abs, corners))
        flags: dict[str, int | float | str] = {flag: _read_flag(row, flag) for flag in ("difficult", "truncated")}
        return FoundObject(row["class"], corners, where, {**flags, "view": row.get("pose", "")})


def _read_number(row: Mapping[str, str], name: str) -> float:
    text = row[name]
    try:
        # float() accepts 3_0 as 30; in a CSV file that is a mistake.
        value = math.nan if "_" in text else float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"{name} expected a number, got {f'{text!r:.64}' if text else 'an empty cell'}")
    return value


def _read_flag(row: Mapping[str, str], name: str) -> int:
    text = row.get(name, "")
    if text not in ("", "0", "1"):
        raise ValueError(f"{name} expected 0 or 1, got {text!r:.64}")
    return int(text or "0")


def _read_size(row: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Return the expected width and height of the image; None for a cell that is empty or 0."""
    sizes = []
    for name in ("width", "height"):
        value = _read_number(row, name) if row.get(name) else 0.0
        if value < 0 or value != int(value):
            raise ValueError(f"{name} expected a number of pixels, got {row[name]!r:.64}")
        sizes.append(int(value) or None)
    return sizes[0], sizes[1]
