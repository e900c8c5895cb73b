"""Collect the sidecars to copy when records are rewritten: label files, TFDS's metadata, the dataset name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tfrkit.sidecars.places import FEATURES, INFO, LABEL_FILES, TFDS_LABELS
from tfrkit.sidecars.read import STDIN, Sidecars
from tfrkit.sidecars.same_classes import require_same_classes
from tfrkit.storage.lookup import UnusableFileError, glob_names
from tfrkit.storage.text_files import read_text


@dataclass
class Carried:
    """Sidecars to copy to a new dataset; with several input folders, only those that are equal in all of them.

    Attributes:
        labels: Texts of the files with class names and characters, by file name.
        tfds: Texts of features.json and its label files, by file name.
        info: The content of TFDS's dataset_info.json.
        name: The name of the dataset.
        notes: What is not copied, and why.
        is_new: The dataset is not made from TFRecords, so TFDS's metadata is expected for it.
    """

    labels: dict[str, str] = field(default_factory=dict)
    tfds: dict[str, str] = field(default_factory=dict)
    info: Mapping[str, Any] | None = None
    name: str | None = None
    notes: list[str] = field(default_factory=list)
    is_new: bool = False


def collect_carried(sidecars: Sidecars) -> Carried:
    """Collect the sidecars to copy with these shards. Raises `SchemaError` if a class id has two names in them."""
    carried = Carried()
    groups: dict[str, list[str]] = {}
    for path in sidecars.paths:
        if path != STDIN:
            groups.setdefault(os.path.dirname(path), []).append(path)
    beside = [Sidecars(paths) for paths in groups.values()]
    require_same_classes([*beside, sidecars] if len(beside) > 1 else [sidecars])
    for name in LABEL_FILES:
        _add_agreed(carried, carried.labels, name, [_read(one, one.find_file(name)) for one in beside])
    described = [one if one.is_tfds(0) else None for one in beside]
    names = dict.fromkeys(name for one in described if one is not None for name in _list_tfds(one.folders[0]))
    for name in names:
        texts = [None if one is None else _read(one, os.path.join(one.folders[0], name)) for one in described]
        _add_agreed(carried, carried.tfds, name, texts)
    if FEATURES not in carried.tfds:
        carried.tfds.clear()
    infos = [one.info_of(0) for one in beside]
    if infos and all(info == infos[0] for info in infos):
        carried.info = infos[0]
    elif any(infos):
        carried.notes.append(f"{INFO} was not carried over, it differs between input folders")
    called = {one.name for one in beside} | {info["name"] for info in infos if info and info.get("name")}
    called.discard(None)
    carried.name = str(called.pop()) if len(called) == 1 else None
    carried.notes = list(dict.fromkeys([*carried.notes, *(note for one in [sidecars, *beside] for note in one.notes)]))
    return carried


def _list_tfds(folder: str) -> list[str]:
    return [FEATURES, *glob_names(folder, f"*{TFDS_LABELS}")]


def _read(sidecars: Sidecars, path: str | None) -> str | None:
    try:
        return None if path is None else read_text(path)
    except UnusableFileError as error:
        sidecars.report(error.shard or str(path), error.what)
        return None


def _add_agreed(carried: Carried, chosen: dict[str, str], name: str, texts: list[str | None]) -> None:
    found = {text for text in texts if text is not None}
    if len(found) == 1 and None not in texts:
        chosen[name] = found.pop()
    elif found:
        carried.notes.append(f"{name} was not carried over, it differs between input folders")
