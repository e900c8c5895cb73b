"""Names known from other libraries that tfrkit calls differently: using one raises an error with tfrkit's name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import ParamSpec, TypeVar

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

_CONCATENATE = "several as one: tfrkit.open([first, second])    drawn by weight: tfrkit.mix({first: 0.7, second: 0.3})"
_COUNT = "number of rows: len(ds)"
_SCHEMA = "what each feature is: ds.schema"
_NUMPY = "values are NumPy arrays already: ds[0], for batch in ds.batch(64)"
_AHEAD = "batches are read ahead already, on every core: ds.batch(64, threads=8, ahead_nbytes=1 << 30)"
_CACHE = "files are mapped, and stay in memory while there is room; rows to keep: rows = list(ds)"
_WRITE = (
    "write rows: with tfrkit.Writer(path) as w: ...    a file in another format: tfrkit.tools.export_csv(files, path)"
)
SPLIT = 'parts: train, test = ds.split({"train": 0.8, "test": 0.2}, seed=0)'
_SQL = "a query over its files: tfrkit.sql(\"select count(*) from 'train.tfrecord' group by label\")"
_SORT = 'into another file: tfrkit.sql("select * from \'train.tfrecord\' order by id").save("sorted.tfrecord")'
_FORMAT = "for a framework: ds.batch(64).to_torch(), .to_jax(), .to_tf()    whole: ds.to_pandas(), ds.to_polars()"

# Names of tf.data, TFDS, Hugging Face datasets, PyTorch and pandas.
OF_DATASET: Mapping[str, str] = {
    "features": _SCHEMA,
    "element_spec": _SCHEMA,
    "dtypes": _SCHEMA,
    "info": f"{_SCHEMA}    its files: ds.files    its splits: ds.splits",
    "num_records": _COUNT,
    "num_rows": _COUNT,
    "num_examples": _COUNT,
    "cardinality": _COUNT,
    "count": _COUNT,
    "size": _COUNT,
    "shape": "rows and features: len(ds), len(ds.columns)",
    "column_names": "names of the features: ds.columns",
    "keys": "names of the features: ds.columns    names of the splits: ds.splits",
    "to_numpy": f"{_NUMPY}    all rows by feature: next(iter(ds.batch(len(ds))))",
    "numpy": _NUMPY,
    "as_numpy_iterator": _NUMPY,
    "to_list": "rows as a list: list(ds)",
    "to_dict": "all rows by feature: next(iter(ds.batch(len(ds))))",
    "iloc": "rows by number: ds[5], ds[10:20], ds[[3, 1, 4]]",
    "loc": 'rows by number: ds[5]    by the value of a feature: ds.by("id", 7)',
    "tail": "the last rows: ds[-5:]",
    "sample": "rows at random: ds.shuffle(seed=0).take(5)",
    "iterrows": "rows with their numbers: enumerate(ds)",
    "enumerate": "rows with their numbers: enumerate(ds)",
    "iter": "rows: iter(ds)    batches: iter(ds.batch(64))",
    "describe": "counts and ranges of each feature: tfrkit.tools.stats(ds.files)",
    "concatenate": _CONCATENATE,
    "concat": _CONCATENATE,
    "first": "the first row: ds[0]    the first rows: ds.take(5)",
    "last": "the last row: ds[-1]    the last rows: ds[-5:]",
    "sort": _SORT,
    "sort_values": _SORT,
    "sorted": _SORT,
    "order_by": _SORT,
    "prefetch": _AHEAD,
    "cache": _CACHE,
    "interleave": "a shuffle mixes the rows of all files: ds.shuffle(seed=0)",
    "padded_batch": "batches of one width: ds.batch(64, pad=0)",
    "with_options": "reading is parallel and in a fixed order already: ds.batch(64, threads=8)",
    "unbatch": "a Dataset gives rows already: for row in ds    batches: ds.batch(64)",
    "zip": "rows of two datasets side by side: for one, other in zip(first, second)    one after the other: "
    "tfrkit.open([first, second])",
    "shard": "the part of one process: ds.batch(64).to_torch(rank=0, world_size=4)",
    "train_test_split": SPLIT,
    "random_split": SPLIT,
    "sql": _SQL,
    "query": _SQL,
    "groupby": _SQL,
    "to_tensorflow": _FORMAT,
    "select_columns": 'fewer features: ds.select(["label"])',
    "remove_columns": 'fewer features, those to keep: ds.select(["label"])',
    "rename_column": 'in the files: tfrkit.tools.convert(ds.files, path, rename={"old": "new"})',
    "set_format": _FORMAT,
    "with_format": _FORMAT,
    "to_csv": _WRITE,
    "to_json": _WRITE,
    "to_parquet": _WRITE,
    "save": _WRITE,
    "save_to_disk": _WRITE,
}

_OPEN = "open files, a folder or a glob: ds = tfrkit.open(path)"
OF_MODULE: Mapping[str, str] = {
    "TFRecordDataset": _OPEN,
    "TFRecordReader": _OPEN,
    "Reader": _OPEN,
    "read": _OPEN,
    "load": _OPEN,
    "load_dataset": _OPEN,
    "TFRecordWriter": "write rows: with tfrkit.Writer(path) as w: w.write({...})",
    "write": "write rows: with tfrkit.Writer(path) as w: w.write({...})",
    "info": "what is in files: tfrkit.open(path).schema    on the command line: tfr info PATH",
    "count": "number of rows: len(tfrkit.open(path))    on the command line: tfr count PATH",
}

OF_BATCHES: Mapping[str, str] = {
    "prefetch": "batches are read ahead already, on every core",
    "cache": "files are mapped, and stay in memory while there is room",
    "shuffle": "rows are shuffled before they are put into batches: ds.shuffle(seed=0).batch(64)",
    "repeat": "each pass is the next epoch: for epoch in range(3): for batch in batches: ...",
    "take": "fewer rows, then batches: ds.take(640).batch(64)",
    "skip": "fewer rows, then batches: ds.skip(640).batch(64)",
    "filter": "rows are chosen before they are put into batches: ds.filter(function).batch(64)",
    "unbatch": "rows: for row in ds",
    "as_numpy_iterator": "values are NumPy arrays already: for batch in batches",
    "cardinality": "number of batches: len(batches)",
}


_PANDAS = "as a DataFrame: pyarrow.table(answer).to_pandas(), polars.DataFrame(answer)"
_ARROW = "as a table of Arrow: pyarrow.table(answer)"
_ROWS = "rows: list(answer), as dicts    list(answer.tuples()), as tuples"
_SAVE = 'a file: answer.save("x.parquet"), also .csv, .jsonl and .tfrecord'
# Names of DuckDB, pandas, polars and database modules.
OF_ANSWER: Mapping[str, str] = {
    "to_pandas": _PANDAS,
    "to_df": _PANDAS,
    "df": _PANDAS,
    "fetchdf": _PANDAS,
    "to_polars": _PANDAS,
    "pl": _PANDAS,
    "to_arrow": _ARROW,
    "arrow": _ARROW,
    "fetch_arrow_table": _ARROW,
    "fetchall": _ROWS,
    "fetchone": _ROWS,
    "to_list": _ROWS,
    "to_dicts": _ROWS,
    "head": _ROWS,
    "show": _ROWS,
    "to_csv": _SAVE,
    "to_parquet": _SAVE,
    "write_csv": _SAVE,
    "write_parquet": _SAVE,
}


def explain_name(name: str) -> AttributeError:
    """Make the error for a name that the module does not have, with the equivalent, if any."""
    hint = f"\n  {OF_MODULE[name]}" if name in OF_MODULE else ""
    return AttributeError(f"module 'tfrkit' has no attribute {name!r}{hint}")


def explain_attribute(owner: object, name: str, known: Mapping[str, str]) -> AttributeError:
    """Make the error for a missing attribute, with the equivalent from `known`, if any."""
    if hasattr(type(owner), name):
        object.__getattribute__(owner, name)  # if a property raised inside, this raises its own error
    hint = f"\n  {known[name]}" if name in known else ""
    return AttributeError(f"{type(owner).__name__} has no attribute {name!r}{hint}", name=name, obj=owner)


def refuse_arguments(
    called: str, /, *, given_twice: str | None = None, too_many: str | None = None, **known: str
) -> Callable[[Callable[_Parameters, _Result]], Callable[_Parameters, _Result]]:
    """Make a function reject arguments known from other libraries, with a hint; `called` is its name in messages.

    `given_twice` is the hint for an argument given by position and by name, `too_many` for more arguments by position
    than there are.

    Example:
        >>> @refuse_arguments("shuffle", buffer_size="no buffer is needed")
        ... def shuffle(seed=0): ...
        >>> shuffle(buffer_size=9)
        Traceback (most recent call last):
        TypeError: shuffle has no argument buffer_size
          no buffer is needed
    """

    def decorate(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
        @functools.wraps(function)
        def call(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
            for name in kwargs:
                if name in known:
                    raise TypeError(f"{called} has no argument {name}\n  {known[name]}")
                if given_twice is not None and name in function.__code__.co_varnames[: len(args)]:
                    raise TypeError(f"{called} got two values for {name}\n  {given_twice}")
            if too_many is not None and len(args) > function.__code__.co_argcount:
                raise TypeError(f"{called} expected one argument, got several\n  {too_many}")
            return function(*args, **kwargs)

        if called not in function.__qualname__.split("."):
            function.__qualname__ = called  # the name in Python's own errors
        return call

    return decorate
