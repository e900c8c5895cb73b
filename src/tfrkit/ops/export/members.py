"""Features as members of a WebDataset sample: the suffix and the bytes of each.

The inverse of sources/webdataset.py: a dataset made by `tfr build webdataset` is written back as it was.

    image/encoded, x/encoded      .jpg .png ..., .x.jpg ...    by the format of the bytes
    image/class/label             .cls
    index, id                     .index, .id
    text, x                       .txt, .x.txt                 one text per record
    json/key, x/key               .json, .x.json               one file per prefix; further slashes are nested objects
    npy, x                        .npy, .x.npy                 several numbers, and arrays
    x                             .x                           other bytes, named like the feature

A single integer x is .x.cls. In the name of a member, a dot replaces each slash.

For records that did not come from tar files (they have no __key__), the class is .cls and the image .jpg or .png,
whatever the features are called. Single numbers, and texts other than text and caption, share one .json, because even
the smallest member takes a thousand bytes of a tar.
"""

from __future__ import annotations

import base64
import functools
import io
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from tfrkit.errors import CodecError, SchemaError
from tfrkit.features.schema import Schema, show_name
from tfrkit.features.size_features import SizeFeatures
from tfrkit.features.spec import Spec
from tfrkit.ops.export.pixels import require_image, to_image_files

KEY = "__key__"

_ENCODED = "/encoded"
_encode_json = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_FACTS = ("format", "height", "width", "channels")
_INTEGERS = {"image/class/label": "cls", "index": "index", "id": "id"}
# Last parts of a suffix by which readers choose a decoder, whatever the bytes are.
_READ_KINDS = frozenset(
    {"cls", "index", "id", "txt", "text", "json", "npy", "jpg", "jpeg", "png", "webp", "gif", "bmp"}
)


class MemberPlan:
    """The member of each feature of a schema."""

    def __init__(self, schema: Schema, *, image: str | None, label: str | None, sizes: SizeFeatures) -> None:
        self.notes: list[str] = []
        self._image = image
        self._label = label
        self._sizes = sizes
        self._is_gathered = KEY not in schema
        # Height, width and similar features are derived from the image when a tar is read.
        self.left_out = frozenset(_find_facts(schema)) if KEY in schema else frozenset[str]()
        self._members: dict[str, tuple[str, str]] = {}  # feature: (how, suffix)
        self._keys: dict[str, tuple[str, str]] = {}  # feature: (suffix of its .json, key in it)
        renamed = []
        for name, spec in schema.features.items():
            if name == KEY or name in self.left_out:
                continue
            how, suffix = self._plan(name, spec)
            if how == "json":
                self._keys[name] = self._plan_key(name)
                continue
            if "/" in suffix:
                suffix = suffix.replace("/", ".")
                renamed.append(name)
            self._members[name] = (how, suffix)
        if renamed:
            shown = ", ".join(show_name(name) for name in renamed[:8]) + (" and more" if len(renamed) > 8 else "")
            self.notes.append(f"a member's name has no slash, these have dots instead: {shown}")
        gathered = [name for name, (suffix, key) in self._keys.items() if suffix == "json" and key == name]
        if gathered:
            shown = ", ".join(show_name(name) for name in gathered[:8]) + (" and more" if len(gathered) > 8 else "")
            self.notes.append(f"in .json, read back as json/NAME: {shown}")
        self._require_different(schema)
        self._num_coded: dict[str, int] = {}

    @property
    def features(self) -> list[str]:
        """The features to read."""
        return [*self._members, *self._keys]

    def make(self, values: Mapping[str, Any]) -> list[tuple[str, bytes]]:
        """Return (suffix, bytes) of each member of one sample; an absent feature has no member."""
        made: dict[str, bytes] = {}
        for name, (how, suffix) in self._members.items():
            value = values.get(name)
            if value is None:
                continue
            if how == "image":
                file = require_image(to_image_files(name, value, values, self._sizes), name)
                suffix += file.suffix if suffix else file.suffix[1:]
                data = file.data
            elif how == "array":
                data = _save_array(name, value)
            else:
                data = value if isinstance(value, bytes) else str(int(value)).encode()
            if suffix in made:
                raise CodecError(f"feature {show_name(name)} would be a second member .{suffix} of its sample")
            made[suffix] = data
        documents: dict[str, dict[str, Any]] = {}
        for name, (suffix, key) in self._keys.items():
            if name in values:
                documents.setdefault(suffix, {})[key] = self._to_plain(name, values[name])
        for suffix, document in documents.items():
            text = _encode_json(nest_keys(document))
            made[suffix] = text.encode("utf-8", "backslashreplace")
        return list(made.items())

    def describe(self) -> list[str]:
        """Return notes on the written samples."""
        notes = list(self.notes)
        for name, count in self._num_coded.items():
            notes.append(
                f'feature {show_name(name)} has bytes that are not text, written as {{"base64": ...}}: {count} records'
            )
        return notes

    def _plan(self, name: str, spec: Spec) -> tuple[str, str]:
        is_one = spec.shape == () and spec.encoding == "list"
        if name == self._image:
            return "image", ""
        if spec.kind == "bytes" and is_one:
            return self._plan_bytes(name, spec)
        if spec.encoding != "list":
            return "array", "npy" if name == "npy" else f"{name}.npy"
        if spec.kind == "int64" and is_one:
            if name in _INTEGERS:
                return "value", _INTEGERS[name]
            if name == self._label and "image/class/label" not in self._members:
                return "value", "cls"
            return ("json", "") if "/" in name or self._is_gathered else ("value", f"{name}.cls")
        if spec.kind == "bytes" or "/" in name or (is_one and self._is_gathered):
            return "json", ""
        return "array", "npy" if name == "npy" else f"{name}.npy"

    def _plan_bytes(self, name: str, spec: Spec) -> tuple[str, str]:
        if name.endswith(_ENCODED) and spec.logical in ("image", "mask"):
            prefix = name.removesuffix(_ENCODED)
            return "image", "" if prefix == "image" and self._image in (None, name) else prefix
        if spec.logical in ("image", "mask"):
            return "image", name
        if spec.logical == "text":
            is_member = "/" not in name and (name in ("text", "caption") or not self._is_gathered)
            return ("value", "txt" if name == "text" else f"{name}.txt") if is_member else ("json", "")
        kind = name.rpartition(".")[2].rpartition("/")[2].lower()
        return "value", f"{name}.bin" if kind in _READ_KINDS else name

    def _plan_key(self, name: str) -> tuple[str, str]:
        prefix, slash, key = name.partition("/")
        if not slash or not prefix or not key or "." in prefix[:1]:
            return "json", name
        return ("json", key) if prefix == "json" else (f"{prefix}.json", key)

    def _require_different(self, schema: Schema) -> None:
        """Raise if two features get the same suffix; readers compare suffixes in lower case."""
        taken: dict[str, str] = {}
        planned = [
            (name, suffix if how != "image" else f"{suffix}.image") for name, (how, suffix) in self._members.items()
        ]
        for name, suffix in planned:
            other = taken.setdefault(suffix.lower(), name)
            if other != name:
                raise SchemaError(f"features {show_name(other)} and {show_name(name)} would both be .{suffix}")
        self._members = {name: (how, suffix.lower()) for name, (how, suffix) in self._members.items()}

    def _to_plain(self, name: str, value: Any) -> Any:
        if isinstance(value, bytes):
            try:
                return value.decode()
            except UnicodeDecodeError:
                self._num_coded[name] = self._num_coded.get(name, 0) + 1
                return {"base64": base64.b64encode(value).decode()}
        if isinstance(value, np.ndarray):
            return value.reshape(-1).tolist()
        if isinstance(value, list):
            return [self._to_plain(name, item) for item in value]
        return value


def nest_keys(document: Mapping[str, Any]) -> dict[str, Any]:
    """Turn keys with slashes into nested objects: the inverse of the flattening by a build.

    Example:
        >>> nest_keys({"a/b": 1, "a/c": 2, "d": 3})
        {'a': {'b': 1, 'c': 2}, 'd': 3}
    """
    nested: dict[str, Any] = {}
    for name, value in document.items():
        parts = name.split("/")
        is_plain = all(parts) and not any("/".join(parts[:end]) in document for end in range(1, len(parts)))
        place = nested
        for part in parts[:-1] if is_plain else ():
            place = place.setdefault(part, {})
        place[parts[-1] if is_plain else name] = value
    return nested


def _find_facts(schema: Schema) -> list[str]:
    stems = [name.removesuffix(_ENCODED) for name, spec in schema.features.items() if name.endswith(_ENCODED)]
    return [f"{stem}/{fact}" for stem in stems for fact in _FACTS if f"{stem}/{fact}" in schema.features]


def _save_array(name: str, value: Any) -> bytes:
    array = np.asarray(value)
    if array.dtype.hasobject:
        raise CodecError(f"feature {show_name(name)} holds tensors of text, which .npy cannot store without pickle")
    if array.dtype == np.float64 and array.ndim == 0 and isinstance(value, float):
        array = array.astype(np.float32)  # a single value of a float list, read as a Python float
    return make_npy_header(array.dtype, array.shape) + array.tobytes()


@functools.lru_cache(maxsize=1024)
def make_npy_header(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bytes:
    """Make the header of a .npy file; cached, because this takes longer than writing a short list."""
    file = io.BytesIO()
    content = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, content)
    return file.getvalue()
