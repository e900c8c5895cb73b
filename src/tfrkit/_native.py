"""The native core. Everything else imports it from here, so that there is one door."""

from __future__ import annotations

from tfrkit._core import (
    ColumnBuilder,
    Fault,
    FrameTable,
    Permutation,
    RowEncoder,
    Survey,
    check_frames,
    classify_record,
    crc32c,
    crc32c_variants,
    crc32c_with,
    find_next_frame,
    find_others,
    frame_records,
    index_frames,
    masked_crc32c,
    read_frame_at,
    read_frames,
    read_frames_at,
    read_strict_tensor,
)

__all__ = [
    "ColumnBuilder",
    "Fault",
    "FrameTable",
    "Permutation",
    "RowEncoder",
    "Survey",
    "check_frames",
    "classify_record",
    "crc32c",
    "crc32c_variants",
    "crc32c_with",
    "find_next_frame",
    "find_others",
    "frame_records",
    "index_frames",
    "masked_crc32c",
    "read_frame_at",
    "read_frames",
    "read_frames_at",
    "read_strict_tensor",
]
