"""Private names of TensorFlow that scripts import: `tensorflow.python.platform.gfile`."""

from __future__ import annotations

from typing import Any

from tfrkit.compat import gfile
from tfrkit.compat.names import NAMES
from tfrkit.compat.namespace import Namespace


def _read_to_string(filename: Any, binary_mode: bool = False) -> Any:
    with gfile.open_file(filename, "rb" if binary_mode else "r") as file:
        return file.read()


_FILE_IO = Namespace(
    "tf.python.lib.io.file_io",
    FileIO=gfile.open_file,
    copy=gfile.copy,
    create_dir=gfile.mkdir,
    delete_file=gfile.remove,
    delete_recursively=gfile.rmtree,
    file_exists=gfile.exists,
    get_matching_files=gfile.glob,
    is_directory=gfile.isdir,
    list_directory=gfile.listdir,
    read_file_to_string=_read_to_string,
    recursive_create_dir=gfile.makedirs,
    rename=gfile.rename,
    stat=gfile.stat,
    walk=gfile.walk,
    write_string_to_file=gfile.write_file,
)
_MESSAGES = ("BytesList", "Feature", "FeatureList", "FeatureLists", "Features", "FloatList", "Int64List")

PYTHON = Namespace(
    "tf.python",
    framework=Namespace(
        "tf.python.framework", dtypes=NAMES["dtypes"], errors=NAMES["errors"], errors_impl=NAMES["errors"]
    ),
    lib=Namespace(
        "tf.python.lib",
        io=Namespace("tf.python.lib.io", file_io=_FILE_IO, python_io=NAMES["python_io"], tf_record=NAMES["python_io"]),
    ),
    platform=Namespace(
        "tf.python.platform",
        app=NAMES["app"],
        flags=NAMES["flags"],
        gfile=NAMES["gfile"],
        tf_logging=NAMES["logging"],
    ),
    util=Namespace("tf.python.util", compat=NAMES["compat"]),
)
CORE = Namespace(
    "tf.core",
    example=Namespace(
        "tf.core.example",
        example_pb2=Namespace(
            "tf.core.example.example_pb2",
            Example=NAMES["train"].Example,
            SequenceExample=NAMES["train"].SequenceExample,
        ),
        feature_pb2=Namespace(
            "tf.core.example.feature_pb2", **{name: getattr(NAMES["train"], name) for name in _MESSAGES}
        ),
    ),
)
