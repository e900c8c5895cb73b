"""The module that scripts import: its names, its import cost, and errors for missing names."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tfrkit.compat import tensorflow as tf
from tfrkit.compat.namespace import MissingNameError


def test_import_is_light() -> None:
    code = "import json, sys, tfrkit.compat.tensorflow; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"tensorflow", "torch", "jax", "google.protobuf", "PIL", "typer", "rich", "asyncio", "multiprocessing"}
    assert set(json.loads(done.stdout)) & heavy == set()


@pytest.mark.parametrize(
    "path",
    """train.Example train.Features train.Feature train.Int64List train.BytesList train.FloatList train.SequenceExample
    train.FeatureLists train.FeatureList python_io.TFRecordWriter python_io.TFRecordOptions
    python_io.TFRecordCompressionType python_io.tf_record_iterator io.TFRecordWriter io.TFRecordOptions
    io.parse_single_example io.parse_example io.FixedLenFeature io.VarLenFeature io.FixedLenSequenceFeature
    io.RaggedFeature io.decode_raw io.decode_jpeg io.decode_png io.decode_image io.parse_tensor io.serialize_tensor
    io.gfile.exists gfile.Exists gfile.GFile parse_single_example parse_example FixedLenFeature VarLenFeature decode_raw
    data.TFRecordDataset data.Dataset TFRecordReader train.string_input_producer train.shuffle_batch train.batch
    train.Coordinator train.start_queue_runners Session ConfigProto GPUOptions global_variables_initializer
    logging.set_verbosity errors.OutOfRangeError sparse.to_dense sparse_tensor_to_dense reshape cast int64 string
    compat.v1.Session compat.v1.python_io.TFRecordWriter compat.v1.train.Example compat.v1.io.tf_record_iterator
    compat.v1.gfile.Exists compat.v1.app.run compat.v1.flags.DEFINE_string app.flags.FLAGS
    flags.DEFINE_bool compat.v1.data.make_one_shot_iterator compat.as_bytes""".split(),
)
def test_name_is_offered(path: str) -> None:
    found = tf
    for name in path.split("."):
        found = getattr(found, name)
    assert path.split(".")[0] in dir(tf)


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("keras", r"train with PyTorch or JAX, .*to_torch\(\)"),
        ("Variable", "train with PyTorch"),
        ("nothing_like_it", "install TensorFlow for this"),
        ("image.resize_images", "Pillow or NumPy"),
        ("app.nothing", "argparse"),
        ("train.AdamOptimizer", "train with PyTorch"),
        ("train.Exmaple", "closest is tf.train.Example; otherwise train with"),
        ("TFRecordDataset", "\n  use tf.data.TFRecordDataset$"),
        ("gfile.exists", "\n  use tf.gfile.Exists$"),
        ("compat.v1.io.FixedLenFeatur", "closest is tf.io.FixedLenFeature; otherwise read and write records"),
        ("data.FixedLengthRecordDataset", "tfr.open"),
        ("data.experimental.bucket_by_sequence_length", "tfr.open"),
        ("compat.v1.layers", "train with PyTorch"),
        ("gfile.HasAtomicMove", "os, glob and shutil"),
        ("io.gfile.get_registered_schemes", "os, glob and shutil"),
    ],
)
def test_missing_name_says_what_to_do(path: str, advice: str) -> None:
    found = tf
    with pytest.raises(
        AttributeError, match=rf"is not offered, tfrkit\.compat covers the TFRecord parts(.|\n)*{advice}"
    ):
        for name in path.split("."):
            found = getattr(found, name)
    assert not hasattr(tf, "nothing")


def test_helpers_of_the_module_are_no_names_of_it() -> None:
    with pytest.raises(AttributeError, match="tf.dataset is not offered"):
        tf.dataset  # noqa: B018


def test_what_is_missing_is_in_attributes() -> None:
    with pytest.raises(MissingNameError, match="tf.keras is not offered") as caught:
        tf.keras  # noqa: B018
    assert (caught.value.path, caught.value.name) == ("tf.keras", "keras")
    assert caught.value.advice.startswith("train with")


def test_version_passes_the_checks_of_scripts() -> None:
    assert not tf.__version__ < "1.4.0"
    assert [int(part) for part in tf.__version__.split(".")] > [1, 9, 0]
    assert tf.VERSION == tf.version.VERSION == tf.compat.v1.__version__ == tf.__version__
    assert tf.version.GIT_VERSION == tf.GIT_VERSION == "tfrkit.compat"


def test_devices_are_none() -> None:
    assert not tf.test.is_gpu_available()
    assert tf.config.list_physical_devices("GPU") == tf.config.experimental.list_physical_devices("GPU") == []


def test_text_and_bytes_are_turned_into_each_other() -> None:
    assert tf.compat.as_bytes("é") == "é".encode()
    assert tf.compat.as_text(b"a") == tf.compat.as_str("a") == tf.compat.v1.compat.as_text(b"a") == "a"
    assert (tf.compat.as_str_any(3), tf.compat.as_str_any(b"x")) == ("3", "x")
    for convert in (tf.compat.as_bytes, tf.compat.as_text):
        with pytest.raises(TypeError, match="expected bytes or text, got int"):
            convert(3)
