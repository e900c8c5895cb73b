"""Which features other forms of a dataset can hold as a column that `build` reads back."""

from __future__ import annotations

from streets.truth import Feature


def is_column(name: str, feature: Feature) -> bool:
    """Whether `build table` takes it from Parquet: no lists in lists, no integers beyond int64."""
    return len(feature.shape) < 2 and feature.dtype != "uint64"


def is_dense(name: str, feature: Feature) -> bool:
    """Whether an .npz has one array of it, a row for each record: one shape, never absent, no bytes NumPy might cut."""
    is_short = feature.dtype != "bytes" or (feature.logical == "text" and feature.shape == ())
    return None not in feature.shape and not feature.optional and is_short


def is_bytes_list(feature: Feature) -> bool:
    return feature.dtype == "bytes" and feature.shape != ()
