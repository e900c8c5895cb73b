"""Export in the Pascal VOC format.

JPEGImages/<id>.jpg  Annotations/<id>.xml  SegmentationClass/<id>.png  ImageSets/Main/<split>.txt  classes.txt
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import Any, BinaryIO
from xml.sax.saxutils import escape

from tfrkit.errors import CodecError
from tfrkit.features.labels import LabelMap
from tfrkit.ops.export.annotations import AnnotatedImage, AnnotationTask, export_annotated
from tfrkit.ops.export.names import safe_part
from tfrkit.ops.export.objects import corners_to_pixels, show_number
from tfrkit.ops.export.report import Export, OnBad
from tfrkit.progress import Progress
from tfrkit.storage.resolve import Address

# List of images without a split; other tools use this name, too.
_NO_SPLIT = "default"
# Characters that XML 1.0 does not allow, even escaped.
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")


def export_voc(
    address: Address | Iterable[Address],
    output: str | os.PathLike[str],
    *,
    image: str | None = None,
    name: str | None = None,
    names: str | None = None,
    on_bad: OnBad = "fail",
    force: bool = False,
    incomplete: bool = False,
    progress: Progress | None = None,
) -> Export:
    """Write images with boxes or masks into the folders of Pascal VOC.

    Takes datasets made by `tfr build voc-det`, `voc-seg`, `coco` and `yolo`, and others with image/object/bbox/xmin,
    xmax, ymin and ymax. Boxes are in pixels, with the fewest decimals that restore the stored values; a note counts
    images whose corners are not whole. Masks have the VOC palette. Each split is a list in ImageSets; classes.txt holds
    the class ids.

    Args:
        address: Path, glob, folder, or a list of these.
        output: The folder to create.
        image: The feature with the images; found by default.
        name: The feature with the file names; found by default.
        names: The feature with the names or numbers of the classes of boxes, "-" for none; found by default.
        on_bad: A record without an image, or with an invalid box, stops the export ("fail") or is left out and
            listed ("skip").
        force: Replace the folder.
        incomplete: Continue if shards of a set are missing.
        progress: Progress callback.
    """
    return export_annotated(
        "voc",
        address,
        output,
        _VocWriter,
        image=image,
        name=name,
        names=names,
        takes_masks=True,
        is_one_folder=True,
        on_bad=on_bad,
        force=force,
        incomplete=incomplete,
        progress=progress,
    )


class _VocWriter:
    def __init__(self, task: AnnotationTask) -> None:
        self._task = task
        self._folder = task.folder
        self._has_boxes = task.objects.boxes is not None
        self._has_masks = task.pictures.mask_feature is not None
        self._lists: dict[str, BinaryIO] = {}
        self._num_fractional = 0

    def prepare(self, image: AnnotatedImage) -> tuple[str | None, bytes | None]:
        mask = self._task.pictures.read_mask(image.picture, (image.width, image.height)) if self._has_masks else None
        xml = make_voc_xml(image, "", is_segmented=mask is not None) if self._has_boxes else None
        return xml, mask

    def write(self, image: AnnotatedImage, prepared: tuple[str | None, bytes | None]) -> None:
        xml, mask = prepared
        self._folder.write(f"JPEGImages/{image.path}", image.data)
        if xml is not None:
            # `prepare` only checks that it can be made: the file name is final only now.
            xml = make_voc_xml(image, os.path.basename(image.path), is_segmented=mask is not None)
            self._num_fractional += _has_fractions(image)
            self._folder.write(f"Annotations/{image.stem}.xml", xml.encode())
            self._list("Main", image)
        if mask is not None:
            self._folder.write(f"SegmentationClass/{image.stem}.png", mask)
            self._list("Segmentation", image)

    def finish(self) -> None:
        if self._num_fractional:
            self._task.report.notes.append(
                f"images with corners of boxes between pixels, written with decimals: {self._num_fractional}; "
                "readers that expect integers must round them"
            )
        classes = self._task.objects.classes
        mask = self._task.pictures.mask_feature
        names = self._task.source.schema[mask].classes if mask is not None else None
        if classes.names:
            self._folder.write("classes.txt", classes.to_text().encode())
        elif names is not None:
            self._folder.write("classes.txt", LabelMap(names).to_text().encode())

    def _list(self, kind: str, image: AnnotatedImage) -> None:
        name = f"ImageSets/{kind}/{safe_part(image.split or _NO_SPLIT)}.txt"
        file = self._lists.get(name)
        if file is None:
            file = self._lists[name] = self._folder.open(name)
        file.write(f"{image.stem}\n".encode())


def _has_fractions(image: AnnotatedImage) -> bool:
    pixels = corners_to_pixels(image.objects.corners, image.width, image.height)
    return any(value != int(value) for value in pixels.reshape(-1).tolist())


def make_voc_xml(image: AnnotatedImage, filename: str, *, is_segmented: bool) -> str:
    """Make the annotation of an image. Raises `CodecError` for a name that XML cannot hold."""
    found = image.objects
    lines = [
        "<annotation>",
        "\t<folder>JPEGImages</folder>",
        f"\t<filename>{_to_xml(filename)}</filename>",
        "\t<size>",
        f"\t\t<width>{image.width}</width>",
        f"\t\t<height>{image.height}</height>",
        f"\t\t<depth>{image.depth}</depth>",
        "\t</size>",
        f"\t<segmented>{int(is_segmented)}</segmented>",
    ]
    pixels = corners_to_pixels(found.corners, image.width, image.height).tolist()
    for index, (name, corners) in enumerate(zip(found.names, pixels, strict=True)):
        lines += [
            "\t<object>",
            f"\t\t<name>{_to_xml(name)}</name>",
            f"\t\t<pose>{_to_xml(_read_pose(found.extras, index))}</pose>",
            f"\t\t<truncated>{_read_flag(found.extras, 'truncated', index)}</truncated>",
            f"\t\t<difficult>{_read_flag(found.extras, 'difficult', index)}</difficult>",
            "\t\t<bndbox>",
            *(
                f"\t\t\t<{side}>{show_number(value)}</{side}>"
                for side, value in zip(("xmin", "ymin", "xmax", "ymax"), corners, strict=True)
            ),
            "\t\t</bndbox>",
            "\t</object>",
        ]
    return "\n".join([*lines, "</annotation>", ""])


def _to_xml(text: str) -> str:
    found = _NOT_XML.search(text)
    if found is not None:
        raise CodecError(f"name expected characters that XML allows, got {text!r:.64}")
    return escape(text)


def _read_pose(extras: Any, index: int) -> str:
    if "pose" not in extras:
        return "Unspecified"
    value = extras["pose"][index]
    return os.fsdecode(value) if isinstance(value, (bytes, str)) else str(value)


def _read_flag(extras: Any, what: str, index: int) -> int:
    return int(bool(extras[what][index])) if what in extras else 0
