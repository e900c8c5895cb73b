from __future__ import annotations

from tfrkit.cli import diff


def test_features_that_differ_are_described() -> None:
    assert diff.describe_schema({"feature": "x", "change": "changed", "a": "int64", "b": "float"}).endswith(
        "int64 -> float"
    )
    assert diff.describe_schema({"feature": "x", "change": "added", "a": None, "b": "float"}).endswith("added, float")
