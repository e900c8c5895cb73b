"""Storage and meaning of one feature."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field, fields, replace
from typing import Literal, get_args

from tfrkit.features.tensor_dtypes import DTYPE_NUMBERS

StorageKind = Literal["bytes", "float", "int64"]
RecordKind = Literal["example", "sequence_example", "raw", "mixed"]
Logical = Literal["scalar", "tensor", "text", "bytes", "image", "mask", "class_label", "boxes", "frames"]
Encoding = Literal["list", "tensor_proto", "raw", "zlib"]

# None in a shape is a size that varies between records.
Shape = tuple[int | None, ...]

# The maximum rank of a tensor in TensorFlow.
MAX_RANK = 254

STORAGE_KINDS: tuple[StorageKind, ...] = get_args(StorageKind)
_CHOICES = {"kind": STORAGE_KINDS, "logical": get_args(Logical), "encoding": get_args(Encoding)}


@dataclass(frozen=True, repr=False)
class Spec:
    """One feature of a schema.

    `shape` is () for one value, (3,) for three, (None,) for a number that varies. With
    `encoding="tensor_proto"` (a serialized tensor), "raw" (the bytes of an array) or "zlib" (the bytes of an
    array, compressed) the storage kind is bytes, and `dtype` and `shape` describe the array. `is_list` marks a
    SequenceExample feature list; `shape` then describes one frame.

    Attributes:
        dtype: With `encoding="list"`, the logical dtype of the values if it differs from the storage: bool
            and uint8 stored in an int64 list, float64 stored in a float list. None for a serialized tensor
            means that the dtype varies between records.
        optional: Some records lack the feature, or have it without a kind.
        classes: Names of class ids, in order.
        num_classes: Number of class ids; derived from `classes` if given.
        ignore: The label value to ignore, such as 255 in a mask.
        format: File format of a bytes value: "png", "jpeg", "wav".
        decoded_shape: Height, width and channels (an image), or the shape of the decoded value.
        seen: None if one kind was seen or the records were not examined; the kinds, most frequent first, if
            records differ; () if no record sets a kind (`kind` is then arbitrary).
        meaning: A guess as text; ignored in comparisons.
    """

    kind: StorageKind
    shape: Shape = ()
    logical: Logical = "scalar"
    encoding: Encoding = "list"
    dtype: str | None = None
    optional: bool = False
    is_list: bool = False
    classes: tuple[str, ...] | None = None
    ignore: int | None = None
    num_classes: int | None = None
    format: str | None = None
    decoded_shape: Shape | None = None
    seen: tuple[StorageKind, ...] | None = None
    meaning: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        for name, choices in _CHOICES.items():
            if getattr(self, name) not in choices:
                raise refuse_choice(name, getattr(self, name), choices)
        if self.dtype is not None and self.dtype not in DTYPE_NUMBERS:
            raise refuse_choice("dtype", self.dtype, tuple(DTYPE_NUMBERS))
        if type(self.shape) is not tuple or self.shape:
            object.__setattr__(self, "shape", check_shape(self.shape))
        if self.decoded_shape is not None:
            object.__setattr__(self, "decoded_shape", check_shape(self.decoded_shape))
        if self.encoding != "list" and self.kind != "bytes":
            raise ValueError(f"encoding {self.encoding!r} expected kind 'bytes', got {self.kind!r}")
        if self.encoding in ("raw", "zlib") and self.dtype is None:
            raise ValueError(f"encoding {self.encoding!r} expected a dtype, got None")
        if self.classes is not None:
            classes = tuple(self.classes)
            object.__setattr__(self, "classes", classes)
            if self.num_classes is None:
                object.__setattr__(self, "num_classes", len(classes))
            elif self.num_classes != len(classes):
                raise ValueError(f"expected {self.num_classes} class names, got {len(classes)}")

    @property
    def fixed_length(self) -> int:
        """Stored values per record (per frame), or -1 if the number varies or the feature may be absent."""
        if self.optional and not self.is_list:
            return -1
        return self.num_values

    @property
    def num_values(self) -> int:
        """Stored values per record (per frame) that sets the feature, or -1 if the number varies."""
        if self.encoding != "list":
            return 1
        if None in self.shape:
            return -1
        length = 1
        for size in self.shape:
            length *= size or 0
        return length

    def replace(self, **changes: object) -> Spec:
        """Return a copy with some fields changed."""
        return replace(self, **changes)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        parts = [repr(self.kind)]
        for item in fields(self)[1:]:
            value = getattr(self, item.name)
            if value != item.default and not (item.name == "num_classes" and self.classes is not None):
                parts.append(f"{item.name}={value!r}")
        return f"Spec({', '.join(parts)})"


def refuse_choice(what: str, value: object, choices: tuple[str, ...]) -> ValueError:
    """Return the error for a value that is not one of `choices`."""
    return ValueError(f"{what} expected one of {', '.join(choices)}, got {value!r:.64}")


def check_shape(shape: object) -> Shape:
    """Return a shape as a tuple of sizes (0 or more, or None if varying); raise TypeError or ValueError if invalid."""
    if not isinstance(shape, (tuple, list)):
        raise TypeError(f"shape expected a tuple of sizes, got {shape!r}")
    if len(shape) > MAX_RANK:
        raise ValueError(f"shape expected at most {MAX_RANK} sizes, got {len(shape)}")
    sizes = tuple(None if size is None else operator.index(size) for size in shape)
    if any(size is not None and not 0 <= size < 1 << 63 for size in sizes):
        raise ValueError(f"shape expected sizes of 0 or more, or None, got {sizes!r:.64}")
    return sizes
