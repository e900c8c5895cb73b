"""Default sizes of options, and limits on memory and work: one table, because together they bound the memory of a pass.

Limits are read on each use, so a test can set one: ``monkeypatch.setattr(LIMITS, "held_nbytes", 0)``.
"""

from __future__ import annotations

from dataclasses import dataclass

DEFAULT_AHEAD_NBYTES = 256 << 20  # batches that are read ahead
DEFAULT_SHARD_NBYTES = 256 << 20  # few files, and still enough of them for several readers
DEFAULT_TAR_SIZE = "1GB"
DEFAULT_SHUFFLE_MEMORY = "1GB"
DEFAULT_BENCH_NBYTES = 16 << 20  # of a dataset are timed


@dataclass
class Limits:
    """Sizes are in bytes. A limit changes the cost of a result, not the result, unless its comment says "refused"."""

    # Storage.
    digest_nbytes: int = 1 << 20  # hashed per step
    spare_nbytes: int = 4 << 20  # required free space in addition to the expected output
    sweep_share: float = 0.01  # share of the time that may be spent looking for temporaries of dead processes

    # Remote storage. Requests of 8 MiB reach the full rate of a connection; the number in flight hides their latency.
    block_nbytes: int = 8 << 20
    first_block_nbytes: int = 1 << 20  # a stream starts small: often only the first records are read
    stream_blocks: int = 16  # of one stream that are requested ahead of the reader
    quick_stream_blocks: int = 4  # the same from a store that sends a block in `quick_seconds`
    quick_seconds: float = 0.02
    max_requests: int = 64  # in flight per store
    first_requests: int = 32  # in flight at first: more after successes, fewer after "slow down"
    request_tries: int = 10  # for each request, with pauses that double
    retry_seconds: float = 0.1  # the first pause
    stall_seconds: float = 20.0  # a connection that sends nothing for this time is given up
    # Ranges closer than this become one request: a request costs as much as this many bytes of a stream.
    gap_nbytes: int = 128 << 10
    wide_gap_nbytes: int = 1 << 20  # for few ranges, which wait for latency only
    # A shuffle of a remote dataset reads records of this size one by one, smaller ones in blocks. Never changed, as
    # `block_nbytes`: the order that a seed gives depends on them.
    large_request_nbytes: int = 64 << 10
    exact_nbytes: int = 256 << 20  # of a remote dataset whose shuffle is always exact
    stripes_nbytes: int = 1 << 30  # windows of all groups of a striped order
    max_text_nbytes: int = 256 << 20  # of sidecars; more is refused
    index_start_nbytes: int = 256 << 10  # of an index, read at first: all of one of 30,000 records
    table_text_nbytes: int = 1 << 20  # of a manifest, above which a table of its shards is made and looked for
    part_save_seconds: float = 5.0  # between results of a part that are stored; a killed part does the rest again
    lease_seconds: float = 120.0  # without renewal, after which the writer of a remote folder is taken for dead

    # Reading shards. Inflated pieces stay in the L2 cache between checking and parsing; pieces that are copied to bytes
    # objects are touched twice, so they are smaller.
    inflate_nbytes: int = 1 << 20
    read_nbytes: int = 1 << 18
    inflater_nbytes: int = 1 << 20  # stored bytes that justify another thread: some milliseconds of inflating
    max_inflaters: int = 4  # more of them wait for the interpreter lock and slow each other down
    ahead_step_nbytes: int = 2 << 20  # inflated per task of a thread, enough to hide the cost of passing tasks on
    window_nbytes: int = 16 << 20  # resident part of a mapped file
    # 1 MiB between inflate checkpoints costs 1 % of the inflated size and about a millisecond per read. Each holds a
    # window of 32 KiB during the search, so a large shard gets wider steps.
    checkpoint_nbytes: int = 1 << 20
    max_checkpoints: int = 4096
    segment_nbytes: int = 4 << 20  # inflated at a time from a checkpoint; to enter it costs as much as 0.1 MB
    slow_scan_seconds: float = 0.5  # a scan that took longer is saved in the user's cache folder
    check_nbytes: int = 8 << 20  # frames that one thread checks at a time
    scan_nbytes: int = 64 << 20  # part of a shard without an index that one thread scans at a time
    scan_search_nbytes: int = 1 << 20  # searched for the first frame of a part; records that are longer are few
    shared_scan_nbytes: int = 4 << 20  # mean size of shards above which several are scanned at a time

    # Records by number. An open shard costs two maps, of itself and of its index; a process may have 65,530.
    max_open_shards: int = 16384
    max_batch_shards: int = 8192  # a batch that spans more is read record by record
    max_unpacked_shards: int = 64  # xz and zstd are unpacked to a file, which stays open
    max_kept_offsets: int = 1 << 24  # of frames, 128 MiB; other shards are scanned again for each access
    held_nbytes: int = 256 << 20  # compressed shards read out of order are kept inflated up to this total
    rows_at_once: int = 64  # enough to hide the cost of a call, few enough to stay small with images
    device_pixels: int = 128 << 20  # per call of a GPU decoder: 0.4 GB decoded

    # Guessing. A schema is inferred from all records of a small dataset, from a sample of a large one.
    schema_records: int = 4096
    schema_nbytes: int = 32 << 20
    quick_count_nbytes: int = 32 << 20  # files up to this size are counted even if the count is optional
    image_head_nbytes: int = 1 << 14  # contains the size of most images
    max_image_head_nbytes: int = 16 << 20  # for a JPEG with a colour profile or a thumbnail

    # Writing.
    flush_nbytes: int = 1 << 18  # large enough for the codec, small enough for the cache
    unsettled_nbytes: int = 32 << 20  # frames held back until a row sets the kind of earlier empty lists
    dealt_records: int = 1 << 16  # whose parts are looked up at a time while frames are copied
    frame_rows: int = 1 << 13  # rows of a table that become frames at a time
    part_nbytes: int = 1 << 30  # a larger shard is written in parts, which limits the loss if the run is killed
    csv_nbytes: int = 1 << 20  # parsed at a time by the core
    csv_sample_nbytes: int = 1 << 16  # read at each sampled position to guess types
    csv_sample_places: int = 8
    csv_sample_rows: int = 25  # at each of these places
    csv_row_nbytes: int = 1 << 28  # a longer row is not parsed by the core: mostly a missing closing quote
    csv_rows: int = 1 << 15  # parsed at a time by the csv module
    parquet_group_nbytes: int = 32 << 20  # a row group is in memory until it is written
    parquet_batch_nbytes: int = 4 << 20

    # Whole datasets.
    results_nbytes: int = 64 << 20  # results of threads that wait for the pass to take them
    queue_nbytes: int = 64 << 20  # output that waits for the thread that writes it
    chunk_records: int = 32768  # records per step of statistics: their columns stay in the cache
    probed_records: int = 32  # per chunk, to guess the meaning of features
    max_features: int = 20_000  # more are refused: each name takes memory, and every record may have a new one
    max_findings: int = 10_000  # per kind; a report must not be larger than the dataset
    compared_records: int = 1 << 18  # whose hashes are compared at a time
    max_neighbours: int = 4096  # images that an image is compared with, among those that share a part of its hash
    min_shuffle_nbytes: int = 64_000_000  # less memory is refused
    max_buckets: int = 512  # of a shuffle
    max_named_inputs: int = 10_000_000  # of an earlier build, read to name what changed: 200 bytes each
    gathered_nbytes: int = 256 << 20  # of a query, from the workers of a cluster to one machine; more is refused
    run_stretch_nbytes: int = 1 << 20  # of a bucket in a run of a shuffle on a cluster: longer than a seek takes
    large_record_nbytes: int = 32 << 10  # above this size random reads are about as fast as sequential ones


LIMITS = Limits()
