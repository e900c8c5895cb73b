from __future__ import annotations

import gzip
import io
import lzma
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest

from tfrkit.container.deflate import Deflater
from tfrkit.container.identify import describe_foreign, suggest_remedy
from tfrkit.testing import reference

LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"5" * 64 + b"\nsize 3493730\n"


def make_tar() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        member = tarfile.TarInfo("000.cls")
        member.size = 1
        archive.addfile(member, io.BytesIO(b"7"))
    return out.getvalue()


def make_zip(name: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name, b"abc")
    return out.getvalue()


def make_npy() -> bytes:
    out = io.BytesIO()
    np.save(out, np.arange(3))
    return out.getvalue()


def make_bagz(records: list[bytes]) -> bytes:
    ends = np.cumsum([len(record) for record in records]).astype("<u8")
    return b"".join(records) + ends.tobytes()


def make_checkpoint_data(graph: bytes) -> bytes:
    length = len(graph)
    checksum = reference.masked_crc32c(struct.pack("<I", length))
    return bytes([length & 0x7F | 0x80, length >> 7]) + struct.pack("<I", checksum) + graph


def make_zstd(data: bytes) -> bytes:
    deflater = Deflater("zstd")
    return deflater.write(data) + deflater.finish()


CASES: list[tuple[bytes, str]] = [
    (b"", "an empty file"),
    (LFS_POINTER, "a Git LFS pointer to 3,493,730 bytes that were not downloaded"),
    (b"<!DOCTYPE html>\n<html><body>404", "an HTML page"),
    (b"\n  <html lang='en'>", "an HTML page"),
    (b"\xef\xbb\xbf<?xml version='1.0'?>", "an XML document"),
    (b"<annotation>\n <folder>", "an XML document"),
    (b'{"features": {}}', "a JSON document"),
    (b'[\n  {"a": 1}\n]', "a JSON document"),
    (b"[1, 2, 3]", "a JSON document"),
    (b"{}", "a JSON document"),
    (bytes.fromhex("83af70d10d884a3f") + bytes(56), "an ArrayRecord (Riegeli) file"),
    (make_bagz([b"first", b"", b"second"]), "a Bagz file"),
    (b"PAR1" + bytes(20), "a Parquet file"),
    (b"ARROW1\0\0" + bytes(20), "an Arrow IPC file"),
    (make_tar(), "a tar archive (WebDataset?)"),
    (make_zip("a.txt"), "a zip archive"),
    (make_zip("a.npy"), "a NumPy archive (npz)"),
    (b"\x89HDF\r\n\x1a\n" + bytes(20), "an HDF5 file"),
    (make_npy(), "a NumPy array file (npy)"),
    (b"SQLite format 3\0" + bytes(84), "a SQLite database"),
    (b"\x89PNG\r\n\x1a\n" + bytes(20), "a PNG image"),
    (b"\xff\xd8\xff\xe0" + bytes(20), "a JPEG image"),
    (b"RIFF\x24\0\0\0WEBPVP8 ", "a WebP image"),
    (
        bytes(40) + bytes.fromhex("57fb808b247547db"),
        "a LevelDB table (SSTable), as TensorFlow checkpoints use for their",
    ),
    (b"BS\1\0\1\0\0\0\x1f\x8b", "a Yggdrasil (YDF) blob sequence"),
    (make_checkpoint_data(b"\n\x54" * 100), "the data file of a TensorFlow checkpoint"),
    (bytes(16) + bytes.fromhex("dec0efbe") + bytes(4000), "an LMDB database"),
    (struct.pack("<I", 0xCED7230A) + bytes(20), "an MXNet RecordIO file"),
    (b"\x80\x04\x95\x10\0\0\0\0\0\0\0", "a Python pickle"),
    (b"TFRKIDX\n" + bytes(88), "a tfrkit index"),
    (b"0 20\n20 16\n", "a DALI index"),
    (b"label,text\n1,a\n", "a text file"),
    ("Grüße, 数据\n".encode(), "a text file"),
    (gzip.compress(make_tar()), "a gzip of a tar archive (WebDataset?)"),
    (gzip.compress(b'{"a": 1}'), "a gzip of a JSON document"),
    (gzip.compress(gzip.compress(b"hello there")), "a gzip of a gzip of a text file"),
    (lzma.compress(b"PAR1" + bytes(20)), "an xz file of a Parquet file"),
    (make_zstd(b"<html>"), "a zstd file of an HTML page"),
    (zlib.compress(b"hello there"), "a zlib stream of a text file"),
]


@pytest.mark.parametrize(("data", "words"), CASES, ids=[words[:40] for _, words in CASES])
def test_foreign_file_is_named(data: bytes, words: str) -> None:
    found = describe_foreign(data[:4096], len(data), tail=data[-4096:])
    assert found is not None
    assert found.startswith(words)


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a\x10\x0a\x0e" + bytes(40),
        bytes(range(256)),
        b"\x1f\x8b",
        gzip.compress(bytes(range(256))),
        gzip.compress(b""),
        b"\x78\x9c" + bytes(20),
        b"\xff\xfe\xfd",
        b"text with a \0 in it",
    ],
    ids=range(8),
)
def test_unknown_bytes_have_no_name(data: bytes) -> None:
    assert describe_foreign(data, len(data), tail=data) is None


def test_shard_with_a_damaged_header_has_no_name() -> None:
    shard = reference.write_frames([b"some text, then more text " * 3, b"", bytes(range(256))])
    for offset in range(12):
        damaged = bytearray(shard)
        damaged[offset] ^= 0x11
        assert describe_foreign(bytes(damaged), len(damaged), tail=bytes(damaged)) is None


def test_every_prefix_of_every_case_is_taken() -> None:
    for data, _ in CASES:
        for nbytes in range(min(len(data), 300)):
            describe_foreign(data[:nbytes], None)
            describe_foreign(data[:nbytes], nbytes)


def test_layers_of_compression_end() -> None:
    data = b"hello there"
    for _ in range(10):
        data = gzip.compress(data)
    assert describe_foreign(data, len(data)) is None


def test_head_that_ends_inside_a_character_is_text() -> None:
    text = ("数据" * 2000).encode()
    for nbytes in (4093, 4094, 4095, 4096):
        assert describe_foreign(text[:nbytes], len(text)) == "a text file"


def test_lfs_pointer_has_a_remedy() -> None:
    assert suggest_remedy(LFS_POINTER) == "fetch the data: git lfs pull"
    assert suggest_remedy(b"{}") is None


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("NVIDIA+DALI_extra/db/coco_dummy/small_coco.tfrecord", "a Git LFS pointer to 3,493,730 bytes"),
        ("google+grain/@4e369392/_src/tensorflow/ops/testdata/alphabet.bag-00000-of-00002", "a Bagz file"),
        (
            "google+yggdrasil-decision-forests/yggdrasil_decision_forests/test_data/model/"
            "iris_multi_class_rf_nwta_small/nodes-00000-of-00001",
            "a Yggdrasil (YDF) blob sequence",
        ),
        (
            "tensorflow+tfx/tfx/benchmarks/datasets/chicago_taxi/model/tft_tf2_saved_model/variables/"
            "variables.data-00000-of-00001",
            "the data file of a TensorFlow checkpoint",
        ),
        ("tensorflow+datasets/tensorflow_datasets/testing/test_data/6pixels.png", "a PNG image"),
    ],
)
def test_decoys_of_the_corpus_are_named(corpus: Path, path: str, words: str) -> None:
    data = (corpus / path).read_bytes()
    found = describe_foreign(data[:4096], len(data))
    assert found is not None
    assert found.startswith(words)
