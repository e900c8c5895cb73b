"""The names of modules that scripts import as TensorFlow's."""

from __future__ import annotations

import pytest

from tfrkit.compat import tensorflow as tf
from tfrkit.compat.stand_ins import MissingModuleError, find_names


def test_module_has_its_own_names_alone() -> None:
    assert find_names("tensorflow")["io"] is tf.io
    assert find_names("tensorflow.io")["TFRecordWriter"] is tf.io.TFRecordWriter
    assert "train" not in find_names("tensorflow.io")
    assert find_names("tensorflow.io.gfile")["exists"] is tf.io.gfile.exists
    assert find_names("tensorflow.compat.v1")["Session"] is tf.compat.v1.Session


@pytest.mark.parametrize("name", ["keras", "io.nothing", "compat.v1.layers", "io.TFRecordWriter"])
def test_module_that_is_missing_is_named(name: str) -> None:
    with pytest.raises(MissingModuleError, match=rf"tf\.{name} is not offered"):
        find_names(f"tensorflow.{name}")
