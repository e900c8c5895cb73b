"""TensorFlow's names and their implementations."""

from __future__ import annotations

from typing import Any

from tfrkit.compat import (
    accepted,
    array_ops,
    dataset,
    feature_specs,
    flags,
    gfile,
    log,
    op_errors,
    parse_example,
    parse_sequence,
    picture_files,
    pictures,
    python_calls,
    queue_readers,
    record_io,
    train_messages,
)
from tfrkit.compat.data_experimental import EXPERIMENTAL
from tfrkit.compat.dtypes import DTYPES, DType, as_dtype
from tfrkit.compat.elementwise import ELEMENTWISE
from tfrkit.compat.graph import Session, do_nothing, placeholder
from tfrkit.compat.iterators import disable_eager_execution, enable_eager_execution, executing_eagerly
from tfrkit.compat.message_json import decode_json_example
from tfrkit.compat.namespace import Namespace
from tfrkit.compat.pixel_types import convert_image_dtype
from tfrkit.compat.ragged import RaggedTensor
from tfrkit.compat.randomness import set_random_seed
from tfrkit.compat.record_dataset import TFRecordDataset
from tfrkit.compat.shapes import Dimension, TensorShape, TensorSpec
from tfrkit.compat.tensor import SparseTensor, SparseTensorValue, Tensor

_PARSING = {
    "FixedLenFeature": feature_specs.FixedLenFeature,
    "FixedLenSequenceFeature": feature_specs.FixedLenSequenceFeature,
    "VarLenFeature": feature_specs.VarLenFeature,
    "RaggedFeature": feature_specs.RaggedFeature,
    "SparseFeature": feature_specs.SparseFeature,
    "parse_example": parse_example.parse_example,
    "parse_single_example": parse_example.parse_single_example,
    "parse_sequence_example": parse_sequence.parse_sequence_example,
    "parse_single_sequence_example": parse_sequence.parse_single_sequence_example,
    "decode_json_example": decode_json_example,
    "decode_raw": array_ops.decode_raw,
    "parse_tensor": array_ops.parse_tensor,
    "serialize_tensor": array_ops.serialize_tensor,
    "match_filenames_once": queue_readers.match_filenames_once,
    "matching_files": gfile.matching_files,
    "read_file": gfile.read_file,
    "write_file": gfile.write_file,
}
_PICTURES = {
    "decode_bmp": pictures.decode_bmp,
    "decode_gif": pictures.decode_gif,
    "decode_image": pictures.decode_image,
    "decode_jpeg": pictures.decode_jpeg,
    "decode_png": pictures.decode_png,
    "encode_jpeg": picture_files.encode_jpeg,
    "encode_png": picture_files.encode_png,
}
_RECORDS = {
    "TFRecordCompressionType": record_io.TFRecordCompressionType,
    "TFRecordOptions": record_io.TFRecordOptions,
    "TFRecordWriter": record_io.TFRecordWriter,
    "tf_record_iterator": record_io.tf_record_iterator,
}
_ARRAYS = {
    name: getattr(array_ops, name)
    for name in (
        "cast",
        "concat",
        "constant",
        "convert_to_tensor",
        "expand_dims",
        "identity",
        "one_hot",
        "reshape",
        "shape",
        "squeeze",
        "stack",
        "to_float",
        "to_int32",
        "to_int64",
    )
}

_TRAIN = Namespace(
    "tf.train",
    BytesList=train_messages.BytesList,
    Example=train_messages.Example,
    Feature=train_messages.Feature,
    FeatureList=train_messages.FeatureList,
    FeatureLists=train_messages.FeatureLists,
    Features=train_messages.Features,
    FloatList=train_messages.FloatList,
    Int64List=train_messages.Int64List,
    SequenceExample=train_messages.SequenceExample,
    Coordinator=queue_readers.Coordinator,
    batch=queue_readers.batch,
    batch_join=queue_readers.batch_join,
    match_filenames_once=queue_readers.match_filenames_once,
    shuffle_batch=queue_readers.shuffle_batch,
    shuffle_batch_join=queue_readers.shuffle_batch_join,
    slice_input_producer=queue_readers.slice_input_producer,
    start_queue_runners=queue_readers.start_queue_runners,
    string_input_producer=queue_readers.string_input_producer,
)
_DATA = Namespace(
    "tf.data",
    AUTOTUNE=dataset.AUTOTUNE,
    Dataset=dataset.Dataset,
    Options=accepted.Options,
    TFRecordDataset=TFRecordDataset,
    INFINITE_CARDINALITY=dataset.INFINITE,
    UNKNOWN_CARDINALITY=dataset.UNKNOWN,
    experimental=Namespace("tf.data.experimental", **EXPERIMENTAL),
    make_initializable_iterator=dataset.make_initializable_iterator,
    make_one_shot_iterator=dataset.make_one_shot_iterator,
)
_ERRORS = Namespace("tf.errors", **op_errors.ERRORS)

# Scripts compare the version as text with "1.4.0" or "2", or parse its numbers. It is that of the TensorFlow whose
# results the tests compare ours with. GIT_VERSION names compat.
_VERSIONS = {"VERSION": "2.21.0", "GIT_VERSION": "tfrkit.compat", "COMPILER_VERSION": "tfrkit.compat"}

# Names of TensorFlow 1 and 2 together: no name has two meanings.
NAMES: dict[str, Any] = {
    **_VERSIONS,
    "__version__": _VERSIONS["VERSION"],
    "version": Namespace("tf.version", **_VERSIONS),
    **DTYPES,
    **_PARSING,
    **_ARRAYS,
    **ELEMENTWISE,
    "DType": DType,
    "RaggedTensor": RaggedTensor,
    "SparseTensor": SparseTensor,
    "SparseTensorValue": SparseTensorValue,
    "Tensor": Tensor,
    "TensorShape": TensorShape,
    "TensorSpec": TensorSpec,
    "Dimension": Dimension,
    "TFRecordReader": queue_readers.TFRecordReader,
    "app": flags.APP_SPACE,
    "as_dtype": as_dtype,
    "data": _DATA,
    "dtypes": Namespace("tf.dtypes", **DTYPES, DType=DType, as_dtype=as_dtype, cast=array_ops.cast),
    "errors": _ERRORS,
    "flags": flags.FLAGS_SPACE,
    "gfile": gfile.GFILE_1,
    "image": Namespace("tf.image", **_PICTURES, convert_image_dtype=convert_image_dtype),
    "io": Namespace("tf.io", **_PARSING, **_PICTURES, **_RECORDS, gfile=gfile.GFILE_2),
    "numpy_function": python_calls.numpy_function,
    "placeholder": placeholder,
    "py_func": python_calls.numpy_function,
    "py_function": python_calls.py_function,
    "python_io": Namespace("tf.python_io", **_RECORDS),
    "random": Namespace("tf.random", set_seed=set_random_seed, set_random_seed=set_random_seed),
    "set_random_seed": set_random_seed,
    "sparse": Namespace("tf.sparse", SparseTensor=SparseTensor, to_dense=array_ops.sparse_to_dense),
    "sparse_tensor_to_dense": array_ops.sparse_to_dense,
    "train": _TRAIN,
    # Accepted, without effect; see accepted.py.
    "ConfigProto": accepted.ConfigProto,
    "GPUOptions": accepted.GPUOptions,
    "Graph": accepted.Graph,
    "config": accepted.CONFIG,
    "InteractiveSession": Session,
    "Session": Session,
    "device": accepted.scope,
    "disable_eager_execution": disable_eager_execution,
    "disable_v2_behavior": disable_eager_execution,
    "enable_eager_execution": enable_eager_execution,
    "enable_v2_behavior": enable_eager_execution,
    "executing_eagerly": executing_eagerly,
    "get_default_graph": accepted.Graph,
    "no_op": do_nothing,
    "control_dependencies": accepted.scope,
    "variable_scope": accepted.scope,
    "get_logger": log.get_logger,
    "global_variables_initializer": do_nothing,
    "initialize_all_variables": do_nothing,
    "initialize_local_variables": do_nothing,
    "local_variables_initializer": do_nothing,
    "logging": log.LOGGING,
    "math": Namespace("tf.math", **ELEMENTWISE),
    "name_scope": accepted.scope,
    "reset_default_graph": accepted.ignore,
    "test": accepted.TEST,
    "group": do_nothing,
}
_COMPAT = Namespace(
    "tf.compat",
    as_bytes=accepted.as_bytes,
    as_str=accepted.as_text,
    as_str_any=accepted.as_str_any,
    as_text=accepted.as_text,
    path_to_str=record_io.to_path,
)
NAMES["compat"] = _COMPAT
# Scripts may import either of these as tf, and then use its tf.compat.
vars(_COMPAT).update({name: Namespace(f"tf.compat.{name}", **NAMES) for name in ("v1", "v2")})

# Accepted so that scripts that use them run; the reference marks them.
WITHOUT_EFFECT: list[Any] = [
    accepted.ConfigProto,
    accepted.GPUOptions,
    accepted.Graph,
    accepted.Options,
    accepted.ignore,
    accepted.scope,
    dataset.Dataset.prefetch,
    dataset.Dataset.with_options,
    do_nothing,
    queue_readers.start_queue_runners,
]
