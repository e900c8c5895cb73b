"""Draw a contact sheet: images of a dataset in a grid, with labels, boxes and masks."""

from __future__ import annotations

import io
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tfrkit._types import Row
from tfrkit.batches.shard_set import ShardSet
from tfrkit.codec.decode import Decoder
from tfrkit.container.names import title_files
from tfrkit.container.records import Finding, Policy
from tfrkit.container.shards import Shard, find_shards
from tfrkit.errors import (
    CodecError,
    CompressionError,
    ContainerError,
    CorruptRecordError,
    Hint,
    SchemaError,
    Step,
    StorageError,
    TruncatedShardError,
    misuse,
)
from tfrkit.images.sniff import sniff_image
from tfrkit.ops.choose_records import choose_records
from tfrkit.outputs.target import require_output
from tfrkit.pictures.features import BoxOrder, BoxUnits, PictureFeatures
from tfrkit.pictures.guesses import NAMES, NUM_PROBED, PictureGuesses
from tfrkit.pictures.picture import Picture, PictureReader, Span
from tfrkit.pictures.pixels import ShapeWord, read_shape, require_raw_shape
from tfrkit.pictures.tiles import Sheet, SheetLayout
from tfrkit.sidecars.class_names import ClassNames
from tfrkit.storage.resolve import Address, expand_home, open_writer

if TYPE_CHECKING:
    from PIL.Image import Image

MIN_SIDE, MAX_SIDE = 32, 1024
# Records sampled to detect raw bytes of equal length.
_PROBED = 8
# Drawing takes 200 MB for this size.
MAX_SHEET_PIXELS = 64 << 20


class Tile(NamedTuple):
    """One tile of the sheet: record number, label, and why the image could not be shown, or None."""

    number: int | None
    label: str
    cause: str | None


@dataclass
class SheetReport:
    """Report of a sheet. `records` counts the whole dataset; `findings` lists images that could not be shown."""

    output: str
    width: int
    height: int
    records: int
    seed: int | None
    tiles: list[Tile] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether every image was shown."""
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        """Return a JSON object: output, width, height, records, seed, tiles (number, label, cause), findings, notes."""
        return {
            "output": self.output,
            "width": self.width,
            "height": self.height,
            "records": self.records,
            "seed": self.seed,
            "tiles": [tile._asdict() for tile in self.tiles],
            "findings": [finding.to_json() for finding in self.findings],
            "notes": self.notes,
        }


def sheet(
    address: Address | Iterable[Address],
    output: str | os.PathLike[str],
    *,
    count: int = 36,
    columns: int = 6,
    size: int = 128,
    seed: int | None = None,
    image: str | None = None,
    label: str | None = None,
    mask: str | None = None,
    boxes: str | None = None,
    names: str | None = None,
    box_order: BoxOrder | None = None,
    box_units: BoxUnits | None = None,
    shape: ShapeWord | None = None,
    force: bool = False,
) -> SheetReport:
    """Write a PNG of images of a dataset with their labels, boxes and masks.

    Shows encoded images, and raw pixels of known size; for a SequenceExample, its first image. An image that cannot be
    shown becomes a crossed tile with the cause, and a finding. Records are read one at a time.

    Args:
        address: Path, glob, folder, or a list of these.
        output: The .png file to write.
        count: Number of images, evenly spaced over all records.
        columns: Images per row.
        size: Side of a square tile in pixels.
        seed: Choose the records at random with this seed instead; they are shown in file order.
        image: The feature to show; found by default.
        label: The feature shown below each image; found by default.
        mask: The feature with the mask, "-" for none; found by default.
        boxes: The feature with the boxes, or the common start of its xmin, ymin, xmax and ymax, "-" for none; found by
            default.
        names: The feature with the names or numbers of the classes of boxes, "-" for none; found by default.
        box_order: Order of the four numbers of a box, if they are one feature; default "yxyx".
        box_units: "fraction" of width and height, or "pixels"; guessed from the first records.
        shape: Shape of raw pixels, "224x224" or "224x224x3", height first, if no feature holds it.
        force: Replace the output.
    """
    paths = find_shards(address, incomplete="warn")
    target = expand_home(output)
    _check_arguments(count, columns, size)
    given = (image, label, mask, boxes, names, box_order, box_units, read_shape(shape))  # in the order of NAMES
    if not target.lower().endswith(".png"):
        raise ValueError(f"output expected a name that ends in .png, got {target!r}")
    require_output(target, sources=paths, force=force)
    shard_set, scanned = _open_counted(paths)
    try:
        pictures = _Pictures(shard_set, dict(zip(NAMES, given, strict=True)), side=size)
        numbers = choose_records(len(shard_set.records), count, seed)
        pictures.require_shape(numbers)
        drawn = _draw(pictures, numbers, scanned, columns=columns, side=size)
        report = SheetReport(target, *drawn.image.size, len(shard_set.records), seed, notes=pictures.notes)
        report.tiles, report.findings = drawn.tiles, drawn.findings
        drawn.sheet.write_title(title_files(paths), _describe_choice(report, len(numbers)))
        _write_png(drawn.image, target)
        return report
    finally:
        shard_set.close()


class _Pictures:
    """Reads the images of a dataset by record number."""

    def __init__(
        self,
        shard_set: ShardSet,
        given: Mapping[str, Any],
        *,
        side: int,
    ) -> None:
        self._records = shard_set.records
        self.notes: list[str] = []
        schema = shard_set.schema
        first = shard_set.files[0]
        if schema.kind not in ("example", "sequence_example"):
            raise SchemaError("expected Examples with images, got other records", shard=first)
        try:
            known = [name for name in schema.names if schema[name].seen is None]
            self._decoder: Decoder = shard_set.new_decoder(known)
            guesses = PictureGuesses(schema, given, self._read_first, guesses_shape=False)
            self.features: PictureFeatures = guesses.features
        except SchemaError as error:
            hint = Hint(f"see what is there: tfr info {first}", Step("name it: {image}", image=...))
            raise error.replace(shard=first, hint=hint) from None
        names = ClassNames.of_schema(schema, shard_set.sidecars.class_file)
        self.notes += shard_set.sidecars.notes
        self._decoder = shard_set.new_decoder(self.features.names)
        self._reader = PictureReader(schema, self.features, names, side=side)
        self._spec = schema[self.features.image]
        self._first = first

    def read(self, number: int) -> Picture:
        """Return the image of a record; if it cannot be read, `cause` of the picture says why."""
        try:
            return self._reader.read(self._read_row(number))
        except (ContainerError, CodecError, SchemaError) as error:
            return Picture(cause=error.what)

    def require_shape(self, numbers: list[int]) -> None:
        """Raise if all images are raw bytes of equal length, and no shape is known or it does not match that length."""
        spec, name = self._spec, self.features.image
        if spec.kind != "bytes" or spec.encoding != "list" or spec.logical != "bytes" or spec.shape != ():
            return
        lengths: set[int] = set()
        for number in numbers[:_PROBED]:
            try:
                value = self._reader.find_image(self._read_row(number))
            except (ContainerError, CodecError, SchemaError):
                continue  # shown on its tile
            values = value if isinstance(value, list) else [value]
            if any(isinstance(one, bytes) and (not one or sniff_image(one[:64]) is not None) for one in values):
                return
            lengths.update(len(one) for one in values if isinstance(one, bytes))
        if len(lengths) == 1:
            require_raw_shape(name, self.features.sizes, lengths.pop(), shard=self._first)

    def _read_first(self) -> Iterator[Row]:
        for number in range(min(NUM_PROBED, len(self._records))):
            try:
                yield self._read_row(number)
            except (ContainerError, CodecError, SchemaError):
                continue

    def locate(self, number: int, cause: str) -> Finding:
        """Return a finding at a record, with the offset of its frame."""
        shards, ordinals = self._records.locate_many(np.array([number], np.uint64))
        access = self._records.open_shard(int(shards[0]))
        ordinal = int(ordinals[0])
        return Finding(access.name, ordinal, access.offset_of(ordinal), cause)

    def _read_row(self, number: int) -> Row:
        builder = self._decoder.new_row_builder()
        self._records.decode_into(builder, number, self._decoder.column_names)
        return builder.finish()[0]


class _Drawn(NamedTuple):
    sheet: Sheet
    tiles: list[Tile]
    findings: list[Finding]

    @property
    def image(self) -> Image:
        return self.sheet.image


def _draw(pictures: _Pictures, numbers: list[int], scanned: list[Finding], *, columns: int, side: int) -> _Drawn:
    """Draw a tile per record, then one per damaged place that the scan skipped, up to one row of these."""
    lost = scanned[:columns]
    layout = SheetLayout(len(numbers) + len(lost), columns, side)
    if layout.width * layout.height > MAX_SHEET_PIXELS:
        raise misuse(
            f"sheet expected at most {MAX_SHEET_PIXELS} pixels, got {layout.width}x{layout.height}",
            Step("fewer or smaller pictures: {count} or {size}", count=..., size=...),
        )
    page = Sheet(layout)
    tiles: list[Tile] = []
    findings: list[Finding] = []
    for number in numbers:
        picture = pictures.read(number)
        page.put(len(tiles), picture, number)
        tiles.append(Tile(number, picture.label, picture.cause))
        if picture.cause is not None:
            findings.append(pictures.locate(number, picture.cause))
    for finding in lost:
        page.put(len(tiles), Picture([Span(f"record {finding.record}")], cause=finding.cause), None)
        tiles.append(Tile(None, "", finding.cause))
    return _Drawn(page, tiles, findings + scanned)


def _open_counted(paths: list[str]) -> tuple[ShardSet, list[Finding]]:
    """Open the shards and count their records; return them with the damage skipped while counting."""
    shards = Shard.open_all(paths)
    for shard in shards:
        if shard.nbytes is None:
            raise StorageError(
                "expected a file, got a pipe, whose records cannot be chosen", shard=shard.name, hint="write it first"
            )
    # Only headers or an index are read: a record with a damaged payload keeps its number and becomes a crossed tile.
    shard_set = ShardSet(shards, Policy())
    scanned: list[Finding] = []
    try:
        num_records = len(shard_set.records)
    except (CorruptRecordError, TruncatedShardError, CompressionError):
        policy = Policy("all", "skip")
        shard_set = ShardSet(shards, policy)
        num_records = len(shard_set.records)
        scanned = list(policy.findings.values())
    if num_records == 0:
        raise StorageError("expected at least one readable record, got none", shard=paths[0])
    return shard_set, scanned


def _check_arguments(count: int, columns: int, size: int) -> None:
    if count < 1 or columns < 1:
        raise ValueError(f"expected at least one picture and one column, got {count} and {columns}")
    if not MIN_SIDE <= size <= MAX_SIDE:
        raise ValueError(f"size expected {MIN_SIDE} to {MAX_SIDE} pixels, got {size}")


def _describe_choice(report: SheetReport, shown: int) -> str:
    text = f"{shown:,} of {report.records:,} records"
    if shown < report.records:
        text += ", spread evenly" if report.seed is None else f", seed {report.seed}"
    return text + (f", {len(report.findings)} damaged" if report.findings else "")


def _write_png(image: Image, target: str) -> None:
    file = io.BytesIO()
    image.save(file, "PNG")
    with open_writer(target, make_folders=True) as writer:
        writer.write(file.getbuffer())
        writer.commit()
