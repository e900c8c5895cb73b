"""Refuse to put records together if a class id means different classes in them."""

from __future__ import annotations

import os
from collections.abc import Sequence

from tfrkit.errors import SchemaError
from tfrkit.features.schema import show_name
from tfrkit.sidecars.read import ClassClash, Sidecars


def require_same_classes(groups: Sequence[Sidecars]) -> None:
    """Raise `SchemaError` if a class id has another name in one group of shards than in the first, or within a group.

    Class lists of different lengths that begin with the same names are no clash.
    """
    clash = next((one.class_clash for one in groups if one.class_clash is not None), None)
    for other in groups[1:]:
        clash = clash or _find_clash(groups[0], other)
    if clash is not None:
        raise SchemaError(
            f"class {clash.number} of feature {show_name(clash.feature)} is {show_name(clash.other)} here and "
            f"{show_name(clash.one)} in the other files; together the ids would mean nothing",
            shard=clash.path,
            hint=f"write all names into one file, then renumber each dataset: "
            f"tfr convert {os.path.dirname(clash.path) or '.'} -o DIR --classes '{clash.feature}=names.txt'",
        )


def _find_clash(first: Sidecars, other: Sidecars) -> ClassClash | None:
    pairs = [(name, classes, other.classes[name]) for name, classes in first.classes.items() if name in other.classes]
    if first.class_file is not None and other.class_file is not None:
        pairs.append(("label", first.class_file.spec_names() or (), other.class_file.spec_names() or ()))
    for feature, classes, others in pairs:
        for number, (one, two) in enumerate(zip(classes, others, strict=False)):
            if one != two:
                return ClassClash(feature, number, one, two, other.paths[0])
    return None
