"""Print the schema of a dataset as JSON or in the format of another program."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal

from tfrkit._types import Infer
from tfrkit.batches.survey import Surveyed, find_schema
from tfrkit.container.codecs import FORMATS
from tfrkit.container.index import load_index
from tfrkit.container.records import Policy
from tfrkit.container.shards import Shard, find_shards
from tfrkit.errors import ContainerError, Hint, Step
from tfrkit.features.arrow_schema import print_arrow_schema
from tfrkit.features.parse_specs import print_dali_spec, print_tf_spec, print_vahidk_spec
from tfrkit.features.schema import Schema, map_specs
from tfrkit.features.schema_json import to_json
from tfrkit.features.schema_pbtxt import to_pbtxt
from tfrkit.features.spec import Spec
from tfrkit.features.tfds_export import to_tfds
from tfrkit.sidecars.read import Sidecars
from tfrkit.storage.resolve import Address

Style = Literal["json", "tfds", "pbtxt", "arrow", "tf", "dali", "vahidk"]


def make_schema_text(
    address: Address | Iterable[Address], style: Style = "json", *, infer: Infer = "sample"
) -> tuple[str, str]:
    """Return the schema as text for the program `style`, and a note if it was inferred from a sample, else ""."""
    if style not in _PRINTERS:
        raise ValueError(f"style expected one of {', '.join(_PRINTERS)}, got {style!r}")
    shards = Shard.open_all(find_shards(address))
    surveyed = Surveyed()
    sidecars = Sidecars([shard.name for shard in shards])
    schema = find_schema(shards, Policy(), from_all=infer == "all", sidecars=sidecars, surveyed=surveyed)
    note: str = ""
    if surveyed.is_sample:
        total = _count_records(shards, sidecars)
        of_all = "" if total is None else f" of {total:,}"
        # No note if the sample held all records.
        if total != surveyed.survey.num_records:
            what = f"from {surveyed.survey.num_records:,}{of_all} records; all of them: {{infer}}"
            note = Hint(Step(what, infer="all"))
    for shard in shards:
        shard.close()
    if note and style in _COMMENTING:
        schema = _mark_ranges(schema)
    if style == "tf":
        return print_tf_spec(schema, _name_compressions(shards)), note
    return _PRINTERS[style](schema), note


def _name_compressions(shards: Sequence[Shard]) -> dict[str, str | None]:
    """Return TensorFlow's name of each compression of the files; empty files count only if all are empty."""
    found = {shard.compression for shard in shards if shard.reader.size != 0} or {"none"}
    return {name: row.tensorflow for name, row in FORMATS.items() if name in found}


def _count_records(shards: Sequence[Shard], sidecars: Sidecars) -> int | None:
    """Return the number of records by manifests or indexes; None if a shard has neither."""
    total = 0
    for number, shard in enumerate(shards):
        entry = sidecars.entry(number) if sidecars.fits[number] else None
        count = None if entry is None else entry.records
        if count is None:
            with contextlib.suppress(ContainerError):
                index = load_index(shard.reader)  # a stale index is reported elsewhere
                count = None if index is None else index.num_records
        if count is None:
            return None
        total += count
    return total


def _mark_ranges(schema: Schema) -> Schema:
    """Return the schema with each value range marked as that of a sample."""

    def mark(specs: Mapping[str, Spec]) -> dict[str, Spec]:
        ranged = {name: spec for name, spec in specs.items() if spec.meaning and ".." in spec.meaning}
        return {**specs, **{name: spec.replace(meaning=f"{spec.meaning} in a sample") for name, spec in ranged.items()}}

    return map_specs(schema, mark)


# Styles that print ranges in comments.
_COMMENTING = ("tf", "dali", "vahidk")
_PRINTERS: dict[str, Callable[[Schema], str]] = {
    "json": lambda schema: json.dumps(to_json(schema), indent=2),
    "tfds": lambda schema: json.dumps(to_tfds(schema).features, indent=2),
    "pbtxt": to_pbtxt,
    "arrow": print_arrow_schema,
    "tf": print_tf_spec,
    "dali": print_dali_spec,
    "vahidk": print_vahidk_spec,
}
