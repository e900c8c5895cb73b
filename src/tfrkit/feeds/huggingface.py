"""Hugging Face datasets."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, overload

from tfrkit._optional import import_or_explain
from tfrkit.features.arrow_schema import ArrowField, to_arrow_fields
from tfrkit.features.spec import Spec
from tfrkit.feeds.arrow import ArrowStream, with_own_errors

if TYPE_CHECKING:
    import datasets


@overload
def to_hf(stream: ArrowStream, *, streaming: Literal[False] = False) -> datasets.Dataset: ...
@overload
def to_hf(stream: ArrowStream, *, streaming: Literal[True]) -> datasets.IterableDataset: ...
def to_hf(stream: ArrowStream, *, streaming: bool = False) -> Any:
    """Return a `datasets.Dataset` in memory or, with `streaming`, an `IterableDataset` that reads on demand.

    Images and masks become the `Image` feature, which decodes on access; class labels with names or a
    number become `ClassLabel`. Numbers are not copied.
    """
    datasets = import_or_explain("datasets", "hf")
    pyarrow = import_or_explain("pyarrow", "hf")
    features = _to_features(stream, datasets, pyarrow)
    info = datasets.DatasetInfo(features=features)
    if streaming:
        iterable = import_or_explain("datasets.iterable_dataset", "hf")
        tables = iterable.ArrowExamplesIterable(_read_tables, {"stream": stream})
        return datasets.IterableDataset(tables, info=info)
    tables = [table for _, table in _read_tables(stream)]
    whole = pyarrow.concat_tables(tables) if tables else features.arrow_schema.empty_table()
    return datasets.Dataset(whole, info=info)


def _read_tables(stream: ArrowStream) -> Iterator[tuple[int, Any]]:
    """Yield numbered tables in the storage types of the features."""
    datasets = import_or_explain("datasets", "hf")
    pyarrow = import_or_explain("pyarrow", "hf")
    features = _to_features(stream, datasets, pyarrow)
    with with_own_errors(stream) as own:
        for number, batch in enumerate(pyarrow.RecordBatchReader.from_stream(own)):
            columns = [
                _to_storage(column, feature, datasets, pyarrow)
                for column, feature in zip(batch.columns, features.values(), strict=True)
            ]
            yield number, pyarrow.Table.from_arrays(columns, schema=features.arrow_schema)


def _to_features(stream: ArrowStream, datasets: ModuleType, pyarrow: ModuleType) -> Any:
    features = datasets.Features.from_arrow_schema(pyarrow.schema(stream))
    for field in to_arrow_fields(stream.schema):
        features[field.name] = _to_feature(features[field.name], field, datasets)
    return features


def _to_feature(feature: Any, field: ArrowField, datasets: ModuleType) -> Any:
    if field.spec is None:
        return {inner.name: _to_feature(feature[inner.name], inner, datasets) for inner in field.type.fields}
    element = _find_element(field.spec, datasets)
    return feature if element is None else _replace_element(feature, element, datasets)


def _find_element(spec: Spec, datasets: ModuleType) -> Any:
    """Find the `datasets` feature type; None to use Arrow's type."""
    if spec.encoding != "list" or spec.seen == ():
        return None
    if spec.kind == "bytes" and spec.logical in ("image", "mask"):
        return datasets.Image()
    # ClassLabel rejects ids outside its range, so an ignored label must be in the range.
    if spec.kind == "int64" and spec.logical == "class_label" and spec.num_classes is not None and spec.dtype is None:
        if spec.ignore is not None and not -1 <= spec.ignore < spec.num_classes:
            return None
        return datasets.ClassLabel(num_classes=spec.num_classes, names=list(spec.classes) if spec.classes else None)
    return None


def _replace_element(feature: Any, element: Any, datasets: ModuleType) -> Any:
    if isinstance(feature, datasets.LargeList):
        return datasets.LargeList(_replace_element(feature.feature, element, datasets))
    if isinstance(feature, datasets.List):
        return datasets.List(_replace_element(feature.feature, element, datasets), length=feature.length)
    return element


def _to_storage(array: Any, feature: Any, datasets: ModuleType, pyarrow: ModuleType) -> Any:
    """Convert an array to the storage type of its feature: images to structs of bytes and path, others unchanged."""
    if isinstance(feature, datasets.Image):
        paths = pyarrow.nulls(len(array), pyarrow.string())
        values = [array.cast(pyarrow.binary()), paths]
        return pyarrow.StructArray.from_arrays(values, ["bytes", "path"], mask=array.is_null())
    if not isinstance(feature, dict) and not _has_images(feature, datasets):
        return array
    if isinstance(feature, dict):
        columns = [_to_storage(array.field(name), inner, datasets, pyarrow) for name, inner in feature.items()]
        return pyarrow.StructArray.from_arrays(columns, list(feature))
    if isinstance(feature, datasets.LargeList):
        values = _to_storage(array.values, feature.feature, datasets, pyarrow)
        return pyarrow.LargeListArray.from_arrays(array.offsets, values, mask=array.is_null())
    values = _to_storage(array.values, feature.feature, datasets, pyarrow)
    return pyarrow.FixedSizeListArray.from_arrays(values, feature.length, mask=array.is_null())


def _has_images(feature: Any, datasets: ModuleType) -> bool:
    while isinstance(feature, (datasets.List, datasets.LargeList)):
        feature = feature.feature
    return isinstance(feature, datasets.Image)
