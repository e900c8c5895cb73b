"""Generate Python source for other readers of the records: TensorFlow, DALI, and the vahidk/tfrecord package.

A feature that a reader does not support becomes a comment with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType

from tfrkit.errors import SchemaError
from tfrkit.features.schema import Schema, show_name
from tfrkit.features.spec import Spec, StorageKind
from tfrkit.features.tensor_dtypes import DTYPE_NUMBERS

_TF_KINDS: Mapping[StorageKind, str] = {"bytes": "tf.string", "float": "tf.float32", "int64": "tf.int64"}
_DALI_KINDS: Mapping[StorageKind, str] = {"bytes": "string", "float": "float32", "int64": "int64"}
_DALI_DEFAULTS: Mapping[StorageKind, str] = {"bytes": '""', "float": "0.0", "int64": "0"}
_VAHIDK_KINDS: Mapping[StorageKind, str] = {"bytes": "byte", "float": "float", "int64": "int"}
# tf.io.decode_raw does not support these unsigned integers, so they are read as signed and reinterpreted.
_RAW_CASTS = {"uint32": "int32", "uint64": "int64"}
_UNCOMPRESSED: Mapping[str, str | None] = MappingProxyType({"none": ""})
_TF_IMAGE_FORMATS = frozenset({"jpeg", "png", "gif", "bmp"})


def print_tf_spec(schema: Schema, compressions: Mapping[str, str | None] = _UNCOMPRESSED) -> str:
    """Return the source of a Python module that parses the records with TensorFlow.

    The module defines `FEATURES` (for a SequenceExample `CONTEXT_FEATURES` and `SEQUENCE_FEATURES`), `parse_batch`,
    which parses many serialized records without decoding, and `parse_record`, which parses one and decodes images,
    serialized tensors and raw arrays. Optional features are ragged: empty if a record lacks them. The last lines are
    comments about its use; `compressions` are those of the files, each with TensorFlow's name for it, None if it has
    none.
    """
    if schema.kind == "example":
        lines = [
            *_print_dict("FEATURES", schema.features, _tf_feature),
            *_TF_BATCH_EXAMPLE,
            "def parse_record(record):",
            '    """Parse one serialized Example, and decode what is inside its bytes."""',
            "    row = tf.io.parse_single_example(record, FEATURES)",
            *_print_decoding("row", schema.features),
            "    return row",
        ]
    elif schema.kind == "sequence_example":
        lines = [
            *_print_dict("CONTEXT_FEATURES", schema.features, _tf_feature),
            *_print_dict("SEQUENCE_FEATURES", schema.feature_lists, _tf_list_feature),
            *_TF_BATCH_SEQUENCE,
            "def parse_record(record):",
            '    """Parse one serialized SequenceExample; gives the context and the lists of frames."""',
            "    context, lists = tf.io.parse_single_sequence_example(record, CONTEXT_FEATURES, SEQUENCE_FEATURES)",
            *_print_decoding("context", schema.features),
            "    return context, lists",
        ]
    else:
        raise SchemaError(f"tf.io.parse_example expected example or sequence_example records, got {schema.kind}")
    return "\n".join(["import tensorflow as tf", "", *lines, "", "", *_print_usage(compressions), ""])


def _print_usage(compressions: Mapping[str, str | None]) -> Iterator[str]:
    if len(compressions) > 1:
        yield f"# the files differ in compression ({', '.join(compressions)}), each needs a dataset of its own:"
    for name, known in compressions.items():
        if known is None:
            yield f"# TensorFlow cannot read {name}, rewrite the files: tfr convert FILES -o out/ --compression gzip"
        else:
            yield f"# dataset = tf.data.TFRecordDataset(paths, compression_type={known!r}).map(parse_record)"


def print_dali_spec(schema: Schema) -> str:
    """Return the source of a Python module with the `features` of DALI's TFRecord reader, which reads only Examples."""
    if schema.kind != "example":
        raise SchemaError(f"DALI expected example records, got {schema.kind}")
    lines = [
        "import nvidia.dali.tfrecord as tfrec",
        "",
        *_print_dict("FEATURES", schema.features, _dali_feature),
        "# in a pipeline (uncompressed shards only; make the index files with: tfr index --dali):",
        "#   inputs = fn.readers.tfrecord(path=paths, index_path=index_paths, features=FEATURES)",
        "",
    ]
    return "\n".join(lines)


def print_vahidk_spec(schema: Schema) -> str:
    """Return the source of a Python module with the `description` for the vahidk/tfrecord package."""
    if schema.kind not in ("example", "sequence_example"):
        raise SchemaError(f"vahidk/tfrecord expected example or sequence_example records, got {schema.kind}")
    lines = ["import tfrecord", "", *_print_dict("DESCRIPTION", schema.features, _vahidk_feature)]
    arguments = "path, None, DESCRIPTION"
    if schema.kind == "sequence_example":
        lines += _print_dict("SEQUENCE_DESCRIPTION", schema.feature_lists, _vahidk_feature)
        arguments += ", sequence_description=SEQUENCE_DESCRIPTION"
    return "\n".join([*lines, f"# rows = tfrecord.tfrecord_loader({arguments})", ""])


_TF_BATCH_EXAMPLE = (
    "",
    "def parse_batch(records):",
    '    """Parse a 1-D tensor of serialized Examples into a dict of tensors."""',
    "    return tf.io.parse_example(records, FEATURES)",
    "",
    "",
)
_TF_BATCH_SEQUENCE = (
    "",
    "def parse_batch(records):",
    '    """Parse a 1-D tensor of serialized SequenceExamples; gives context, padded lists, and their lengths."""',
    "    return tf.io.parse_sequence_example(records, CONTEXT_FEATURES, SEQUENCE_FEATURES)",
    "",
    "",
)


class _UnsupportedError(Exception):
    """Why a feature is not supported; printed as a comment."""


def _print_dict(title: str, specs: Mapping[str, Spec], show: Callable[[Spec], str]) -> Iterator[str]:
    yield f"{title} = {{"
    for name, spec in specs.items():
        try:
            _check_feature(name, spec)
            text = show(spec)
        except _UnsupportedError as reason:
            yield f"    # {show_name(name)}: {reason}"
            continue
        comment = _print_comment(spec)
        yield f"    {name!r}: {text}," + (f"  # {comment}" if comment else "")
    yield "}"
    yield ""


def _check_feature(name: str, spec: Spec) -> None:
    if name != name.encode("utf-8", "replace").decode():
        raise _UnsupportedError("its name is not UTF-8")
    if spec.seen == ():
        raise _UnsupportedError("no record sets it")
    if spec.seen is not None:
        raise _UnsupportedError(f"{' and '.join(spec.seen)} in different records")


def _print_comment(spec: Spec) -> str:
    # Line breaks would end the comment.
    meaning = "".join(char if char.isprintable() else "?" for char in spec.meaning)
    return "; ".join(text for text in (meaning, "missing in some records" if spec.optional else "") if text)


def _tf_feature(spec: Spec) -> str:
    shape = spec.shape if spec.encoding == "list" else ()
    if spec.optional or None in shape:
        return f"tf.io.RaggedFeature({_TF_KINDS[spec.kind]})"
    return f"tf.io.FixedLenFeature({list(shape)}, {_TF_KINDS[spec.kind]})"


def _tf_list_feature(spec: Spec) -> str:
    shape = spec.shape if spec.encoding == "list" else ()
    if None in shape:
        return f"tf.io.RaggedFeature({_TF_KINDS[spec.kind]})"
    missing = ", allow_missing=True" if spec.optional else ""
    return f"tf.io.FixedLenSequenceFeature({list(shape)}, {_TF_KINDS[spec.kind]}{missing})"


def _dali_feature(spec: Spec) -> str:
    kind, default = f"tfrec.{_DALI_KINDS[spec.kind]}", _DALI_DEFAULTS[spec.kind]
    if spec.kind == "bytes":
        if spec.encoding == "list" and spec.shape != ():
            raise _UnsupportedError("DALI reads one bytes value per record")
        return f"tfrec.FixedLenFeature((), {kind}, {default})"
    if None in spec.shape or spec.optional:
        inner = [size for size in spec.shape[1:] if size is not None]
        if len(spec.shape) > 1 and len(inner) == len(spec.shape) - 1:
            return f"tfrec.VarLenFeature({inner}, {kind}, {default})"
        return f"tfrec.VarLenFeature({kind}, {default})"
    return f"tfrec.FixedLenFeature({list(spec.shape) or [1]}, {kind}, {default})"


def _vahidk_feature(spec: Spec) -> str:
    return repr(_VAHIDK_KINDS[spec.kind])


def _print_decoding(row: str, specs: Mapping[str, Spec]) -> Iterator[str]:
    for name, spec in specs.items():
        try:
            _check_feature(name, spec)
        except _UnsupportedError:
            continue
        place = f"{row}[{name!r}]"
        for step in _find_steps(spec, place):
            yield f"    {place} = {step}"


def _find_steps(spec: Spec, value: str) -> Iterator[str]:
    """Yield the expressions to apply to a parsed value, in order."""
    if spec.encoding == "list":
        yield from _find_list_steps(spec, value)
        return
    # An optional value is parsed as a list of at most one value, which the decoders do not accept.
    if spec.optional or spec.dtype is None or spec.dtype not in DTYPE_NUMBERS:
        return
    dtype = f"tf.{spec.dtype}"
    shape = [-1 if size is None else size for size in spec.shape]
    if spec.encoding == "tensor_proto":
        yield f"tf.io.parse_tensor({value}, {dtype})"
        if spec.shape != (None,):  # (None,) is also the shape of tensors whose rank varies
            yield f"tf.ensure_shape({value}, {list(spec.shape)})"
        return
    if spec.encoding == "zlib":
        yield f"tf.io.decode_compressed({value}, 'ZLIB')"
    yield f"tf.io.decode_raw({value}, tf.{_RAW_CASTS.get(spec.dtype, spec.dtype)})"
    if spec.dtype in _RAW_CASTS:
        yield f"tf.bitcast({value}, {dtype})"
    if shape.count(-1) < 2:
        yield f"tf.reshape({value}, {shape})"


def _find_list_steps(spec: Spec, value: str) -> Iterator[str]:
    if spec.logical in ("image", "mask") and spec.kind == "bytes":
        is_single = spec.shape == () and not spec.optional
        if is_single and (spec.format is None or spec.format in _TF_IMAGE_FORMATS):
            channels = spec.decoded_shape[-1] if spec.decoded_shape else None
            dtype = "tf.uint16" if spec.dtype == "uint16" else "tf.uint8"
            options = f"channels={channels or 0}, dtype={dtype}, expand_animations=False"
            yield f"tf.io.decode_image({value}, {options})"
        return
    if spec.shape.count(None) == 1 and len(spec.shape) > 1:
        yield f"tf.reshape({value}, {[-1 if size is None else size for size in spec.shape]})"
    if spec.dtype == "uint64" and spec.kind == "int64":
        yield f"tf.bitcast({value}, tf.uint64)"
    elif spec.dtype in DTYPE_NUMBERS and spec.kind != "bytes":
        yield f"tf.cast({value}, tf.{spec.dtype})"
