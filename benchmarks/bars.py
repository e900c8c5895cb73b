"""The rows of the report: which works there are, what they read, and the bars they are held to."""

from __future__ import annotations

from dataclasses import dataclass

NAMES = {
    "tfrkit": "tfrkit",
    "tensorflow": "TensorFlow",
    "native": "C loop",
    "tfr-reader": "tfr-reader",
    "tfrecord": "vahidk/tfrecord",
    "bagz": "bagz",
    "array_record": "array_record",
    "webdataset": "WebDataset",
    "litdata": "LitData",
    "grain": "Grain",
    "mosaicml-streaming": "MosaicML",
    "nvidia-dali-cuda120": "DALI",
    "tensorflow-data-validation": "TFDV",
    "jpeg": "libjpeg-turbo alone",
    "cp": "cp",
    "duckdb": "DuckDB on Parquet",
}
# Sides that do only a part of the work, and show what is possible.
LIMITS = {"native": "the C loop", "jpeg": "libjpeg-turbo alone", "cp": "cp", "duckdb": "DuckDB on Parquet"}
LOADERS = ("webdataset", "litdata", "grain", "mosaicml-streaming", "tfrecord")


@dataclass(frozen=True)
class Bar:
    """tfrkit's speed divided by another side's must reach ``at_least``."""

    side: str
    at_least: float

    def __str__(self) -> str:
        name = NAMES[self.side]
        if self.side in LIMITS:
            return f"≥ {self.at_least:.0%} of {LIMITS[self.side]}"
        return f"not behind {name}" if self.at_least == 1 else f"≥ {self.at_least:g} × {name}"


@dataclass(frozen=True)
class Row:
    """One work on a number of threads."""

    work: str
    title: str
    file: str  # whose size the MB/s are of: for compressed works, what it inflates to
    bars: tuple[Bar, ...] = ()
    threads: int = 1
    beside: tuple[str, ...] = ("tensorflow",)  # the sides that do the same work
    limit: str = ""  # what keeps tfrkit from being faster, found with a profiler
    far: tuple[tuple[str, float], ...] = ()  # how far pixels of sides may be off that decode or resize in another way

    @property
    def name(self) -> str:
        """Name on the command line and in the JSON rows."""
        return self.work if self.threads == 1 else f"{self.work}_{self.threads}_threads"

    def tolerance(self, side: str) -> float:
        """Return how far numbers that need not be equal may be off: gray levels."""
        return dict(self.far).get(side, 1.5)


def tf(at_least: float) -> Bar:
    """Short for a bar against TensorFlow."""
    return Bar("tensorflow", at_least)


ROWS = (
    Row(
        "records_small",
        "1M records of 200 bytes → Python bytes",
        "small.tfrecord",
        (tf(3),),
        beside=("tensorflow", "tfrecord"),
        limit="making bytes objects",
    ),
    Row(
        "verify_small",
        "the same, verify only",
        "small.tfrecord",
        (Bar("native", 0.7),),
        beside=("native",),
        limit="memory and the checksum",
    ),
    Row(
        "records_large",
        "20k records of 100 KB → Python, every byte checked",
        "images.tfrecord",
        (tf(2.5), Bar("native", 0.85)),
        beside=("tensorflow", "native", "tfrecord"),
        limit="mapping the pages of the file and giving them back",
    ),
    Row(
        "columns_tabular",
        "1M Examples of 22 scalars → NumPy columns, batch 1024",
        "tabular.tfrecord",
        (tf(10),),
        limit="the wire walk, 7 ns per feature",
    ),
    Row("columns_tabular", "1M Examples of 22 scalars, 2 threads", "tabular.tfrecord", (tf(12),), threads=2),
    Row(
        "columns_images",
        "20k image Examples of 100 KB → columns",
        "images.tfrecord",
        (tf(5), Bar("tfr-reader", 1)),
        beside=("tensorflow", "tfr-reader"),
        limit="mapping pages, then one copy into the column",
    ),
    Row("columns_images", "20k image Examples, 2 threads", "images.tfrecord", threads=2),
    Row(
        "columns_tokens",
        "200k Examples of 1..512 tokens → Ragged",
        "tokens.tfrecord",
        (tf(6),),
        limit="decoding varints, 2 ns per value",
    ),
    Row("columns_tokens", "200k Examples of tokens, 2 threads", "tokens.tfrecord", threads=2),
    Row(
        "columns_sequences",
        "50k SequenceExamples → columns",
        "sequences.tfrecord",
        (tf(8),),
        limit="work per frame",
    ),
    Row("columns_sequences", "50k SequenceExamples, 2 threads", "sequences.tfrecord", threads=2),
    Row(
        "rows_tabular",
        "1M Examples of 22 scalars → `for row in ds` (TensorFlow: batches of tensors)",
        "tabular.tfrecord",
        (tf(1.5),),
        limit="making, storing and freeing 22 Python objects a row",
    ),
    Row(
        "rows_images",
        "20k image Examples of 100 KB → rows (TensorFlow: batches)",
        "images.tfrecord",
        (tf(2), Bar("tfr-reader", 1)),
        beside=("tensorflow", "tfr-reader"),
        limit="mapping pages, then one copy into a bytes object",
    ),
    Row(
        "rows_tokens",
        "200k Examples of 1..512 tokens → rows (TensorFlow: batches)",
        "tokens.tfrecord",
        (tf(1.5),),
        limit="decoding varints",
    ),
    Row(
        "rows_sequences",
        "50k SequenceExamples → rows (TensorFlow: batches)",
        "sequences.tfrecord",
        (tf(1.2),),
        limit="making an object for each word",
    ),
    Row("write_rows", "write 200k tabular Examples from dicts", "packed.tfrecord", (tf(15),)),
    Row(
        "write_messages",
        "the same by a script for TensorFlow, through tfrkit.compat",
        "packed.tfrecord",
        (tf(3),),
        limit="the script itself, and two Python objects a feature",
    ),
    Row(
        "script_rows",
        "a script for TensorFlow through tfrkit.compat: map(parse_single_example), 10k rows of 22 scalars",
        "packed.tfrecord",
        (tf(1),),
        limit="making 22 arrays a row",
    ),
    Row(
        "script_map_batch",
        "the same, map(parse_single_example).batch(1024), 200k rows",
        "packed.tfrecord",
        (tf(1),),
        limit="parsing each record twice, for map and for batch",
    ),
    Row(
        "script_batches",
        "the same, batch(1024).map(parse_example), 200k rows",
        "packed.tfrecord",
        (tf(1),),
        limit="making bytes objects of records",
    ),
    Row(
        "write_columns",
        "write 200k tabular Examples from columns",
        "packed.tfrecord",
        (tf(100),),
        limit="writing to the file",
    ),
    Row(
        "records_gzip",
        "gzip, 200k records: scan",
        "packed.tfrecord",
        (tf(2.5),),
        limit="inflate (ISA-L)",
    ),
    Row(
        "records_zlib",
        "zlib, 200k records: scan",
        "packed.tfrecord",
        (tf(2.5),),
        limit="inflate (ISA-L)",
    ),
    Row(
        "columns_gzip",
        "gzip, 200k Examples: read and parse",
        "packed.tfrecord",
        (tf(4),),
        limit="inflate (ISA-L)",
    ),
    Row(
        "columns_zlib",
        "zlib, 200k Examples: read and parse",
        "packed.tfrecord",
        (tf(4),),
        limit="inflate (ISA-L)",
    ),
    Row(
        "write_gzip",
        "gzip write, size within 1 % of TensorFlow's",
        "packed.tfrecord",
        (tf(2),),
        limit="deflate (zlib-ng)",
    ),
    Row(
        "write_gzip_fast",
        "gzip write, level fast",
        "packed.tfrecord",
        (tf(8),),
        limit="deflate (ISA-L)",
    ),
    Row(
        "random_small",
        "100k picks one at a time, 200-byte records",
        "small.tfrecord",
        (Bar("tfr-reader", 5), Bar("bagz", 1)),
        beside=("tfr-reader", "bagz", "array_record"),
        limit="one cache miss in the index and one in the file for each pick",
    ),
    Row(
        "random_large",
        "100k picks one at a time, 100 KB records",
        "images.tfrecord",
        (Bar("tfr-reader", 1),),
        beside=("tfr-reader", "bagz", "array_record"),
        limit="checksum and one copy",
    ),
    Row(
        "random_large_unchecked",
        'the same with verify="none"',
        "images.tfrecord",
        (Bar("bagz", 1),),
        beside=("bagz",),
        limit="one copy into a fresh bytes object",
    ),
    Row(
        "random_lists",
        "10k picks 64 at a time, 100 KB records",
        "images.tfrecord",
        beside=(),
        limit="one copy into bytes objects, and the memory bus",
    ),
    Row(
        "shuffle_tabular",
        "1M Examples of 22 scalars, shuffled (tf.data: a buffer of 10k), 2 threads",
        "tabular.tfrecord",
        (tf(8),),
        threads=2,
    ),
    Row(
        "torch_tabular",
        "200k Examples of 22 scalars, shuffled → PyTorch, 2 workers",
        "packed.tfrecord",
        (Bar("tfrecord", 20),),
        threads=2,
        beside=("tfrecord",),
    ),
    Row(
        "images_decode",
        "5k JPEGs 500x375: shuffle, decode, resize to 224x224, batch 64, 2 threads",
        "jpegs.tfrecord",
        (tf(1.15), Bar("nvidia-dali-cuda120", 1.8), Bar("jpeg", 0.85)),
        threads=2,
        beside=("tensorflow", "nvidia-dali-cuda120", "jpeg"),
    ),
    Row(
        "images_decode_antialias",
        "the same with antialiasing",
        "jpegs.tfrecord",
        (tf(2), *(Bar(side, 2.2) for side in LOADERS)),
        threads=2,
        beside=("tensorflow", "nvidia-dali-cuda120", "jpeg", *LOADERS),
        far=(("nvidia-dali-cuda120", 5),),  # its filter reaches less far
    ),
    Row(
        "captcha_build",
        "build 5k captchas: PNG 160x60 → gray 224x224 raw, 5 labels, 2 jobs",
        "captchas",
        (tf(4),),
        threads=2,
        limit="PNG decoding (Pillow) and the resize; 0.3 s of start and end on one core",
    ),
    Row(
        "jpeg_build",
        "build 20k JPEGs kept as they are, headers read, 2 jobs",
        "photos",
        (Bar("cp", 0.7),),
        threads=2,
        beside=("tensorflow", "cp"),
        limit="opening and reading 20k files, and Python for each",
    ),
    Row(
        "jpeg_build_checked",
        "the same, every JPEG decoded once",
        "photos",
        (tf(5),),
        threads=2,
        limit="decoding Huffman codes",
    ),
    Row(
        "csv_build",
        "build 1M rows of CSV, 2 jobs",
        "table.csv",
        (tf(30),),
        threads=2,
        limit="imports on one core, then framing and sha256",
    ),
    Row(
        "parquet_build",
        "build 1M rows of Parquet, 2 jobs",
        "table.parquet",
        (tf(30),),
        threads=2,
        limit="imports on one core, then framing and sha256",
    ),
    Row(
        "sql_tabular",
        "sql: count and average by group over 1M Examples of 22 scalars, 2 threads",
        "tabular.tfrecord",
        (tf(20),),
        threads=2,
        beside=("tensorflow", "duckdb"),
        limit="copying from the page cache, and the walk over 22 features to find 2",
    ),
    Row(
        "stats_tabular",
        "stats: all figures of 1M Examples of 22 scalars, 2 threads",
        "tabular.tfrecord",
        (Bar("tensorflow-data-validation", 10), tf(10)),
        threads=2,
        beside=("tensorflow", "tensorflow-data-validation"),
        limit="checking and decoding, then sorting each column",
    ),
    Row(
        "verify_large",
        "verify: 2 GB of image Examples, 2 threads",
        "images.tfrecord",
        (tf(5),),
        threads=2,
        limit="mapping pages and the memory bus",
    ),
    Row(
        "shuffle_file",
        "shuffle: two files of 2 GB under 512 MB of memory",
        "shuffle-sources",
        (Bar("cp", 0.3),),
        threads=2,
        beside=("cp",),
        limit="the disk, and picking records in another order",
    ),
    Row(
        "convert_gzip",
        "convert: none to gzip, 200k Examples, 2 threads",
        "packed.tfrecord",
        (tf(3),),
        threads=2,
        limit="deflate (zlib-ng)",
    ),
)
