from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import tfrkit
from tfrkit.container.shards import Shard
from tfrkit.ops.verify.rules import RecordRules, describe_rules, find_rules


def png(level: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (4, 3), (level, 0, 0)).save(file, "PNG")
    return file.getvalue()


def rules_of(path: Path, rows: list[dict[str, Any]]) -> RecordRules:
    with tfrkit.Writer(path) as writer:
        for row in rows:
            writer.write(row)
    return find_rules([Shard.open(str(path))])


@pytest.mark.parametrize("name", ["image/encoded", "photo", "x", "image"])
def test_images_are_found_by_what_they_hold(tmp_path: Path, name: str) -> None:
    rules = rules_of(tmp_path / "a", [{name: png(level), "note": b"text"} for level in range(8)])
    assert (rules.image, rules.images) == (name, (name,))


def test_one_damaged_image_does_not_hide_the_others(tmp_path: Path) -> None:
    rows = [{"photo": png(level)} for level in range(8)]
    rows[0] = {"photo": b"junk"}
    assert rules_of(tmp_path / "a", rows).images == ("photo",)


def test_text_that_is_called_image_is_none(tmp_path: Path) -> None:
    rows = [{"image": b"aGVsbG8=" * 9, "height": 6, "width": 6} for _ in range(4)]
    rules = rules_of(tmp_path / "a", rows)
    assert (rules.image, rules.images) == (None, ())
    assert describe_rules(rules) == "looked at: kinds of features, whole records"


def test_label_is_the_known_one(tmp_path: Path) -> None:
    (tmp_path / "labels.txt").write_text("a\nb\n")
    rules = rules_of(tmp_path / "a", [{"label": 1, "age": 40, "zip/label": 3} for _ in range(3)])
    assert list(rules.labels) == ["label"]
    assert (rules.labels["label"].low, rules.labels["label"].high) == (0, 2)


def test_class_names_that_cannot_be_read_are_noted(tmp_path: Path) -> None:
    (tmp_path / "classes.txt").write_bytes(b"\xff\xfe\x00")
    rules = rules_of(tmp_path / "a", [{"label": 1}])
    assert rules.labels == {}
    assert rules.problems[0].what.startswith("class names were not used, ")


def test_two_labels_without_a_known_name_are_not_checked(tmp_path: Path) -> None:
    (tmp_path / "classes.txt").write_text("a\nb\n")
    assert rules_of(tmp_path / "a", [{"left_label": 1, "right_label": 5}]).labels == {}
    assert list(rules_of(tmp_path / "b", [{"my_label": 1, "other": 5}]).labels) == ["my_label"]
