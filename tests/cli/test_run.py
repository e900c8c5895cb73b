"""`tfr run`: scripts run as Python runs them, on compat."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import tfrkit

COMMAND = [sys.executable, "-c", "from tfrkit_start import main; main()", "run"]
OLD_SCRIPTS = Path(__file__).parent / "old_scripts"
WRITE = "import tensorflow as tf\nwriter = tf.python_io.TFRecordWriter('x.tfrecord')\nwriter.write(b'one')\n"


class Done:
    def __init__(self, done: subprocess.CompletedProcess[str]) -> None:
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr


def run(script: str | Path, *arguments: object, cwd: Path, stdin: str = "", program: list[str] = COMMAND) -> Done:
    done = subprocess.run(
        [*program, str(script), *map(str, arguments)],
        input=stdin,
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=120,
        check=False,
    )
    return Done(done)


def run_text(text: str, *arguments: object, cwd: Path, stdin: str = "") -> Done:
    (cwd / "old.py").write_text(text, encoding="utf-8")
    return run("old.py", *arguments, cwd=cwd, stdin=stdin)


# --- as Python runs it


def test_script_has_the_argv_and_path_of_plain_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "beside.py").write_text("VALUE = 7\n")
    (tmp_path / "sub" / "old.py").write_text(
        "'''About it.'''\n"
        "import os, sys\n"
        "import beside\n"
        "print(sys.argv, __name__, __file__, __doc__, __spec__, os.getcwd() == os.environ['HERE'])\n"
        "print(beside.VALUE, sys.modules['__main__'].beside is beside, sys.path[0] == os.path.dirname(__file__))\n"
        "print(sys.stdin.read(), end='')\n"
    )
    monkeypatch.setenv("HERE", str(tmp_path))
    path = Path("sub") / "old.py"
    ours = run(path, "--help", "-q", "a b", "--format=json", cwd=tmp_path, stdin="from stdin\n")
    python = run(
        path, "--help", "-q", "a b", "--format=json", cwd=tmp_path, stdin="from stdin\n", program=[sys.executable]
    )
    assert ours.out == python.out
    assert "from stdin" in ours.out
    assert (ours.code, ours.err) == (0, "")
    assert not (tmp_path / "sub" / "__pycache__" / "old.cpython-311.pyc").exists()


@pytest.mark.parametrize(
    "text",
    [
        "def inner():\n    return 1 / 0\n\ninner()\n",
        "x = 1\nif x:\nprint(x)\n",
        "print 'old'\n",
        "try:\n    {}['a']\nexcept KeyError:\n    raise ValueError('more')\n",
        "raise ValueError('a') from None",
        "import beside\nbeside.fail()\n",
        "import sys\nsys.exit(5)\n",
        "import sys\nsys.exit()\n",
        "import sys\nsys.exit('a message')\n",
        "raise SystemExit(True)\n",
        "import atexit\natexit.register(print, 'at the end')\n",
        "import sys\nsys.excepthook = lambda *error: print('hook', error[0].__name__)\n1 / 0\n",
        "import os\nos._exit(9)\n",
        "import threading\nthreading.Timer(0.05, print, ['from a thread']).start()\n",
        "x = 'caf\xe9'\nassert x == 'other', x\n",
        "raise BrokenPipeError('of a socket')\n",
        "",
    ],
    ids=range(17),
)
def test_ends_as_python_ends_it(tmp_path: Path, text: str) -> None:
    (tmp_path / "beside.py").write_text("def fail():\n    raise RuntimeError('in a module')\n")
    ours = run_text(text, cwd=tmp_path)
    python = run("old.py", cwd=tmp_path, program=[sys.executable])
    assert (ours.code, ours.out, ours.err) == (python.code, python.out, python.err)


def test_functions_of_the_script_reach_other_processes(tmp_path: Path) -> None:
    text = (
        "import multiprocessing\n"
        "import tensorflow as tf\n"
        "from object_detection.utils import dataset_util\n"
        "def work(number):\n"
        "    return tf.GIT_VERSION + str(dataset_util.int64_feature(number).int64_list.value[0])\n"
        "if __name__ == '__main__':\n"
        "    for kind in ('fork', 'spawn'):\n"
        "        with multiprocessing.get_context(kind).Pool(1) as pool:\n"
        "            print(pool.map(work, [1, 2]))\n"
    )
    done = run_text(text, cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert done.out == "['tfrkit.compat1', 'tfrkit.compat2']\n" * 2


def test_tensorflow_is_compat_even_when_one_is_installed(tmp_path: Path) -> None:
    (tmp_path / "tensorflow").mkdir()
    (tmp_path / "tensorflow" / "__init__.py").write_text("raise RuntimeError('the real one')\n")
    done = run_text("import tensorflow as tf\nprint(tf.GIT_VERSION)\n", cwd=tmp_path)
    assert (done.code, done.out) == (0, "tfrkit.compat\n")


@pytest.mark.parametrize(
    "line",
    """import tensorflow as tf; tf.train.Example
    import tensorflow.compat.v1 as tf; tf.train.Example; tf.compat.as_bytes("x"); tf.disable_v2_behavior()
    import tensorflow.compat.v2 as tf; tf.io.gfile.exists("x")
    from tensorflow.compat import v1 as tf; tf.Session
    from tensorflow import train, gfile, flags, python_io, data; train.Example
    from tensorflow.train import Example, Feature, Int64List
    from tensorflow.io import TFRecordWriter, gfile
    import tensorflow.io.gfile as g; g.exists("x")
    from tensorflow.python_io import TFRecordWriter
    from tensorflow.data import TFRecordDataset
    from tensorflow.python.platform import gfile, flags, app, tf_logging; gfile.GFile; flags.DEFINE_string
    from tensorflow.python.platform import tf_logging as logging; logging.info("x")
    from tensorflow.python.lib.io import tf_record, file_io; tf_record.TFRecordWriter; file_io.file_exists("x")
    from tensorflow.python.lib.io.tf_record import TFRecordWriter, tf_record_iterator
    from tensorflow.python.framework import dtypes, errors; errors.OutOfRangeError
    from tensorflow.python.util import compat; compat.as_bytes("x")
    from tensorflow.core.example import example_pb2, feature_pb2; example_pb2.Example; feature_pb2.Int64List
    from tensorflow.core.example.example_pb2 import Example; import tensorflow as tf; assert Example is tf.train.Example
    from tensorflow import *; train.Example
    from object_detection.utils import dataset_util, label_map_util; dataset_util.int64_feature(1)
    import object_detection.utils.dataset_util as d; d.int64_feature(1)
    from object_detection.utils.label_map_util import get_label_map_dict
    from object_detection.dataset_tools import tf_record_creation_util as u; u.open_sharded_output_tfrecords
    from datasets import dataset_utils; dataset_utils.int64_feature(1)
    from absl import app, flags, logging; flags.DEFINE_string("a", "b", "c"); logging.info("x"); app.run(lambda _: 0)
    import tensorflow as tf; assert not hasattr(tf, "contrib"); assert not hasattr(tf.train, "nothing")""".split("\n"),
)
def test_import_of_old_scripts_works(tmp_path: Path, line: str) -> None:
    done = run_text("\n".join(part.strip() for part in line.split("; ")), cwd=tmp_path)
    assert (done.code, done.out, done.err) == (0, "", "")


def test_more_of_an_object_detection_that_is_there_is_found(tmp_path: Path) -> None:
    folder = tmp_path / "object_detection" / "utils"
    folder.mkdir(parents=True)
    for path in (folder / "__init__.py", folder.parent / "__init__.py"):
        path.write_text("")
    (folder / "dataset_util.py").write_text("raise RuntimeError('not this one')\n")
    (folder / "more.py").write_text("import tensorflow.compat.v1 as tf\nVALUE = tf.GIT_VERSION\n")
    text = "from object_detection.utils import dataset_util, more\nprint(more.VALUE, dataset_util.__name__)\n"
    done = run_text(text, cwd=tmp_path)
    assert done.out == "tfrkit.compat object_detection.utils.dataset_util\n", done.err


# --- what cannot run


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "import tensorflow as tf\n\ndef build():\n    return tf.layers.dense(1)\n\nbuild()\n",
            "tfr: tf.layers is not offered, tfrkit.compat covers the TFRecord parts of TensorFlow only"
            " - at old.py, line 4\n"
            "  train with PyTorch or JAX, tfrkit reads for them: tfr.open(path).batch(32).to_torch(), .to_jax()\n",
        ),
        ("import tensorflow as tf\ntf.train.Exmaple\n", "old.py, line 2\n  closest is tf.train.Example; otherwise "),
        ("import tensorflow as tf\ntf.keras.Model\n", "tf.keras is not offered"),
        ("from tensorflow.keras import layers\n", "tf.keras is not offered"),
        ("\nfrom tensorflow import keras\n", "old.py, line 2\n  train with PyTorch or JAX"),
        ("import tensorflow.contrib.slim as slim\n", "tf.contrib is not offered"),
        ("from tensorflow import TFRecordDataset\n", "old.py, line 1\n  use tf.data.TFRecordDataset\n"),
        ("from tensorflow.python.keras import x\n", "tf.python.keras is not offered"),
        ("import keras_nope_cv2\n", "module keras_nope_cv2 is not installed, and is not next to the script"),
        ("import numpy\nimport cv2\n", "at old.py, line 2\n  install it: pip install opencv-python\n"),
        ("from sklearn.utils import shuffle\n", "pip install scikit-learn"),
        ("import cPickle\n", "module cPickle is part of Python 2 only - at old.py, line 1\n  import pickle"),
        ("import tf_slim\n", "module tf_slim is not installed, and tfrkit.compat does not train - at old.py"),
        ("from object_detection.protos import x\n", "module object_detection.protos is not installed, and"),
        ("import beside\n", "at BESIDE, line 2\n  train with PyTorch"),
    ],
    ids=range(15),
)  # fmt: skip
def test_what_is_not_offered_is_one_message_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "beside.py").write_text("import tensorflow as tf\ntf.Variable(3)\n")
    done = run_text(text, cwd=tmp_path)
    assert (done.code, done.out) == (3, "")
    assert message.replace("BESIDE", str(tmp_path / "beside.py")) in done.err
    assert done.err.startswith("tfr: ")
    assert len(done.err.splitlines()) == 2


def test_missing_names_can_be_caught_by_the_script(tmp_path: Path) -> None:
    text = (
        "import tensorflow as tf\n"
        "try:\n    tf.contrib\nexcept AttributeError:\n    print('no contrib')\n"
        "try:\n    import tensorflow.contrib.slim\nexcept ImportError:\n    print('no slim')\n"
        "try:\n    from tensorflow import keras\nexcept ImportError:\n    print('no keras')\n"
    )
    assert run_text(text, cwd=tmp_path).out == "no contrib\nno slim\nno keras\n"


def test_what_is_no_script_is_refused(tmp_path: Path) -> None:
    (tmp_path / "data.tfrecord").write_bytes(b"\x03\0\0\0\0\0\0\0abc")
    (tmp_path / "book.ipynb").write_text("{}")
    for name, message in (
        ("nope.py", "tfr: no such file or directory - at nope.py\n"),
        (".", "tfr: expected a Python script, got a folder - at .\n"),
        ("data.tfrecord", "tfr: expected a Python script, got a binary file - at data.tfrecord\n"),
        ("book.ipynb", "expected a Python script, got a notebook - at book.ipynb\n  convert it: jupyter nbconvert"),
    ):
        done = run(name, cwd=tmp_path)
        assert (done.code, done.out) == (3, "")
        assert message in done.err
    assert run("--quiet", cwd=tmp_path).code == 2


def test_debug_shows_all_frames(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TFR_DEBUG", "1")
    done = run_text("import tensorflow as tf\ntf.train.BytesList(value=['a'])\n", cwd=tmp_path)
    assert "containers.py" in done.err
    monkeypatch.setenv("TFR_DEBUG", "0")
    done = run("old.py", cwd=tmp_path)
    assert done.err.endswith("TypeError: BytesList expected bytes, got str\n  encode it: value.encode()\n")
    assert "containers.py" not in done.err


# --- files of scripts that end badly


def test_open_writer_is_closed_at_the_end(tmp_path: Path) -> None:
    done = run_text(WRITE, cwd=tmp_path)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert len(tfrkit.open(tmp_path / "x.tfrecord")) == 1


@pytest.mark.parametrize("ending", ["1 / 0\n", "tf.keras\n", "import cv2\n", "raise KeyboardInterrupt\n"])
def test_half_a_file_never_appears(tmp_path: Path, ending: str) -> None:
    done = run_text(WRITE + ending, cwd=tmp_path)
    assert done.code == {"1 / 0\n": 1, "raise KeyboardInterrupt\n": 130}.get(ending, 3)
    assert "not written, the script failed before the writer was closed - at x.tfrecord" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["old.py"]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_ends_the_script_and_its_clean_up_runs(tmp_path: Path, number: int, code: int) -> None:
    (tmp_path / "old.py").write_text(
        WRITE + "import time\ntry:\n    open('ready', 'w').close()\n    time.sleep(60)\n"
        "finally:\n    open('cleaned', 'w').close()\n"
    )
    process = subprocess.Popen([*COMMAND, "old.py"], cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 60
    while not (tmp_path / "ready").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["cleaned", "old.py", "ready"]


# --- the most copied scripts


def run_both(name: str, cwd: Path, *arguments: str) -> tuple[str, str]:
    """What an old script prints: unchanged under `tfr run`, and with its imports changed under Python."""
    text = (OLD_SCRIPTS / name).read_text(encoding="utf-8")
    changed = text
    for old, new in (
        ("import tensorflow as tf\n", "from tfrkit.compat import tensorflow as tf\n"),
        ("import tensorflow.compat.v1 as tf\n", "from tfrkit.compat import tensorflow as tf\n"),
        ("from object_detection.utils import ", "from tfrkit.compat.object_detection.utils import "),
        ("from datasets import ", "from tfrkit.compat.slim.datasets import "),
    ):
        changed = changed.replace(old, new)
    (cwd / "changed.py").write_text(changed, encoding="utf-8")
    shown = []
    for folder, script, program in (
        ("run", OLD_SCRIPTS / name, COMMAND),
        ("changed", cwd / "changed.py", [sys.executable]),
    ):
        (cwd / folder).mkdir()
        done = run(script, *(argument.replace("OUT", folder) for argument in arguments), cwd=cwd, program=program)
        assert (done.code, done.err) == (0, ""), done.err
        shown.append(done.out.replace(str(cwd / folder), "OUT").replace(folder, "OUT"))
    names = sorted(path.name for path in (cwd / "run").iterdir())
    assert names == sorted(path.name for path in (cwd / "changed").iterdir())
    for made in names:
        assert (cwd / "run" / made).read_bytes() == (cwd / "changed" / made).read_bytes()
    return shown[0], shown[1]


def save_picture(path: Path, width: int = 20, height: int = 10, seed: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)).save(path)


def test_boxes_of_a_table_are_converted(tmp_path: Path) -> None:
    for number, name in enumerate(("b.jpg", "a.jpg")):
        save_picture(tmp_path / "images" / name, seed=number)
    (tmp_path / "boxes.csv").write_text(
        "filename,class,xmin,ymin,xmax,ymax\nb.jpg,fox,2,1,10,5\na.jpg,raccoon,0,0,20,10\nb.jpg,raccoon,4,5,5,6\n"
    )
    arguments = ("--csv_input=boxes.csv", "--image_dir", "images", "--output_path=OUT/train.record")
    ours, changed = run_both("generate_tfrecord.py", tmp_path, *arguments)
    assert ours == changed == "wrote OUT/train.record\n"
    first, second = tfrkit.open(tmp_path / "run" / "train.record")
    assert [row["image/filename"] for row in (first, second)] == [b"a.jpg", b"b.jpg"]
    assert second["image/encoded"] == (tmp_path / "images" / "b.jpg").read_bytes()
    assert list(second["image/object/class/text"]) == [b"fox", b"raccoon"]
    assert list(second["image/object/class/label"]) == [2, 1]
    assert np.allclose(second["image/object/bbox/xmax"], [0.5, 0.25])


def test_wrong_flag_of_an_old_script_is_one_message(tmp_path: Path) -> None:
    script = OLD_SCRIPTS / "create_pascal_tf_record.py"
    for arguments, message in (
        (["--set=tarin"], "flag --set expected one of train, val, trainval, test, got 'tarin'"),
        ([], "flag --data_dir expected a value, got none"),
    ):
        done = run(script, *arguments, cwd=tmp_path)
        assert (done.code, done.out) == (2, "")
        assert done.err == f"{script.name}: {message}\n  list the flags: {script.name} --help\n"
    done = run(script, "--help", cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert "--[no]ignore_difficult_instances: leave out difficult boxes\n    (default: False)" in done.out


def test_pascal_boxes_are_converted(tmp_path: Path) -> None:
    year = tmp_path / "devkit" / "VOC2012"
    for name in ("p1", "p2"):
        save_picture(year / "JPEGImages" / f"{name}.jpg")
        objects = "".join(
            f"<object><name>{kind}</name><difficult>{difficult}</difficult><bndbox><xmin>2</xmin><ymin>1</ymin>"
            "<xmax>10</xmax><ymax>5</ymax></bndbox></object>"
            for kind, difficult in (("cat", 0), ("dog", 1))
        )
        (year / "Annotations").mkdir(exist_ok=True)
        (year / "Annotations" / f"{name}.xml").write_text(
            f"<annotation><folder>VOC2012</folder><filename>{name}.jpg</filename>"
            f"<size><width>20</width><height>10</height></size>{objects if name == 'p1' else ''}</annotation>"
        )
    (year / "ImageSets" / "Main").mkdir(parents=True)
    (year / "ImageSets" / "Main" / "cat_train.txt").write_text("p1  1\np2 -1\n")
    (tmp_path / "map.pbtxt").write_text("item { id: 1 name: 'cat' }\nitem { id: 2 name: 'dog' }\n")
    arguments = ("--data_dir=devkit", "--year=VOC2012", "--label_map_path=map.pbtxt", "--output_path=OUT/voc.record")
    assert run_both("create_pascal_tf_record.py", tmp_path, *arguments) == ("", "")
    first, second = tfrkit.open(tmp_path / "run" / "voc.record")
    assert list(first["image/object/class/label"]) == [1, 2]
    assert list(first["image/object/difficult"]) == [0, 1]
    assert np.allclose(first["image/object/bbox/ymax"], [0.5, 0.5])
    assert len(second.get("image/object/class/label", ())) == 0
    done = run(
        OLD_SCRIPTS / "create_pascal_tf_record.py",
        *(argument.replace("OUT", ".") for argument in arguments),
        "--ignore_difficult_instances",
        cwd=tmp_path,
    )
    assert done.code == 0
    assert np.atleast_1d(tfrkit.open(tmp_path / "voc.record")[0]["image/object/class/label"]).tolist() == [1]


def test_folders_are_converted_by_a_graph(tmp_path: Path) -> None:
    for number in range(10):
        kind = "rose" if number < 4 else "daisy"
        save_picture(tmp_path / "photos" / kind / f"{number}.jpg", width=10 + number, seed=number)
    ours, changed = run_both("convert_flowers.py", tmp_path, "photos", "OUT")
    assert ours == changed
    assert ours.endswith(">> validation, shard 1\n")
    names = sorted(path.name for path in (tmp_path / "run").iterdir())
    assert names[0] == "flowers_train_00000-of-00002.tfrecord"
    assert (tmp_path / "run" / "labels.txt").read_text() == "0:daisy\n1:rose\n"
    rows = list(tfrkit.open(tmp_path / "run" / "flowers_*"))
    assert sorted((row["image/width"], row["image/class/label"]) for row in rows) == [
        (10 + number, int(number < 4)) for number in range(10)
    ]
    assert {row["image/height"] for row in rows} == {10}


def test_folders_are_converted_on_threads_with_bad_pictures_left_out(tmp_path: Path) -> None:
    save_picture(tmp_path / "photos" / "cat" / "a.jpg")
    save_picture(tmp_path / "photos" / "dog" / "b.png", width=30)
    save_picture(tmp_path / "photos" / "dog" / "c.jpg", width=40)
    (tmp_path / "photos" / "cat" / "bad.jpg").write_bytes(b"no picture")
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    arguments = ("--train_directory=photos", "--output_directory=OUT", "--labels_file=labels.txt")
    ours, changed = run_both("build_image_data.py", tmp_path, *arguments)
    assert ours == changed == "left out bad.jpg: InvalidArgumentError\n"
    rows = sorted(tfrkit.open(tmp_path / "run" / "train-*"), key=lambda row: row["image/filename"])
    assert [(row["image/filename"], row["image/class/label"], row["image/width"]) for row in rows] == [
        (b"a.jpg", 1, 20),
        (b"b.png", 2, 30),
        (b"c.jpg", 2, 40),
    ]
    assert all(row["image/encoded"][:2] == b"\xff\xd8" for row in rows)
