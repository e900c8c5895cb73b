"""Write a schema as a TFDS `features.json`, which `tfds.builder_from_directory` loads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tfrkit.errors import SchemaError
from tfrkit.features.schema import Schema, show_name
from tfrkit.features.spec import Shape, Spec

_PACKAGE = "tensorflow_datasets.core.features."
_STORED_DTYPES = {"int64": "int64", "float": "float32", "bytes": "string"}
# TFDS decodes these two formats, with these numbers of channels; other images stay bytes.
_IMAGE_CHANNELS = {"png": (1, 2, 3, 4), "jpeg": (1, 3)}


@dataclass(frozen=True)
class TfdsFiles:
    """Files to write next to the shards, and notes on what TFDS reads differently.

    `features` is the content of features.json; `labels` maps file names (``label.labels.txt``) to their text;
    `notes` has one sentence per feature that TFDS returns in another form.
    """

    features: dict[str, Any]
    labels: Mapping[str, str]
    notes: tuple[str, ...]


def to_tfds(schema: Schema) -> TfdsFiles:
    """Convert a schema to the files of TFDS; feature names are kept, including slashes.

    Raises `SchemaError` for records that are not Examples, which TFDS cannot read.
    """
    if schema.kind != "example":
        raise SchemaError(f"TFDS expected example records, got {schema.kind}")
    writer = _TfdsWriter()
    features = {}
    for name, spec in schema.features.items():
        if not _is_utf8(name):
            writer.notes.append(f"feature {show_name(name)} is left out: its name is not UTF-8")
            continue
        features[name] = writer.describe(name, spec)
    top = _feature("features_dict.FeaturesDict", "featuresDict", {"features": features})
    return TfdsFiles(top, writer.labels, tuple(writer.notes))


class _TfdsWriter:
    def __init__(self) -> None:
        self.labels: dict[str, str] = {}
        self.notes: list[str] = []

    def describe(self, name: str, spec: Spec) -> dict[str, Any]:
        if spec.seen is not None and len(spec.seen) > 1:
            self._note(name, f"has {' and '.join(spec.seen)} in different records; TFDS will read the {spec.kind} ones")
        if spec.encoding == "tensor_proto":
            self._note(name, "is a serialized tensor; TFDS returns its bytes, for tf.io.parse_tensor")
            return self._describe_tensor(name, Spec("bytes", optional=spec.optional))
        if spec.encoding != "list":
            return self._describe_array(name, spec)
        # TFDS supports optional features only for plain tensors.
        if not spec.optional:
            inner = self._describe_element(name, spec)
            if inner is not None:
                sizes, feature = inner
                return _wrap_sequences(feature, sizes)
        return self._describe_tensor(name, spec)

    def _describe_element(self, name: str, spec: Spec) -> tuple[Shape, dict[str, Any]] | None:
        """Return a feature that has its own TFDS class, with the sizes of the sequences around it, or None."""
        shape = spec.shape
        if spec.logical in ("image", "mask") and spec.kind == "bytes" and len(shape) < 2:
            feature = self._describe_image(name, spec)
            return None if feature is None else (shape, feature)
        if spec.logical == "class_label" and spec.kind == "int64" and spec.num_classes is not None and len(shape) < 2:
            self._keep_labels(name, spec)
            label = {"numClasses": str(spec.num_classes)}
            return shape, _feature("class_label_feature.ClassLabel", "classLabel", label)
        if spec.logical == "text" and spec.kind == "bytes" and len(shape) < 2:
            return shape, _feature("text_feature.Text", "text", {})
        if spec.logical == "boxes" and spec.kind == "float" and 1 <= len(shape) < 3 and shape[-1] == 4:
            box = {"shape": _shape((4,)), "dtype": "float32"}
            return shape[:-1], _feature("bounding_boxes.BBoxFeature", "boundingBox", box)
        return None

    def _describe_image(self, name: str, spec: Spec) -> dict[str, Any] | None:
        is_mask = spec.logical == "mask"
        shape = spec.decoded_shape or (None, None, 1 if is_mask else 3)
        image_format = spec.format or ""
        channels = _IMAGE_CHANNELS.get(image_format, (1, 3)) if image_format in ("", "png", "jpeg") else ()
        if len(shape) != 3 or shape[-1] not in channels or (is_mask and (shape[-1] != 1 or image_format == "jpeg")):
            self._note(name, f"is a {image_format} image {shape}, which TFDS cannot decode; TFDS returns its bytes")
            return None
        image: dict[str, Any] = {"shape": _shape(shape), "dtype": spec.dtype or "uint8"}
        if image_format:
            image["encodingFormat"] = image_format
        if not is_mask:
            return _feature("image_feature.Image", "image", image)
        self._keep_labels(name, spec)
        image["useColormap"] = True
        image["label"] = {} if spec.num_classes is None else {"numClasses": str(spec.num_classes)}
        return _feature("labeled_image.LabeledImage", "image", image)

    def _describe_array(self, name: str, spec: Spec) -> dict[str, Any]:
        if spec.shape.count(None) > 1:
            self._note(name, f"has an array {spec.shape} whose shape TFDS cannot infer; TFDS returns its bytes")
            return self._describe_tensor(name, Spec("bytes", optional=spec.optional))
        encoding = "zlib" if spec.encoding == "zlib" else "bytes"
        return _tensor(spec.shape, str(spec.dtype), encoding=encoding, optional=spec.optional)

    def _describe_tensor(self, name: str, spec: Spec) -> dict[str, Any]:
        shape = spec.shape
        if shape.count(None) > 1:
            self._note(name, f"has shape {shape}; TFDS returns the values as one list")
            shape = (None,)
        # If a size varies, TFDS reads a missing feature as empty and has no default for it.
        optional = spec.optional and None not in shape
        dtype = _STORED_DTYPES[spec.kind] if spec.kind == "bytes" else spec.dtype or _STORED_DTYPES[spec.kind]
        return _tensor(shape, dtype, encoding="none", optional=optional)

    def _keep_labels(self, name: str, spec: Spec) -> None:
        if spec.classes is None:
            return
        # TFDS reads one name per line, strips it, and drops blank lines.
        if any(label != label.strip() or not label or "\n" in label for label in spec.classes):
            self._note(name, "has class names that do not fit on lines of a file; TFDS will see ids only")
            return
        self.labels[f"{name.replace('/', '.')}.labels.txt"] = "\n".join(spec.classes) + "\n"

    def _note(self, name: str, text: str) -> None:
        self.notes.append(f"feature {show_name(name)} {text}")


def _feature(class_name: str, content_key: str, content: Mapping[str, Any]) -> dict[str, Any]:
    return {"pythonClassName": _PACKAGE + class_name, content_key: dict(content)}


def _tensor(shape: Shape, dtype: str, *, encoding: str, optional: bool) -> dict[str, Any]:
    content: dict[str, Any] = {"shape": _shape(shape), "dtype": dtype, "encoding": encoding}
    if optional:
        content["optional"] = True
    return _feature("tensor_feature.Tensor", "tensor", content)


def _shape(shape: Shape) -> dict[str, Any]:
    # protobuf's JSON format writes 64-bit integers as strings.
    return {"dimensions": [str(-1 if size is None else size) for size in shape]} if shape else {}


def _wrap_sequences(feature: dict[str, Any], sizes: Shape) -> dict[str, Any]:
    for size in reversed(sizes):
        content = {"feature": feature, "length": str(-1 if size is None else size)}
        feature = _feature("sequence_feature.Sequence", "sequence", content)
    return feature


def _is_utf8(name: str) -> bool:
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True
