"""Dataset: rows of TFRecord files that can be selected, ordered, transformed and batched.

Rarely used modules (splits, images) are imported on use, to keep `import tfrkit` fast.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex, overload

from tfrkit._familiar import OF_DATASET, SPLIT, explain_attribute, refuse_arguments
from tfrkit._limits import DEFAULT_AHEAD_NBYTES
from tfrkit._types import Row
from tfrkit.batches.choose import choose_rows, measure_lengths, order_by_tokens
from tfrkit.batches.loop import Batching
from tfrkit.batches.pad import Pad
from tfrkit.batches.stages import DecodeFeatures, MapRows
from tfrkit.batches.state import require_whole
from tfrkit.batches.stripe_sizes import ShuffleMode, plan_stripes, prefers_stripes
from tfrkit.container.records import Finding
from tfrkit.dataset.batched import Batches
from tfrkit.dataset.feeding import Feeding
from tfrkit.errors import TfrkitError
from tfrkit.features.schema import find_part
from tfrkit.features.spec import RecordKind
from tfrkit.orders.order import Bucketed, Listed, Order, Repeated, Shuffled, Slice, WindowShuffled, score_mixing
from tfrkit.orders.spans import count_splits, find_spans
from tfrkit.orders.striped import Striped

if TYPE_CHECKING:
    from tfrkit.view.server import Frame

# Features listed in a repr.
_MAX_NAMED = 8


class Splits(tuple["Dataset", ...]):
    """The parts of a dataset, by position or by name. `notes` describe the actual sizes with groups or hashes."""

    names: tuple[str, ...]
    notes: list[str]

    def __new__(cls, parts: Mapping[str, Dataset], notes: Sequence[str]) -> Splits:
        made = super().__new__(cls, parts.values())
        made.names = tuple(parts)
        made.notes = list(notes)
        return made

    @overload
    def __getitem__(self, index: SupportsIndex | str) -> Dataset: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Dataset, ...]: ...
    def __getitem__(self, index: SupportsIndex | str | slice) -> Dataset | tuple[Dataset, ...]:
        return super().__getitem__(self.names.index(index) if isinstance(index, str) else index)

    def __reduce__(self) -> tuple[object, ...]:
        return Splits, (dict(zip(self.names, self, strict=True)), self.notes)


class Fold(NamedTuple):
    """One of the k pairs of a cross-validation: the held-out part and the rest."""

    train: Dataset
    test: Dataset


class Dataset(Feeding):
    """Rows of TFRecord shards, with a schema, an order and steps. Immutable; safe to share between threads.

    Every method that changes something returns a new Dataset; nothing is read until rows or batches are requested.

    Text is `bytes` in rows and batches, because a TFRecord does not mark which bytes are text. In
    tables (`to_pandas`, `to_polars`, `to_arrow`, SQL) a feature that the schema calls text is `str`; an inferred schema
    calls a feature text if all its values are UTF-8. To get `str` in rows as well: ``ds.decode(name="text")``.
    """

    # ---- properties ----------------------------------------------------------------------------------------------

    @property
    def files(self) -> list[str]:
        """Paths of the shards, in reading order; for a part, only the shards that have rows of the part."""
        files, order = self._set.files, self._recipe.order
        if order is None:
            return files
        starts = self._set.records.find_starts()
        return [files[shard] for shard in find_spans(order, starts, self._recipe.epoch)]

    @property
    def kind(self) -> RecordKind:
        """Kind of the records: "example", "sequence_example", or "raw" for anything else."""
        return self.schema.kind

    @property
    def errors(self) -> list[Finding]:
        """Damage skipped so far, each place listed once.

        `record` of a finding counts each place before it as one record, also one with an unknown number of records
        (`is_one_record` is False).
        """
        return list(self._set.policy.findings.values())

    @property
    def splits(self) -> dict[str, int]:
        """Number of rows of each split, from tfrkit.json, TFDS's dataset_info.json, or the file names.

        For a part, the number of its rows in each split; splits without rows are left out. For a part that was shuffled
        or filtered, all its positions are computed, about a second for 50 million rows.
        """
        from tfrkit.batches.named_splits import find_split_orders

        splits = find_split_orders(self._set)
        if self._recipe.order is None:
            return {name: order.size for name, order in splits.items()}
        if self._recipe.is_endless:
            raise TypeError("a dataset that repeats without end has no number of rows in each split")
        return count_splits(self._recipe.order, splits, len(self._set.records), self._recipe.epoch)

    @property
    def columns(self) -> list[str]:
        """Names of the features of a row; after `map`, the names in its results, for which some rows are computed."""
        return list(self._schema_of_batches().names)

    def __repr__(self) -> str:
        """Describe files, rows, splits, features and mixing, if known or quick to find."""
        self._look_if_small()
        files = self.files
        names = ", ".join(os.path.basename(name) for name in files[:3])
        parts = [f"{names}, … {len(files)} files" if len(files) > 3 else names]
        order, known = self._recipe.order, self._set.known_schema
        size = self._set.known_count if order is None else order.size
        if size is not None:
            parts.append("endless" if self._recipe.is_endless else f"{size:,} row{'' if size == 1 else 's'}")
        if order is None and size is not None and len(self._set.sidecars.splits) > 1:
            parts.append("splits " + ", ".join(f"{name} {count:,}" for name, count in self.splits.items()))
        if isinstance(order, WindowShuffled):
            parts.append(f"shuffled in windows, mixed {score_mixing(order, self._recipe.epoch):.2f} where 1 is perfect")
        elif isinstance(order, Striped):
            mixed = score_mixing(order, self._recipe.epoch)
            parts.append(f"shuffled in {order.stripes.groups} groups, mixed {mixed:.2f} where 1 is perfect")
        elif isinstance(order, Shuffled):
            parts.append("shuffled")
        if any(isinstance(stage, MapRows) for stage in self._recipe.stages):
            parts.append("mapped")
        elif known is not None:
            features = list(known.names if self._recipe.features is None else self._recipe.features)
            more = f", … {len(features)} in all" if len(features) > _MAX_NAMED else ""
            parts.append(f"features {', '.join(features[:_MAX_NAMED])}{more}")
        return f"Dataset({'; '.join(parts)})"

    def _repr_html_(self) -> str:
        from tfrkit.ops.show_html import show_html

        plain = self._derive(stages=())
        return show_html(
            repr(self),
            lambda: plain.schema,
            lambda names: iter(plain.select(names)),
            self._set.sidecars.class_file,
        )

    def view(self, *, where: str | None = None, record: int | None = None, height: int = 700) -> Frame:
        """Show all records of the files in a frame of a notebook, as `tfr view` does in a browser.

        Starts a server in this process, on this machine only; it ends after 30 minutes without a request, or by `stop`
        of the result. Without a notebook, open the `address` of the result in a browser.

        Args:
            where: Show the records that match this SQL condition first.
            record: Show this record first.
            height: Height of the frame in pixels.

        Example:
            >>> ds.view(where="label = 3")  # doctest: +SKIP
        """
        from tfrkit.view.server import open_frame

        if self._recipe.order is not None:
            raise ValueError(
                "view shows all records of the files, got a part of them\n  some of them: ds.view(where=...)"
            )
        return open_frame(self.files, where=where, record=record, height=height)

    # ---- which rows, in which order ------------------------------------------------------------------------------

    @refuse_arguments("select", too_many='a list of names: ds.select(["image", "label"])')
    def select(self, features: Sequence[str]) -> Dataset:
        """Decode only these features of the records."""
        if isinstance(features, str):
            hint = f'a list of names: ds.select(["{features}"])'
            raise TypeError(f"features expected a list of names, got the string {features!r}\n  {hint}")
        if self._recipe.stages:
            raise ValueError("select comes before decode and map: it chooses what is read")
        chosen = self._derive(features=tuple(features))
        _ = chosen.schema  # an unknown name raises here, not when reading starts
        return chosen

    @refuse_arguments("split", **dict.fromkeys(("train", "test", "train_size", "test_size", "random_state"), SPLIT))
    def split(
        self,
        parts: Mapping[str, float | int | None],
        *,
        seed: int = 0,
        stratify: str | None = None,
        group: str | None = None,
        hash_by: str | None = None,
    ) -> Splits:
        """Split into disjoint parts that together have every row; return a tuple of Datasets, in the given order.

        The size of a part is a ratio (0.8) or an exact number of rows (500); one size may be None, for the rest. The
        same seed gives the same parts. Nothing is written, so the same files can be split again with other ratios.

        Args:
            parts: Name and size of each part.
            seed: Seed of the random choice of rows.
            stratify: A feature whose values are distributed equally in every part.
            group: A feature; rows with the same value stay in one part (a patient, a video).
            hash_by: A feature whose hash alone decides the part of a row, so that adding rows later does not move old
                rows. For ratios only, which are then approximate.

        The `notes` of the result describe it: with `group`, that no group is in two parts, and the actual sizes.

        Example:
            >>> train, test = ds.split({"train": 0.8, "test": 0.2}, seed=0)
        """
        from tfrkit.orders.split_by import split_by

        orders, notes = split_by(
            self._get_order(),
            parts,
            self._read_key,
            seed=seed,
            stratify=stratify,
            group=group,
            hash_by=hash_by,
        )
        return Splits({name: self._derive(order=order) for name, order in orders.items()}, notes)

    def folds(
        self, num_folds: int, *, seed: int = 0, stratify: str | None = None, group: str | None = None
    ) -> list[Fold]:
        """Return the `num_folds` (train, test) pairs of a cross-validation; every row is in exactly one test part.

        Example:
            >>> train, test = ds.folds(5, seed=0)[2]
        """
        from tfrkit.orders.split import fold_orders

        labels = None if stratify is None else self._read_key(stratify)
        groups = None if group is None else self._read_key(group)
        pairs = fold_orders(self._get_order(), num_folds, seed, labels=labels, groups=groups)
        return [Fold(self._derive(order=train), self._derive(order=test)) for train, test in pairs]

    @refuse_arguments(
        "shuffle",
        given_twice="the number is the seed; rows are mixed without a buffer: ds.shuffle(seed=3)",
        buffer_size="all rows of all files are mixed, by a seed and without a buffer: ds.shuffle(seed=0)",
        reshuffle_each_iteration="every pass over batches is the next epoch, in another order: ds.shuffle(seed=0)",
        random_state="ds.shuffle(seed=0)",
    )
    def shuffle(
        self,
        seed: int = 0,
        *,
        epoch: int = 0,
        window: int | None = None,
        block: int | None = None,
        mode: ShuffleMode | None = None,
        groups: int | None = None,
    ) -> Dataset:
        """Shuffle the rows: in the same order for the same seed and epoch, in another order in every epoch.

        The argument is a seed, not a buffer size as in tf.data: the whole dataset is shuffled, without a buffer and
        without a list of its rows. For spinning disks and compressed files use a `window`: that number of rows is read
        in blocks of `block` adjacent rows and shuffled, which takes few long reads. The repr of the Dataset shows how
        well the rows are mixed: 1 is a perfect shuffle.

        Args:
            seed: Seed of the order.
            epoch: Epoch of the first pass.
            window: Rows that are shuffled together; with "striped", those of all groups.
            block: Adjacent rows that are read together.
            mode: "exact" is a perfect shuffle, one request per record from a store. "striped" reads blocks of 8 MiB,
                and each rank reads only those of its own `groups`: the bytes are read once for any number of ranks that
                divides the groups. The default is "exact", but "striped" for more than 256 MiB in a store in records
                of less than 64 KiB on average. `tfr info --epoch-cost` compares them.
            groups: Groups of a striped order, at most the rows of a batch; the default is up to 8. The windows of all
                groups, with 16 blocks each, are in memory, divided between the ranks.

        Example:
            >>> ds.shuffle(seed=7, mode="striped", groups=64).batch(4096)  # doctest: +SKIP
        """
        seed, epoch = require_whole("seed", seed), require_whole("epoch", epoch)
        if mode not in (None, "exact", "striped"):
            raise ValueError(f"mode expected 'exact' or 'striped', got {mode!r:.64}")
        base = self._get_order()
        if groups is not None and mode is None:
            mode = "striped"
        if mode == "striped" or (mode is None and window is None and prefers_stripes(self._set, base)):
            stripes = plan_stripes(self._set, base.size, window=window, block=block, groups=groups)
            return self._derive(order=Striped(base, seed, stripes), epoch=epoch)
        if groups is not None:
            raise ValueError(f"groups goes with mode='striped', got {groups!r:.64} groups and mode={mode!r}")
        if window is None:
            if block is not None:
                raise ValueError("block goes with window: shuffle(seed, window=100_000, block=100)")
            return self._derive(order=Shuffled(base, seed), epoch=epoch)
        if mode == "exact":
            raise ValueError("mode='exact' has no window: leave one of them out")
        window = require_whole("window", window, first=1)
        block = max(1, min(window // 64, 1024)) if block is None else require_whole("block", block, first=1)
        return self._derive(order=WindowShuffled(base, seed, block=block, window=window), epoch=epoch)

    def take(self, count: int) -> Dataset:
        """Keep the first `count` rows, or all if there are fewer."""
        return self._cut(0, _require_count(count))

    def skip(self, count: int) -> Dataset:
        """Skip the first `count` rows."""
        return self._cut(_require_count(count), None)

    def repeat(self, times: int | None = None) -> Dataset:
        """Repeat the rows a number of `times`, or endlessly; shuffled rows have a new order each time."""
        base = self._get_order()
        if times is None:
            if base.size == 0:
                raise ValueError("no rows to repeat without end")
            return self._derive(order=Repeated(base, (1 << 60) // base.size), is_endless=True)
        return self._derive(order=Repeated(base, require_whole("times", times, first=1)))

    def filter(
        self, function: Callable[[Row], object], *, features: Sequence[str] | None = None, processes: int | None = None
    ) -> Dataset:
        """Keep the rows for which a function returns a true value. This call reads all rows once.

        The result stores only positions. With `features` the function gets only these features, before any other step,
        and the others are not decoded.
        """
        seen = self if features is None else self._derive(features=tuple(features), stages=())
        order = self._get_order()
        positions = choose_rows(order, seen._get_fetcher(), seen._recipe.stages, function, processes)
        return self._derive(order=Listed(order, positions))

    @refuse_arguments(
        "map",
        num_parallel_calls="rows are mapped on every core already; in processes: ds.map(function, processes=4)",
        num_proc="in processes: ds.map(function, processes=4)",
        batched="whole batches: ds.batch(64).map(function)",
        remove_columns="a row is what the function returns: leave the key out there",
    )
    def map(self, function: Callable[[Row], Row], *, processes: int | None = None) -> Dataset:
        """Apply `function`, which returns a dict, to every row, on the reading threads or in a number of `processes`.

        Returned rows are used unchanged; only `batch` stacks them. In batches, Python numbers become int64 and float64,
        and a feature that some rows lack becomes `Ragged`, as without `map`: to get an array, add it to every row.
        """
        return self._derive(stages=(*self._recipe.stages, MapRows(function, processes=processes)))

    def decode(self, *, device: Any = None, **features: Any) -> Dataset:
        """Decode features: images, masks and raw pixels to arrays, text to str.

        Each feature takes (height, width) for an image of that size; True, "image", "mask" or "text"; or a dict of
        options. `image` selects "image/encoded" if no feature is named "image"; rows keep their names. A feature that
        the schema calls a mask keeps its class numbers at any size, unless a dict has {"type": "image"}.

        Options of an image, with {"type": "image"} if the schema has another type:
            size: (height, width); by default every image keeps its size.
            channels: "rgb" (3 channels), "gray" (1) or "rgba" (4), always uint8; "keep" for those of the file.
            fit: If proportions differ, "stretch" changes them, "crop" cuts edges off, "pad" adds borders of `fill`.
            filter: "bilinear", or "nearest" for pixels that must not be blended.
            antialias: True uses every pixel when an image is made smaller, as Pillow does; False does not, as
                tf.image.resize by default.
            reduced: True lets the JPEG decoder halve large photos first: twice as fast, values change by about 1.
            exif: "keep" returns pixels as stored, as TensorFlow does; "apply" rotates them upright.
            fill: The value of the borders that "pad" adds, 0 to 255.
            max_pixels: Limit of height times width; a larger image raises before it is decoded.

        Options of a mask, {"type": "mask"}: size, fit, exif, fill and max_pixels, as above. The result is an array of
        class numbers of shape (height, width), never blended.

        Options of raw bytes:
            dtype: Name of the NumPy dtype of the numbers.
            shape: Shape of the array, with at most one None for a size that varies.

        Bytes that are not an image file are read as raw pixels if height, width and channels features give their shape,
        or if their number is height * width of the requested size (gray) or 3 times that (RGB). 4 times that is RGBA
        only with ``"channels": "rgba"`` or a feature that gives 4 channels. Raw pixels are converted to the requested
        channels like any image.

        With ``device="cuda"`` and a size, the loaders of `to_torch` and `to_jax` decode and resize baseline JPEGs on
        the GPU; other images are decoded on the CPU and counted (`loader.on_cpu`). Rows, and batches without a loader,
        are decoded on the CPU. GPU decoders interpolate colours less exactly, by 1 of 255 on average after resizing,
        and do not detect damage inside an image; `tfr verify --deep` does. See docs/do/gpu.md.

        Example:
            >>> ds.decode(image=(224, 224))[0]["image"].shape
            (224, 224, 3)
            >>> ds.decode(image={"size": (224, 224), "channels": "gray"})[0]["image"].shape
            (224, 224, 1)
            >>> ds.decode(image={"size": (96, 96), "fit": "crop"})[0]["image"].shape
            (96, 96, 3)
            >>> ds.decode(image={"size": (96, 96), "fit": "pad", "fill": 127})[0]["image"][0, 0].tolist()
            [127, 127, 127]
            >>> ds.decode(image={"size": (96, 96), "filter": "nearest"})[0]["image"].shape
            (96, 96, 3)
            >>> ds.decode(image={"size": (96, 96), "antialias": False, "reduced": False})[0]["image"].shape
            (96, 96, 3)
            >>> ds.decode(image={"exif": "apply", "max_pixels": 1_000_000})[0]["image"].shape
            (48, 64, 3)
            >>> ds.decode(mask={"type": "mask", "size": (96, 96)})[0]["mask"].shape
            (96, 96)
            >>> ds.decode(pixels={"dtype": "uint8", "shape": (28, 28)})[0]["pixels"].shape
            (28, 28)
            >>> ds.decode(pixels={"size": (28, 28), "channels": "keep"})[0]["pixels"].shape
            (28, 28, 1)
            >>> ds.decode(name="text")[0]["name"]
            'first'
        """
        from tfrkit.batches.decode import DecodeStage

        if isinstance(device, (tuple, list, dict, bool)) or device in ("image", "mask", "text"):
            features, device = {**features, "device": device}, None  # a feature named "device"
        stage = DecodeStage(features, device=None if device in (None, "cpu") else str(device)).bind(self.schema)
        return self._derive(stages=(*self._recipe.stages, DecodeFeatures(stage)))

    # ---- reading -------------------------------------------------------------------------------------------------

    def head(self, count: int = 5) -> list[Row]:
        """Return the first `count` rows as a list."""
        if self._is_plain:
            return list(itertools.islice(self, _require_count(count)))  # without counting all rows first
        return list(self.take(count))

    @refuse_arguments(
        "batch",
        batch_size="ds.batch(64)",
        drop_remainder="ds.batch(64, drop_last=True)",
        num_parallel_calls="ds.batch(64, threads=8)",
        num_workers="ds.batch(64, threads=8)    for PyTorch: ds.batch(64).to_torch(num_workers=4)",
        shuffle="ds.shuffle(seed=0).batch(64)",
    )
    def batch(
        self,
        size: int | None = None,
        *,
        max_tokens: int | None = None,
        drop_last: bool = False,
        pad: Pad | float | None = None,
        truncate: bool = False,
        bucket: str | None = None,
        per_rank: bool | None = None,
        threads: int | None = None,
        ahead_nbytes: int = DEFAULT_AHEAD_NBYTES,
    ) -> Batches:
        """Batch rows into columns. Each pass over the batches is the next epoch.

        A column is a NumPy array if every record has the same number of values, `Ragged` if the number varies, and
        `BytesColumn` if every row has one bytes value.

        Args:
            size: Rows of a batch. With several ranks, the rows of all ranks together, unless `per_rank` is True.
            max_tokens: Limit of the number of rows times the length of the longest row in a batch, for the feature that
                `bucket` names. The number of rows varies; `size` is then its maximum. The limit is for each rank. A row
                longer than the limit raises an error that names its record.
            drop_last: Leave out the last batch if it has fewer rows.
            pad: Pad ragged features to the longest row of the batch: a value for all, or {feature: value} or
                {feature: (value, length)}. The length of each row is in "feature/length". Feature lists of
                SequenceExamples are padded in the same way. If their steps vary in length, the result has the shape
                (rows, steps, values), with step lengths in "feature/frame_length"; {feature: (value, (steps, values))}
                sets both lengths.
            truncate: Cut rows that are longer than the length in `pad`; otherwise a longer row raises.
            bucket: A feature; rows with similar numbers of its values are put in one batch, to need little padding.
            per_rank: If True, every rank gets `size` rows. If False, `size` rows are divided between the ranks. The
                default also divides them, and the first of several ranks warns.
            threads: Threads that read and decode ahead; default one per core. The order does not change.
            ahead_nbytes: Limit of bytes read ahead.

        Example:
            >>> for batch in ds.batch(64, pad={"tokens": (0, 128)}, truncate=True):
            ...     batch["tokens"].shape, batch["tokens/length"]  # (64, 128), values of each row
            >>> batches = ds.shuffle(seed=7).batch(max_tokens=4096, bucket="tokens", pad=0)
        """
        batching = Batching(
            size, drop_last, pad, threads, ahead_nbytes, truncate=truncate, per_rank=per_rank, max_tokens=max_tokens
        )
        order = None
        if bucket is not None:
            find_part(self._set.schema, bucket)  # an unknown name raises an error that suggests the nearest name
            order = self._order_by_lengths(bucket, batching)
        elif max_tokens is not None:
            raise ValueError(
                "max_tokens counts the values of a feature, and bucket names none\n"
                "  say which: batch(max_tokens=4096, bucket='tokens')"
            )
        return self._make_batches(batching, order)

    def close(self) -> None:
        """Close files and maps. They are reopened on the next read."""
        self._set.close()

    def __enter__(self) -> Dataset:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    if not TYPE_CHECKING:  # a type checker reports a wrong name by itself

        def __getattr__(self, name: str) -> Any:
            raise explain_attribute(self, name, OF_DATASET)

    def __add__(self, other: object) -> Dataset:
        """Raise: several files are combined by opening them together."""
        if not isinstance(other, Dataset):
            return NotImplemented
        raise TypeError(f"datasets cannot be added\n  {OF_DATASET['concatenate']}")

    # ---- internals -----------------------------------------------------------------------------------------------

    def _look_if_small(self) -> None:
        """Count the rows and find the schema of small files, for a repr. Damage is ignored here; reading reports it."""
        if self._set.is_quick and self._set.policy.on_error == "raise":
            with contextlib.suppress(TfrkitError, OSError):
                _ = len(self._set.records), self._set.schema

    def _cut(self, start: int, stop: int | None) -> Dataset:
        base = self._get_order()
        start, stop, _ = slice(start, stop).indices(base.size)
        return self._derive(order=Slice(base, start, stop), is_endless=self._recipe.is_endless and stop == base.size)

    def _order_by_lengths(self, feature: str, batching: Batching) -> Order:
        order, size, max_tokens = self._get_order(), batching.size, batching.max_tokens
        if max_tokens is None:
            assert size is not None
            return Bucketed(order, measure_lengths(self._set, feature), batch_size=size, seed=0)
        if self._recipe.is_endless:
            raise ValueError("max_tokens expected a dataset with an end, got one that repeats: each pass is an epoch")
        return order_by_tokens(
            order,
            self._set,
            feature,
            max_tokens=max_tokens,
            max_rows=size,
            pad=batching.pad,
            locate=self._get_fetcher().where,
        )


def _require_count(count: int) -> int:
    if require_whole("count", count) < 0:
        raise ValueError(f"expected a number of rows of 0 or more, got {count}")
    return count
