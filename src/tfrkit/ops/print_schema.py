"""The schema of a dataset in the words of another program."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Literal

from tfrkit._types import Infer
from tfrkit.batches.survey import find_schema
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard, find_shards
from tfrkit.features.arrow_schema import print_arrow_schema
from tfrkit.features.parse_specs import print_dali_spec, print_tf_spec, print_vahidk_spec
from tfrkit.features.schema import Schema
from tfrkit.features.schema_json import to_json
from tfrkit.features.schema_pbtxt import to_pbtxt
from tfrkit.features.tfds_export import to_tfds
from tfrkit.storage.resolve import Address

Style = Literal["json", "tfds", "pbtxt", "arrow", "tf", "dali", "vahidk"]


def print_schema(address: Address | Iterable[Address], style: Style = "json", *, infer: Infer = "sample") -> str:
    """The schema as text, ready to be saved: JSON, or source for the program named. `infer` as in `tfr.open`."""
    shards = [Shard.open(path) for path in find_shards(address)]
    schema = find_schema(shards, Policy(), from_all=infer == "all")
    for shard in shards:
        shard.close()
    if style not in _PRINTERS:
        raise ValueError(f"style expected one of {', '.join(_PRINTERS)}, got {style!r}")
    return _PRINTERS[style](schema)


def _print_json(schema: Schema) -> str:
    return json.dumps(to_json(schema), indent=2)


def _print_tfds(schema: Schema) -> str:
    return json.dumps(to_tfds(schema).features, indent=2)


_PRINTERS: dict[str, Callable[[Schema], str]] = {
    "json": _print_json,
    "tfds": _print_tfds,
    "pbtxt": to_pbtxt,
    "arrow": print_arrow_schema,
    "tf": print_tf_spec,
    "dali": print_dali_spec,
    "vahidk": print_vahidk_spec,
}
