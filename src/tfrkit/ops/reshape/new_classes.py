"""New class names of a feature: which id each old id becomes, and the sidecars that hold the names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tfrkit.features.labels import LabelMap, is_unused, number_names, read_class_map
from tfrkit.features.schema import Schema, map_specs
from tfrkit.features.spec import Spec
from tfrkit.sidecars.carry import Carried
from tfrkit.sidecars.places import CLASS_FILES, CLASSES, LABEL_MAP
from tfrkit.sidecars.read import Sidecars


@dataclass(frozen=True)
class NewClasses:
    """The new names of a feature's classes, and the new id of each old one."""

    labels: LabelMap
    ids: Mapping[int, int]


def find_new_classes(feature: str, names: str | Sequence[str], sidecars: Sidecars) -> NewClasses:
    """Match old and new names. Names without ids start at the id at which the old ones start."""
    old = sidecars.classes.get(feature)
    if old is None and sidecars.class_file is not None and not sidecars.classes:
        old = sidecars.class_file.spec_names()
    first = next((number for number, name in enumerate(old or ()) if not is_unused(name)), 0)
    if isinstance(names, str):
        labels = read_class_map(names, first=first)
    else:
        labels = number_names(names, offset=None, first=first, origin="the given names")
    named = {labels.id_of(name): name for name in labels.names if labels.id_of(name) not in labels.gaps}
    if old is None:
        return NewClasses(labels, {number: number for number in named})
    ids = {number: labels.id_of(name) for number, name in enumerate(old) if name in labels and not is_unused(name)}
    ignored = None if sidecars.schema is None or feature not in sidecars.schema else sidecars.schema[feature].ignore
    return NewClasses(labels, ids if ignored is None else {**ids, ignored: ignored})


def rename_classes(schema: Schema, new_classes: Mapping[str, NewClasses]) -> Schema:
    """Return the schema with the new names."""

    def rename(specs: Mapping[str, Spec]) -> dict[str, Spec]:
        return {name: _set_names(spec, new_classes.get(name)) for name, spec in specs.items()}

    return map_specs(schema, rename)


def _set_names(spec: Spec, new: NewClasses | None) -> Spec:
    if new is None:
        return spec
    return spec.replace(classes=new.labels.spec_names(), num_classes=None, logical="class_label")


def replace_class_files(carried: Carried, new_classes: Mapping[str, NewClasses]) -> None:
    """Write the new names to the class files that are carried over."""
    if not new_classes:
        return
    there = [name for name in CLASS_FILES if name in carried.labels]
    for name in there:
        del carried.labels[name]
    if there and len(new_classes) == 1:
        [new] = new_classes.values()
        carried.labels[CLASSES] = new.labels.to_text()
        if LABEL_MAP in there:
            carried.labels[LABEL_MAP] = new.labels.to_label_map()
