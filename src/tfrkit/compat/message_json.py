"""`tf.io.decode_json_example`: an Example as JSON, in protobuf's JSON mapping."""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

import numpy as np

from tfrkit.compat.graph import deferrable
from tfrkit.compat.op_errors import InvalidArgumentError
from tfrkit.compat.tensor import Tensor, to_tensor, wrap
from tfrkit.compat.train_messages import Example

_LISTS = {"bytesList": "bytes_list", "floatList": "float_list", "int64List": "int64_list"}


@deferrable
def decode_json_example(json_examples: Any, name: Any = None) -> Tensor:
    """Convert Examples in JSON to serialized Examples, one for each string."""
    texts = to_tensor(json_examples, "string")
    records = np.empty(texts.size, object)
    records[:] = [_encode(text) for text in texts.reshape(-1).tolist()]
    return wrap(records.reshape(tuple(texts.shape)))


def _encode(text: bytes) -> bytes:
    try:
        given = json.loads(text)
        features = _take(_take(given, "features"), "feature")
        made = {key: _read_feature(value) for key, value in features.items()}
        return (Example(features={"feature": made}) if given else Example()).SerializeToString()
    except (ValueError, TypeError, AttributeError, RecursionError, binascii.Error) as error:
        raise InvalidArgumentError(None, None, f"expected an Example as JSON, got {text[:64]!r}: {error}") from None


def _take(message: dict[str, Any], field: str) -> dict[str, Any]:
    """Return the only field that this message may have, or an empty dict if it is missing."""
    unknown = sorted(set(message) - {field})
    if unknown:
        raise ValueError(f"expected {field!r}, got {unknown[0]!r}")
    return message.get(field) or {}


def _read_feature(feature: dict[str, Any]) -> dict[str, Any]:
    if len(feature) > 1:
        raise ValueError(f"a feature expected one list, got {sorted(feature)}")
    found = {}
    for field, inner in feature.items():
        kind = _LISTS.get(field, field)
        if kind not in _LISTS.values():
            raise ValueError(f"a feature expected one of {sorted(_LISTS)}, got {field!r}")
        found[kind] = {"value": [_READERS[kind](value) for value in _take(inner, "value") or ()]}
    return found


def _read_bytes(value: str) -> bytes:
    text = value.replace("-", "+").replace("_", "/").rstrip("=")
    return base64.b64decode(text + "=" * (-len(text) % 4), validate=True)


# Numbers may be strings, which is how protobuf writes 64-bit integers.
_READERS: dict[str, Any] = {"bytes_list": _read_bytes, "float_list": float, "int64_list": int}
