"""The source `frames`: folders of video frames. Each folder becomes a SequenceExample with a list of its frames.

Features are named as in MediaPipe's MediaSequence: image/encoded and image/timestamp in the feature lists;
clip/media_id, clip/label, and the format and size of images in the context. `frames_table` reads tables of frames.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from tfrkit._types import Row
from tfrkit.errors import SourceError
from tfrkit.features.labels import LabelMap, make_class_map
from tfrkit.features.schema import Schema
from tfrkit.features.spec import Spec
from tfrkit.images.encode import ImageOptions, ImageStore
from tfrkit.sources.base import Facts, Item, ItemsBuilder, Problem, Scan
from tfrkit.sources.class_files import find_folder_problems, load_classes
from tfrkit.sources.description import DescribedSource
from tfrkit.sources.image_features import IMAGE, ImageReader, image_row, image_specs
from tfrkit.sources.walk import IMAGE_SUFFIXES, FoundFile, find_files, read_file, require_folder
from tfrkit.storage.base import describe_os_error
from tfrkit.storage.inputs import join_stamps

_DIGITS = re.compile(r"([0-9]+)")
_MICROSECONDS = 1_000_000
_MAX_SHOWN = 5


@dataclass(frozen=True)
class Frames(DescribedSource):
    """Folders of video frames below one folder.

    Each folder with images is a clip. Frames are ordered by the numbers in their names, so frame 10 follows frame 9. If
    all clips are one level deeper, root/<class>/<clip>/, the folder above a clip is its class.

    Attributes:
        root: The folder.
        frame_rate: Frames per second; gives each frame a timestamp in microseconds.
        classes: Class names in the order of their ids, or a file that lists them; sorted folder names by default.
        label_offset: The id of the first class.
        images: How images are stored.
    """

    root: str
    _: KW_ONLY
    frame_rate: float | None = None
    classes: str | Sequence[str] | None = None
    label_offset: int = 0
    images: ImageOptions = field(default_factory=ImageOptions)

    kind = "frames"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.frame_rate is not None and not 0 < self.frame_rate < float("inf"):
            raise ValueError(f"frame rate expected above 0, got {self.frame_rate}")

    def scan(self, scratch: str) -> Scan:
        """Find all clips."""
        require_folder(self.root, "folders of frames")
        found = find_files(self.root, IMAGE_SUFFIXES)
        clips: dict[str, list[FoundFile]] = {}
        problems = []
        for file in found.files:
            folder = os.path.dirname(file.key)
            if folder:
                clips.setdefault(folder, []).append(file)
            else:
                problems.append(Problem(file.key, "frame is not in a folder, expected one folder for each clip"))
        labels = self._decide_classes(clips)
        problems += [] if labels is None else find_folder_problems(labels, self.root)
        builder = ItemsBuilder()
        counts: Counter[str] = Counter(dict.fromkeys(labels.names, 0) if labels is not None else {})
        gaps = []
        for clip, files in clips.items():
            files.sort(key=lambda file: natural_key(os.path.basename(file.key)))
            names = [os.path.basename(file.key) for file in files]
            name = clip.partition("/")[0]
            if labels is not None and name not in labels:
                reason = f"class {name!r:.64} is not one of the {len(labels)} of {labels.origin}"
                problems.append(Problem(clip, reason, blocking=True))
                continue
            counts[name] += labels is not None
            if has_gap(names):
                gaps.append(clip)
            builder.add(
                clip,
                data=json.dumps(names).encode(),
                nbytes=sum(file.nbytes for file in files),
                stamp=join_stamps(self.root, (file.stamp for file in files)),
                label=-1 if labels is None else labels.id_of(name),
            )
        notes = [*found.notes, *self.images.describe()]
        if gaps:
            shown = ", ".join(gaps[:_MAX_SHOWN]) + (f" and {len(gaps) - _MAX_SHOWN} more" if gaps[_MAX_SHOWN:] else "")
            notes.append(f"clips whose frame numbers have gaps: {len(gaps)} - {shown}")
        return Scan(
            looked_for=f"folders of frames in {self.root}",
            items=builder.build(),
            reader=FramesReader(self.root, self.images, labels, self.frame_rate),
            schema=self._make_schema(labels, {}),
            problems=problems,
            ignored=found.ignored,
            notes=notes,
            counts={} if labels is None else {"class": dict(counts)},
            label_files={} if labels is None else {"classes.txt": labels.to_text()},
            refine=lambda facts: self._make_schema(labels, facts),
            explain=self.images.describe_seen,
        )

    def _decide_classes(self, clips: Iterable[str]) -> LabelMap | None:
        """Return the classes if clips are in class folders, else None; raises if clips are at different depths."""
        depths = {clip.count("/") for clip in clips}
        if len(depths) > 1:
            examples = [
                next(clip for clip in sorted(clips) if clip.count("/") == depth) for depth in sorted(depths)[:2]
            ]
            raise SourceError(
                f"clips expected at one depth, got {' and '.join(map(repr, examples))}",
                shard=self.root,
                hint="lay them out as <clip>/frame or <class>/<clip>/frame",
            )
        if depths != {1}:
            if self.classes is not None:
                raise SourceError("classes expected clips in <class>/<clip>/, got <clip>/", shard=self.root)
            if depths - {0}:
                raise SourceError("clips expected one or two folders deep, got them deeper", shard=self.root)
            return None
        if self.classes is not None:
            return load_classes(self.classes, label_offset=self.label_offset)
        return make_class_map((clip.partition("/")[0] for clip in clips), offset=self.label_offset)

    def _make_schema(self, labels: LabelMap | None, facts: Facts) -> Schema:
        text = Spec("bytes", logical="text")
        specs = image_specs(self.images, facts)
        image = specs.pop(IMAGE)
        context: dict[str, Any] = {"clip/media_id": text, "clip/length": "int64", **specs}
        if labels is not None:
            context["clip/label/index"] = Spec("int64", logical="class_label", classes=labels.spec_names())
            context["clip/label/string"] = text
        lists: dict[str, Any] = {
            IMAGE: image.replace(is_list=True),
            "image/filename": text.replace(is_list=True),
        }
        if self.frame_rate is not None:
            context["image/frame_rate"] = "float"
            lists["image/timestamp"] = Spec("int64", is_list=True)
        return Schema(context, feature_lists=lists)


def natural_key(name: str) -> tuple[Any, ...]:
    """Return a sort key that puts frame9 before frame10, and sorts equal numbers by their text.

    Example:
        >>> sorted(["f10.jpg", "f9.jpg", "f009.jpg"], key=natural_key)
        ['f009.jpg', 'f9.jpg', 'f10.jpg']
    """
    parts = _DIGITS.split(name)
    return (*((int(part), "") if index % 2 else (-1, part) for index, part in enumerate(parts)), (-1, name))


def has_gap(names: Sequence[str]) -> bool:
    """Return whether the last numbers in these ordered names are not consecutive."""
    numbers = [int(found[-1]) for name in names if (found := _DIGITS.findall(os.path.splitext(name)[0]))]
    return len(numbers) == len(names) > 1 and numbers[-1] - numbers[0] + 1 != len(numbers)


class FramesReader(ImageReader):
    """Reads a clip as a row."""

    def __init__(self, root: str, images: ImageOptions, labels: LabelMap | None, frame_rate: float | None) -> None:
        super().__init__(root, images)
        self._labels = labels
        self._frame_rate = frame_rate

    def files_of(self, item: Item) -> Sequence[str]:
        return [os.path.join(self._root, item.key, name) for name in json.loads(item.data)]

    def read(self, item: Item) -> Row:
        """Return the row of one clip; frames of different formats or sizes make it a bad input."""
        names = json.loads(item.data)
        frames, shared = read_frames(self._store, os.path.join(self._root, item.key), names)
        context: Row = {"clip/media_id": os.fsencode(item.key), "clip/length": len(frames), **shared}
        lists: Row = {IMAGE: frames, "image/filename": [os.fsencode(name) for name in names]}
        if self._labels is not None:
            name = item.key.partition("/")[0]
            context["clip/label/index"] = self._labels.id_of(name)
            context["clip/label/string"] = os.fsencode(name)
        if self._frame_rate is not None:
            import numpy as np

            context["image/frame_rate"] = np.float32(self._frame_rate)
            lists["image/timestamp"] = [round(index * _MICROSECONDS / self._frame_rate) for index in range(len(frames))]
        return {"context": context, "feature_lists": lists}


def read_frames(
    store: ImageStore, root: str, names: Iterable[str], *, hint: str | None = None
) -> tuple[list[bytes], Row]:
    """Return the frames of a clip, and the features of the form that all of them have; raises if forms differ.

    `hint` is the advice if a frame cannot be opened.
    """
    frames = []
    shared: Row = {}
    for name in names:
        try:
            row = image_row(store.store(read_file(root, name), name))
        except SourceError as error:
            raise SourceError(f"frame {name!r:.200} {error.what}") from None
        except OSError as error:
            what = f"frame {name!r:.200} cannot be opened, {describe_os_error(error)}"
            raise SourceError(what, hint=hint) from None
        frames.append(row.pop(IMAGE))
        shared = shared or row
        if row != shared:
            first, other = map(_show_form, (shared, row))
            raise SourceError(f"frames expected one format and size, got {first}, and {other} at {name!r:.64}")
    return frames, shared


def _show_form(row: Row) -> str:
    format, height, width, channels = row.values()
    return f"{format} {width}x{height} with {channels} channels"
