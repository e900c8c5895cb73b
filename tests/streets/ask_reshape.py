"""Askers that run a verb on the dataset and open its output."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import tfrkit as tfr
from streets.ask_python import facts_of_records, facts_of_schema
from streets.building import run_tfr
from streets.facts import Facts
from streets.placing import parse_record
from streets.truth import Made, Row, freeze_row
from tfrkit.errors import EmptyShardWarning

Ask = Callable[[Made, Path], Facts]


def ask_split(made: Made, folder: Path) -> Facts:
    """Splits change: every row once, in any split."""
    run_tfr("split", made.path, "-o", folder / "out", "--split", "east=.5,west=.5", "--quiet")
    ds = tfr.open(folder / "out")
    half = len(made.rows) / 2
    problems = []
    if set(ds.splits) != {"east", "west"} or any(abs(count - half) > 1 for count in ds.splits.values()):
        problems.append(f"splits are {ds.splits}, expected east and west of {half} each")
    else:
        parts = [row for name in ds.splits for row in _rows(ds[name], made)]
        return Facts(parts, is_ordered=False, features=facts_of_schema(ds.schema), kind=ds.kind)
    return Facts(_rows(ds, made), is_ordered=False, features=facts_of_schema(ds.schema), problems=problems)


def ask_shuffle(made: Made, folder: Path) -> Facts:
    run_tfr("shuffle", made.path, "-o", folder / "out", "--quiet")
    return _facts_of(folder / "out", made, is_ordered=False)


def ask_reshard(made: Made, folder: Path) -> Facts:
    run_tfr("reshard", made.path, "-o", folder / "out", "--shards", 3, "--quiet")
    return _facts_of(folder / "out", made)


def ask_reshard_parts(made: Made, folder: Path) -> Facts:
    """Two runs of the command share the work."""
    for part in ("0/2", "1/2"):
        on = ("--part", part, "--parts", folder / "meet", "--jobs", 1)
        run_tfr("reshard", made.path, "-o", folder / "out", "--shards", 3, *on, "--quiet")
    return _facts_of(folder / "out", made)


def ask_convert(made: Made, folder: Path) -> Facts:
    is_one = len(made.shards) == 1
    out = folder / ("out.tfrecord" if is_one else "out")
    run_tfr("convert", made.path, "-o", out, "--compression", "gzip", "--quiet")
    return _facts_of(out, made, has_splits=not is_one)


def ask_merge(made: Made, folder: Path) -> Facts:
    run_tfr("merge", made.path, "-o", folder / "out.tfrecord", "--quiet")
    return _facts_of(folder / "out.tfrecord", made, has_splits=False)


def ask_sample(made: Made, folder: Path) -> Facts:
    run_tfr("sample", made.path, "-n", len(made.rows), "-o", folder / "out.tfrecord", "--quiet")
    return _facts_of(folder / "out.tfrecord", made, has_splits=False)


def ask_repair(made: Made, folder: Path) -> Facts:
    """Nothing is damaged, so all records are kept."""
    is_one = len(made.shards) == 1
    out = folder / ("out.tfrecord" if is_one else "out")
    run_tfr("repair", made.path, "-o", out, "--quiet")
    return facts_of_records(tfr.open(out).records(), made.records, made.truth)


def ask_build_tfrecord(made: Made, folder: Path) -> Facts:
    run_tfr("build", "tfrecord", made.path, "-o", folder / "out", "--jobs", 1, "--quiet")
    return _facts_of(folder / "out", made, has_splits=False)


def ask_sql_save(made: Made, folder: Path) -> Facts:
    """`select *` copies the records byte for byte."""
    out = folder / "out.tfrecord"
    run_tfr("sql", f"select * from '{made.path}'", "-o", out, "--quiet")
    return facts_of_records(tfr.open(out).records(), made.records, made.truth)


def ask_append_edit(made: Made, folder: Path) -> Facts:
    """Append one record to a split and drop it by its number: nothing changes."""
    larger, number = _append_first(made, folder)
    run_tfr("edit", larger, "--drop", "--where", f"_record = {number}", "--in-place", "--quiet")
    return _facts_of_emptied(larger, made)


def ask_append_dedupe(made: Made, folder: Path) -> Facts:
    """Append a duplicate to a split and drop it as one."""
    larger, _ = _append_first(made, folder)
    run_tfr("dedupe", larger, "--in-place", "--quiet")
    return _facts_of_emptied(larger, made)


def _facts_of_emptied(larger: Path, made: Made) -> Facts:
    """The added shard is empty afterwards."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EmptyShardWarning)
        return _facts_of(larger, made, has_splits=larger.is_dir())


def _append_first(made: Made, folder: Path) -> tuple[Path, int]:
    """A copy of the dataset with its first record appended again, and the number of the duplicate."""
    path, split = Path(made.path), made.shards[0].split
    is_one = len(made.shards) == 1 and path.is_file()
    if is_one:
        # Not for a single shard of a set, which cannot be appended to.
        path = folder / "one.tfrecord"
        run_tfr("convert", made.path, "-o", path, "--quiet")
    more = folder / f"{split or 'more'}.tfrecord"
    with tfr.Writer(more) as writer:
        writer.write_record(made.records[0])
    chosen = () if split is None or is_one else ("--split", split)
    larger = folder / ("larger.tfrecord" if is_one else "larger")
    done = run_tfr("append", path, more, *chosen, "-o", larger, "--format", "json", "--quiet")
    files = json.loads(done.stdout)["files"]
    (at,) = [at for at, file in enumerate(files) if file["added"]]
    return larger, sum(file["records"] for file in files[: at + 1]) - 1


def _facts_of(out: Path, made: Made, *, is_ordered: bool = True, has_splits: bool = True) -> Facts:
    """Rows, splits and schema of the output of a verb."""
    ds = tfr.open(out)
    split_rows = {}
    problems = []
    if has_splits and made.is_certain:
        for name in made.splits:
            if name in ds.splits:
                split_rows[name] = _rows(ds[name], made)
            else:
                problems.append(f"split {name} is gone, the output has {dict(ds.splits)}")
    return Facts(
        _rows(ds, made),
        is_ordered=is_ordered,
        split_rows=split_rows,
        features=facts_of_schema(ds.schema),
        kind=ds.kind,
        problems=problems,
    )


def _rows(ds: tfr.Dataset, made: Made) -> list[Row]:
    if ds.kind == "raw":
        return [parse_record(bytes(record), made.truth) for record in ds.records()]
    return [freeze_row(row, made.truth.features) for row in ds]
