"""Old scripts under `tfr run`, in an environment where TensorFlow and pandas are: TensorFlow reads what they write."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image

OLD_SCRIPTS = Path(__file__).parents[1] / "cli" / "old_scripts"
COMMAND = [sys.executable, "-c", "from tfrkit_start import main; main()", "run"]
# Stand-in for the Object Detection API when a script runs on real TensorFlow.
REAL_UTIL = """
import tensorflow as tf
def feature(kind, values):
    lists = {"int64": tf.train.Int64List, "bytes": tf.train.BytesList, "float": tf.train.FloatList}
    return tf.train.Feature(**{kind + "_list": lists[kind](value=values)})
int64_feature = lambda value: feature("int64", [value])
int64_list_feature = lambda value: feature("int64", value)
bytes_feature = lambda value: feature("bytes", [value])
bytes_list_feature = lambda value: feature("bytes", value)
float_list_feature = lambda value: feature("float", value)
"""


def run(program: list[str], *arguments: object, cwd: Path) -> str:
    done = subprocess.run(
        [*program, *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=cwd,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def read_examples(path: Path) -> list[bytes]:
    """Each record as TensorFlow parses it and writes it again."""
    records = tf.data.TFRecordDataset(str(path)).as_numpy_iterator()
    return [tf.train.Example.FromString(record).SerializeToString(deterministic=True) for record in records]


@pytest.fixture
def boxes(tmp_path: Path) -> list[str]:
    (tmp_path / "images").mkdir()
    for number, name in enumerate(("b.jpg", "a.jpg", "c.jpg")):
        pixels = np.random.default_rng(number).integers(0, 256, (31, 47, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "images" / name)
    (tmp_path / "boxes.csv").write_text(
        "filename,class,xmin,ymin,xmax,ymax\nb.jpg,fox,2,1,10,5\na.jpg,raccoon,0,0,20,10\nb.jpg,raccoon,4,5,5,6\n"
        "c.jpg,fox,7,7,46,30\n"
    )
    return ["--csv_input=boxes.csv", "--image_dir=images"]


@pytest.mark.parametrize("name", ["generate_tfrecord.py", "generate_tfrecord_pandas.py"])
def test_script_writes_what_it_writes_with_tensorflow(tmp_path: Path, boxes: list[str], name: str) -> None:
    run(COMMAND, OLD_SCRIPTS / name, *boxes, "--output_path=ours.record", cwd=tmp_path)
    real = tmp_path / "real"
    (real / "object_detection" / "utils").mkdir(parents=True)
    (real / "object_detection" / "utils" / "dataset_util.py").write_text(REAL_UTIL)
    # The one line that TensorFlow 2 requires.
    text = (OLD_SCRIPTS / name).read_text().replace("import tensorflow as tf", "import tensorflow.compat.v1 as tf")
    (real / name).write_text(text)
    run([sys.executable], real / name, *boxes, "--output_path=real.record", cwd=tmp_path)
    ours = read_examples(tmp_path / "ours.record")
    assert len(ours) == 3
    assert ours == read_examples(tmp_path / "real.record")


def test_pandas_and_plain_script_write_the_same(tmp_path: Path, boxes: list[str]) -> None:
    for name in ("generate_tfrecord.py", "generate_tfrecord_pandas.py"):
        run(COMMAND, OLD_SCRIPTS / name, *boxes, f"--output_path={name}.record", cwd=tmp_path)
    plain, pandas = sorted(tmp_path.glob("*.record"))
    assert plain.read_bytes() == pandas.read_bytes()


def test_graph_script_writes_what_it_writes_with_tensorflow(tmp_path: Path) -> None:
    for number in range(9):
        path = tmp_path / "photos" / ("rose" if number < 4 else "daisy") / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 256, (20 + number, 30, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(path)
    name = "convert_flowers.py"
    shown = run(COMMAND, OLD_SCRIPTS / name, "photos", "ours", cwd=tmp_path)
    real = tmp_path / "scripts"
    (real / "datasets").mkdir(parents=True)
    (real / "datasets" / "__init__.py").write_text("")
    util = (Path(__file__).parents[2] / "src/tfrkit/compat/slim/datasets/dataset_utils.py").read_text()
    for old, new in (
        ("from tfrkit.compat.gfile import exists, open_file", "open_file = tf.gfile.GFile; exists = tf.gfile.Exists"),
        ("from tfrkit.compat.record_io import TFRecordWriter", "TFRecordWriter = tf.python_io.TFRecordWriter"),
        ("from tfrkit.compat.train_messages import ", "from tensorflow.train import "),
        ("import contextlib\n", "import contextlib\nimport tensorflow.compat.v1 as tf\n"),
    ):
        assert old in util
        util = util.replace(old, new)
    (real / "datasets" / "dataset_utils.py").write_text(util)
    text = (OLD_SCRIPTS / name).read_text().replace("import tensorflow as tf", "import tensorflow.compat.v1 as tf")
    (real / name).write_text(text)
    assert run([sys.executable], real / name, "photos", "real", cwd=tmp_path) == shown
    for path in sorted((tmp_path / "real").iterdir()):
        if path.suffix == ".txt":
            assert (tmp_path / "ours" / path.name).read_bytes() == path.read_bytes()
        else:
            assert read_examples(tmp_path / "ours" / path.name) == read_examples(path)


def test_tensorflow_is_not_imported_even_when_installed(tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text(
        "import sys\nimport tensorflow as tf\nprint(tf.GIT_VERSION, 'tensorflow.python' in sys.modules)\n"
    )
    assert run(COMMAND, "old.py", cwd=tmp_path) == "tfrkit.compat False\n"


def test_encoded_pictures_decode_to_nearly_tensorflows_pixels() -> None:
    from tfrkit.compat import tensorflow as ours

    smooth = np.add.outer(np.arange(40) * 3, np.arange(50) * 2)[:, :, None] + np.array([0, 20, 40])
    pixels = smooth.astype(np.uint8)
    for quality in (100, 95, 60):
        made = tf.io.decode_jpeg(ours.io.encode_jpeg(pixels, quality=quality).numpy()).numpy().astype(int)
        theirs = tf.io.decode_jpeg(tf.io.encode_jpeg(pixels, quality=quality)).numpy().astype(int)
        assert np.abs(made - theirs).mean() < 2
    for some in (pixels, pixels[:, :, :1], pixels[:, :, :2], smooth[:, :, :1].astype(np.uint16)):
        assert np.array_equal(tf.io.decode_png(ours.io.encode_png(some).numpy(), dtype=some.dtype).numpy(), some)
