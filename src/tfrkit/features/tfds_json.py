"""Read a TFDS `features.json` as a schema of the stored features.

A features.json describes values as TFDS returns them. On disk they are flattened: nested dicts become names joined by
"/", bool and all integers become int64 lists, all floats become float lists (float64 loses precision), images are
encoded bytes, and a sequence inside a sequence becomes `<name>/ragged_flat_values` and
`<name>/ragged_row_lengths_<i>`. There are two styles: `type` + `content`, and `pythonClassName` + one key in
camelCase. Both are read; `tfds_export` writes the second.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from tfrkit.errors import SchemaError
from tfrkit.features.schema import Schema, show_name
from tfrkit.features.spec import MAX_RANK, Encoding, Shape, Spec, StorageKind
from tfrkit.features.tensor_dtypes import DTYPE_NUMBERS

_MAX_DEPTH = 40
_MAX_JSON_FEATURE = 1 << 20
_MAX_RANK = MAX_RANK - _MAX_DEPTH  # sequences around a feature add to its shape

# Returns the text of a file such as "label.labels.txt" next to the features.json, or None.
ReadText = Callable[[str], str | None]


@dataclass(frozen=True)
class TfdsSchema:
    """The schema read from a features.json.

    Features of an unknown class are not in `schema` but in `notes`; they are inferred from the records.
    """

    schema: Schema
    notes: tuple[str, ...] = ()


def from_tfds(content: object, *, read_text: ReadText | None = None) -> TfdsSchema:
    """Read the parsed content of a features.json.

    Class names are read from `<feature>.labels.txt` files with `read_text`. An unreadable feature does not affect the
    others; content that is not a features.json raises `SchemaError`.

    Example:
        >>> tensor = {"type": "tensorflow_datasets.core.features.tensor_feature.Tensor",
        ...           "content": {"shape": [2], "dtype": "bool"}}
        >>> from_tfds({"type": "tensorflow_datasets.core.features.features_dict.FeaturesDict",
        ...            "content": {"ok": tensor}}).schema["ok"]
        Spec('int64', shape=(2,), logical='tensor', dtype='bool')
    """
    if not isinstance(content, Mapping) or not ("type" in content or "pythonClassName" in content):
        raise SchemaError("features.json expected an object with a feature class ('pythonClassName' or 'type')")
    reader = _TfdsReader(read_text or (lambda _: None))
    tree = reader.read(content)
    if not isinstance(tree, dict):
        raise SchemaError("features.json expected a dict of features at the top, got a single one")
    specs: dict[str, Spec] = {}
    for name, leaf in _flatten(tree, ""):
        specs.update(_store_leaf(name, leaf))
    return TfdsSchema(Schema(specs), tuple(reader.notes))


@dataclass(frozen=True)
class _StoredLeaf:
    """A stored feature, and the number of sequences around it."""

    spec: Spec
    num_sequences: int = 0


_Tree = dict[str, Any]  # values are _Leaf or _Tree


class _UnreadableError(Exception):
    """A feature cannot be read and has to be inferred from the records."""


@dataclass(frozen=True)
class _Node:
    """One feature of the file, in either style."""

    class_name: str
    content: Mapping[str, Any]
    is_proto: bool
    name: str  # name on disk, down to this level
    file_name: str  # stem of its files next to features.json, down to this level
    depth: int

    def get(self, key: str) -> Any:
        """Return the value of a key given in snake_case; one of the two styles spells it in camelCase."""
        head, *tail = key.split("_")
        return self.content.get(key, self.content.get(head + "".join(map(str.title, tail))))

    def read_text(self, key: str) -> str | None:
        value = self.get(key)
        return value.lower() if isinstance(value, str) and value else None

    def read_int(self, key: str) -> int | None:
        # protobuf's JSON format writes 64-bit integers as strings.
        value = self.get(key)
        if value is None:
            return None
        try:
            return int(value)
        except (TypeError, ValueError):
            raise _UnreadableError(f"expected a number as {key}, got {value!r:.64}") from None

    def read_shape(self) -> Shape | None:
        value = self.get("shape")
        if isinstance(value, Mapping):
            value = value.get("dimensions", [])
        if value is None:
            return None
        if not isinstance(value, (list, tuple)) or len(value) > _MAX_RANK:
            raise _UnreadableError(f"expected a list of sizes as shape, got {value!r:.64}")
        try:
            sizes = [None if size is None else int(size) for size in value]
        except (TypeError, ValueError):
            raise _UnreadableError(f"expected a list of sizes as shape, got {value!r:.64}") from None
        if any(size is not None and not -1 <= size < 1 << 63 for size in sizes):
            raise _UnreadableError(f"expected sizes as shape, got {value!r:.64}")
        return tuple(None if size == -1 else size for size in sizes)


class _TfdsReader:
    """Reads the features of the file recursively and collects notes on unreadable ones."""

    def __init__(self, read_text: ReadText) -> None:
        self.read_text = read_text
        self.notes: list[str] = []

    def read(self, value: object, *, name: str = "", file_name: str = "", depth: int = 0) -> _StoredLeaf | _Tree | None:
        """Read one feature; add a note and return None if it cannot be read."""
        try:
            node = _read_node(value, name, file_name, depth)
            package, _, word = node.class_name.rpartition(".")
            convert = _CONVERTERS.get(word) if package.startswith("tensorflow_datasets.") else None
            if convert is None:
                raise _UnreadableError(f"has the unknown class {node.class_name!r:.100}")
            return convert(self, node)
        except (_UnreadableError, ValueError) as error:  # a Spec refuses sizes and class counts with a ValueError
            if not name:
                raise SchemaError(f"features.json cannot be read: its top-level feature {error}") from error
            self.notes.append(f"feature {show_name(name)} {error}; taken from the records instead")
            return None

    def read_classes(self, num_classes: int | None, file_name: str) -> dict[str, Any]:
        """Return the class fields of a Spec, with names if the labels file has the right number of them."""
        text = self.read_text(f"{file_name}.labels.txt")
        names = tuple(line.strip() for line in (text or "").split("\n") if line.strip())
        if names and num_classes in (None, 0, len(names)):
            return {"classes": names, "num_classes": len(names)}
        if names:
            self.notes.append(f"{file_name}.labels.txt expected {num_classes} names, got {len(names)}; left out")
        return {"num_classes": num_classes or None}


def _read_node(value: object, name: str, file_name: str, depth: int) -> _Node:
    if depth > _MAX_DEPTH:
        raise _UnreadableError(f"is nested deeper than {_MAX_DEPTH} levels")
    if not isinstance(value, Mapping):
        raise _UnreadableError(f"expected an object, got {type(value).__name__}")
    if "type" in value:
        class_name, content, is_proto = value["type"], value.get("content", {}), bool(value.get("proto_cls"))
    else:
        contents = [value[key] for key in _CONTENT_KEYS if key in value]
        class_name, content, is_proto = value.get("pythonClassName"), contents[0] if contents else {}, True
        if "jsonFeature" in value and isinstance(content, Mapping):
            content, is_proto = content.get("json", ""), False
    if isinstance(content, str):
        content = _parse_json(content)
    if not isinstance(class_name, str) or not isinstance(content, Mapping):
        raise _UnreadableError("has no class or no content")
    return _Node(class_name, content, is_proto, name, file_name, depth)


def _parse_json(text: str) -> object:
    if len(text) > _MAX_JSON_FEATURE:
        raise _UnreadableError(f"has a content of {len(text):,} characters")
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise _UnreadableError("has content that is not JSON") from None


def _convert_dict(reader: _TfdsReader, node: _Node) -> _Tree:
    children = node.get("features") if node.is_proto else node.content
    if children is None:
        return {}
    if not isinstance(children, Mapping):
        raise _UnreadableError("expected a dict of features")
    tree: _Tree = {}
    for key, child in children.items():
        # TFDS uses this name for the files that belong to a feature.
        file_name = "-".join(part for part in (node.file_name, key.replace("/", ".")) if part)
        name = f"{node.name}/{key}" if node.name else key
        read = reader.read(child, name=name, file_name=file_name, depth=node.depth + 1)
        if read is not None:
            tree[key] = read
    return tree


def _convert_sequence(reader: _TfdsReader, node: _Node) -> _StoredLeaf | _Tree:
    length = node.read_int("length")
    # If the inner feature is unreadable, so is the sequence; the note was added for the inner feature.
    inner = reader.read(node.get("feature"), name=node.name, file_name=node.file_name, depth=node.depth + 1)
    return {} if inner is None else _add_sequence(inner, None if length == -1 else length)


def _convert_tensor(_reader: _TfdsReader, node: _Node) -> _StoredLeaf | _Tree:
    shape = node.read_shape() or ()
    dtype = node.read_text("dtype") or ""
    kind = _find_kind(dtype)
    encoding = node.read_text("encoding") or "none"
    optional = bool(node.get("optional"))
    if encoding == "none":
        # A dtype equal to that of the storage is not repeated in the Spec.
        said = None if dtype in ("int64", "float32") or kind == "bytes" else dtype
        return _StoredLeaf(Spec(kind, shape, logical="tensor" if shape else "scalar", dtype=said, optional=optional))
    if encoding not in ("bytes", "zlib") or kind == "bytes":
        raise _UnreadableError(f"has the unknown encoding {encoding!r:.64}")
    if shape.count(None) > 1:
        # If the number of bytes does not determine the shape, TFDS stores the shape in a separate feature.
        meaning = (
            f"{dtype} array {shape} as {'zlib' if encoding == 'zlib' else 'raw'} bytes, its shape in the neighbour"
        )
        value = Spec("bytes", logical="bytes", optional=optional, meaning=meaning)
        size = Spec("int64", (len(shape),), logical="tensor", dtype="int32", optional=optional)
        return {"shape": _StoredLeaf(size), "value": _StoredLeaf(value)}
    stored: Encoding = "zlib" if encoding == "zlib" else "raw"
    return _StoredLeaf(Spec("bytes", shape, logical="tensor", encoding=stored, dtype=dtype, optional=optional))


def _convert_audio(reader: _TfdsReader, node: _Node) -> _StoredLeaf | _Tree:
    if node.get("lazy_decode"):
        return _StoredLeaf(Spec("bytes", logical="bytes", format=node.read_text("file_format"), meaning="audio file"))
    return _map_leaves(
        _convert_tensor(reader, node), lambda leaf: replace(leaf, spec=leaf.spec.replace(meaning="audio samples"))
    )


def _convert_text(_reader: _TfdsReader, node: _Node) -> _StoredLeaf:
    if node.get("use_encoder"):
        return _StoredLeaf(Spec("int64", (None,), logical="tensor", meaning="text as ids of a TFDS encoder"))
    return _StoredLeaf(Spec("bytes", logical="text"))


def _convert_class_label(reader: _TfdsReader, node: _Node) -> _StoredLeaf:
    classes = reader.read_classes(node.read_int("num_classes"), node.file_name)
    return _StoredLeaf(Spec("int64", logical="class_label", **classes))


def _convert_image(_reader: _TfdsReader, node: _Node) -> _StoredLeaf:
    return _StoredLeaf(_make_image(node, node.read_shape() or (None, None, 3)))


def _convert_labeled_image(reader: _TfdsReader, node: _Node) -> _StoredLeaf:
    label = node.get("label")
    num_classes = replace(node, content=label).read_int("num_classes") if isinstance(label, Mapping) else None
    if not node.is_proto:
        labels = node.get("labels")
        num_classes = len(labels) if isinstance(labels, list) else node.read_int("labels")
    spec = _make_image(node, node.read_shape() or (None, None, 1))
    return _StoredLeaf(spec.replace(logical="mask", **reader.read_classes(num_classes, node.file_name)))


def _convert_video(_reader: _TfdsReader, node: _Node) -> _StoredLeaf | _Tree:
    shape = node.read_shape() or (None, None, None, 3)
    return _add_sequence(_StoredLeaf(_make_image(node, shape[1:])), shape[0])


def _convert_box(_reader: _TfdsReader, _node: _Node) -> _StoredLeaf:
    return _StoredLeaf(Spec("float", (4,), logical="boxes"))


def _convert_translation(_reader: _TfdsReader, node: _Node) -> _Tree:
    languages = node.get("languages")
    if not isinstance(languages, list) or not all(isinstance(language, str) for language in languages):
        raise _UnreadableError("has no list of languages")
    return {language: _StoredLeaf(Spec("bytes", logical="text")) for language in languages}


def _convert_variable_translation(_reader: _TfdsReader, _node: _Node) -> _StoredLeaf | _Tree:
    text = _StoredLeaf(Spec("bytes", logical="text"))
    return _add_sequence({"language": text, "translation": text}, None)


_CONTENT_KEYS = (
    *("featuresDict", "tensor", "classLabel", "image", "video", "audio", "boundingBox", "text", "translation"),
    *("sequence", "jsonFeature"),
)
_CONVERTERS: Mapping[str, Callable[[_TfdsReader, _Node], _StoredLeaf | _Tree]] = MappingProxyType(
    {
        "FeaturesDict": _convert_dict,
        "Sequence": _convert_sequence,
        "Dataset": _convert_sequence,  # on disk, a nested dataset is a sequence
        "Tensor": _convert_tensor,
        "Scalar": _convert_tensor,
        "Text": _convert_text,
        "ClassLabel": _convert_class_label,
        "Image": _convert_image,
        "LabeledImage": _convert_labeled_image,
        "Video": _convert_video,
        "Audio": _convert_audio,
        "BBoxFeature": _convert_box,
        "BBox": _convert_box,
        "Translation": _convert_translation,
        "TranslationVariableLanguages": _convert_variable_translation,
    }
)


def _find_kind(dtype: str) -> StorageKind:
    if dtype in ("string", "object", "str"):
        return "bytes"
    if dtype not in DTYPE_NUMBERS or "complex" in dtype:
        raise _UnreadableError(f"has the unknown dtype {dtype!r:.64}")
    return "float" if "float" in dtype else "int64"


def _make_image(node: _Node, shape: Shape) -> Spec:
    dtype = node.read_text("dtype") or "uint8"
    if dtype not in DTYPE_NUMBERS:
        raise _UnreadableError(f"has the unknown dtype {dtype!r:.64}")
    return Spec(
        "bytes",
        logical="image",
        dtype=dtype,
        format=node.read_text("encoding_format"),
        decoded_shape=shape,
    )


def _add_sequence(tree: _StoredLeaf | _Tree, length: int | None) -> _StoredLeaf | _Tree:
    def add(leaf: _StoredLeaf) -> _StoredLeaf:
        spec = leaf.spec
        if spec.encoding != "list":
            # A list of arrays, each in its own bytes value, cannot be described as one array.
            meaning = f"each a {spec.dtype} array {spec.shape} as {spec.encoding} bytes"
            spec = Spec("bytes", logical="bytes", optional=spec.optional, meaning=meaning)
        logical = "tensor" if spec.logical == "scalar" else spec.logical
        return _StoredLeaf(spec.replace(shape=(length, *spec.shape), logical=logical), leaf.num_sequences + 1)

    return _map_leaves(tree, add)


def _map_leaves(tree: _StoredLeaf | _Tree, change: Callable[[_StoredLeaf], _StoredLeaf]) -> _StoredLeaf | _Tree:
    if isinstance(tree, _StoredLeaf):
        return change(tree)
    return {key: _map_leaves(child, change) for key, child in tree.items()}


def _flatten(tree: _StoredLeaf | _Tree, name: str) -> Iterator[tuple[str, _StoredLeaf]]:
    if isinstance(tree, _StoredLeaf):
        yield name, tree
    else:
        for key, child in tree.items():
            yield from _flatten(child, f"{name}/{key}" if name else key)


def _store_leaf(name: str, leaf: _StoredLeaf) -> dict[str, Spec]:
    """Return the stored features of a leaf: one, or values and row lengths for a sequence of sequences."""
    if leaf.num_sequences < 2:
        return {name: leaf.spec}
    values = leaf.spec.replace(shape=(None, *leaf.spec.shape[leaf.num_sequences :]))
    lengths = Spec("int64", (None,), logical="tensor", optional=leaf.spec.optional, meaning="row lengths")
    stored = {f"{name}/ragged_row_lengths_{level}": lengths for level in range(leaf.num_sequences - 1)}
    return {f"{name}/ragged_flat_values": values, **stored}
