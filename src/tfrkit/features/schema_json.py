"""The lossless JSON form of a schema, with stable keys.

```json
{
  "format": "tfrkit.schema",
  "version": 1,
  "kind": "example",
  "features": [
    {"name": "image", "type": "bytes", "shape": [], "logical": "image", "encoding": "list", "optional": false},
    {"name": "xyz", "type": "float", "shape": [null, 3], "logical": "tensor", "encoding": "list", "optional": false}
  ]
}
```

`kind` is example, sequence_example or raw; a sequence_example also has `feature_lists`, in the same form. A feature
always has the six keys above: its `name` (bytes that are not UTF-8 as lone surrogates), the storage `type` (bytes,
float, int64), the `shape` (null for a varying size), the `logical` type, the `encoding` (list, tensor_proto, raw,
zlib) and whether it is `optional`. Other keys are present only if set: `dtype`, `classes` (names by class id),
`num_classes`, `ignore`, `format`, `decoded_shape`, `seen` and `meaning`, as in `Spec`. The order of the features is
the order of the schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfrkit.errors import SchemaError
from tfrkit.features.schema import Schema, show_name
from tfrkit.features.spec import Spec

_FORMAT = "tfrkit.schema"
_VERSION = 1
_ALWAYS = ("kind", "shape", "logical", "encoding", "optional")
_WHERE_SET = ("dtype", "classes", "num_classes", "ignore", "format", "decoded_shape", "seen", "meaning")
_TUPLES = frozenset({"shape", "classes", "decoded_shape", "seen"})
# A JSON file may have a value of any type, so each value is checked before it becomes part of a Spec.
_VALUE_TYPES: Mapping[str, tuple[type, ...]] = {
    "type": (str,),
    "shape": (list,),
    "logical": (str,),
    "encoding": (str,),
    "optional": (bool,),
    "dtype": (str,),
    "classes": (list,),
    "num_classes": (int,),
    "ignore": (int,),
    "format": (str,),
    "decoded_shape": (list,),
    "seen": (list,),
    "meaning": (str,),
}


def to_json(schema: Schema) -> dict[str, Any]:
    """Convert a schema to a value for `json.dumps`.

    Example:
        >>> to_json(Schema({"label": "int64"}))["features"][0]["type"]
        'int64'
    """
    content: dict[str, Any] = {
        "format": _FORMAT,
        "version": _VERSION,
        "kind": schema.kind,
        "features": [_spec_to_json(name, spec) for name, spec in schema.features.items()],
    }
    if schema.kind == "sequence_example":
        content["feature_lists"] = [_spec_to_json(name, spec) for name, spec in schema.feature_lists.items()]
    return content


def from_json(content: object) -> Schema:
    """Convert the result of `to_json` back to a schema.

    Unknown keys raise `SchemaError`: if they were ignored, a feature might be read in the wrong way.
    """
    if not isinstance(content, Mapping) or content.get("format") != _FORMAT:
        raise SchemaError(f"schema JSON expected an object with format {_FORMAT!r}")
    if content.get("version") != _VERSION:
        raise SchemaError(f"schema JSON expected version {_VERSION}, got {content.get('version')!r}")
    unknown = content.keys() - {"format", "version", "kind", "features", "feature_lists"}
    if unknown:
        raise SchemaError(f"schema JSON has unknown keys: {', '.join(sorted(map(str, unknown)))}")
    lists = content.get("feature_lists")
    try:
        return Schema(
            _specs_from_json(content.get("features"), "features"),
            feature_lists=None if lists is None else _specs_from_json(lists, "feature_lists"),
            kind=content.get("kind"),
        )
    except (TypeError, ValueError) as error:
        raise SchemaError(f"schema JSON is inconsistent: {error}") from error


def _spec_to_json(name: str, spec: Spec) -> dict[str, Any]:
    row: dict[str, Any] = {"name": name}
    for key in (*_ALWAYS, *_WHERE_SET):
        value = getattr(spec, key)
        if key in _ALWAYS or (value is not None and value != ""):
            row["type" if key == "kind" else key] = list(value) if isinstance(value, tuple) else value
    if spec.classes is not None:
        del row["num_classes"]
    return row


def _specs_from_json(rows: object, where: str) -> dict[str, Spec]:
    if not isinstance(rows, list):
        raise SchemaError(f"schema JSON expected a list, got {type(rows).__name__} - at {where}")
    specs: dict[str, Spec] = {}
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping) or not isinstance(row.get("name"), str):
            raise SchemaError(f"schema JSON expected an object with a name - at {where}[{index}]")
        name = row["name"]
        if name in specs:
            raise SchemaError(f"feature {show_name(name)} is present twice - at {where}[{index}]")
        specs[name] = _spec_from_json(name, row)
    return specs


def _spec_from_json(name: str, row: Mapping[str, Any]) -> Spec:
    fields: dict[str, Any] = {}
    for key, value in row.items():
        if key == "name":
            continue
        if key not in _VALUE_TYPES:
            raise SchemaError(f"feature {show_name(name)} has unknown key {key!r}")
        is_right = isinstance(value, _VALUE_TYPES[key]) and not (isinstance(value, bool) and key != "optional")
        if not is_right:
            expected = " or ".join(kind.__name__ for kind in _VALUE_TYPES[key])
            raise SchemaError(f"feature {show_name(name)} expected {expected} as {key}, got {value!r:.64}")
        fields["kind" if key == "type" else key] = tuple(value) if key in _TUPLES else value
    if "kind" not in fields:
        raise SchemaError(f"feature {show_name(name)} has no type")
    try:
        return Spec(**fields)
    except (TypeError, ValueError) as error:
        raise SchemaError(f"feature {show_name(name)}: {error}") from error
