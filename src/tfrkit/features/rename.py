"""Rename features."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tfrkit.errors import SourceError
from tfrkit.features.schema import Schema, find_nearest_name, map_specs, show_name


def rename_keys(features: Mapping[str, Any], keys: Mapping[str, str]) -> dict[str, Any]:
    """Return the features with the names in `keys` replaced."""
    return {keys.get(name, name): value for name, value in features.items()}


def rename_schema(schema: Schema, keys: Mapping[str, str]) -> Schema:
    """Return the schema with the names in `keys` replaced; raise if a name is unknown or would occur twice."""
    if not keys:
        return schema
    for old in keys:
        if old not in schema:
            nearest = find_nearest_name(old, schema.names)
            hint = f"did you mean {show_name(nearest)}" if nearest is not None else None
            raise SourceError(f"no feature {show_name(old)} to rename, there are {', '.join(schema.names)}", hint=hint)
    for names in (schema.features, schema.feature_lists):
        renamed = [keys.get(name, name) for name in names]
        twice = sorted({name for name in renamed if renamed.count(name) > 1})
        if twice:
            raise SourceError(f"two features would be called {', '.join(map(show_name, twice))}")
    return map_specs(schema, lambda specs: rename_keys(specs, keys))
