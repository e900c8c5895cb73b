from __future__ import annotations

import pytest

from tfrkit.features.name_words import can_be_class, is_label_name


@pytest.mark.parametrize(
    ("name", "is_label", "is_class"),
    [
        ("label", True, True),
        ("image/class/text", True, True),
        ("objects/categories", True, True),
        ("y", True, True),
        ("image/y", True, False),
        ("clip/label/index", True, False),
        ("category_id", False, True),
        ("label/length", False, False),
        ("label/format", False, True),
        ("num_classes", False, False),
        ("numClasses", False, False),
        ("caption", False, False),
        ("", False, False),
    ],
)
def test_names_of_classes_are_known(name: str, is_label: bool, is_class: bool) -> None:
    assert (is_label_name(name), can_be_class(name)) == (is_label, is_class)
