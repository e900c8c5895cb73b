"""Make the bombs of this folder: small files that claim or inflate to far more than they should cost.

    python make_bombs.py

What each must give is in test_bombs.py of the folder above.
"""

from __future__ import annotations

import gzip
import io
import lzma
import struct
import zlib
from pathlib import Path

from PIL import Image

from tfrkit.container.codecs import find_codec
from tfrkit.testing.corruption import make_frame
from tfrkit.testing.reference import encode_example, write_frames

HERE = Path(__file__).parent
MEGABYTE = 1 << 20
SOUND = write_frames([b"abc"] * 3)


def pack(data: bytes) -> bytes:
    packer = find_codec("zstd").compress(3, fast=False)
    return packer.compress(data) + packer.flush()


def zip_zeros(start: bytes, num_megabytes: int, packer: object) -> bytes:
    """`start` and then zeros, without all of them in memory."""
    out = [packer.compress(start)]
    zeros = bytes(MEGABYTE)
    out += [packer.compress(zeros) for _ in range(num_megabytes)]
    return b"".join([*out, packer.flush()])


def image_record(data: bytes) -> bytes:
    return write_frames([encode_example({b"image": ("bytes", [data]), b"label": ("int64", [1])})])


def png(width: int, height: int, rows: bytes) -> bytes:
    """A PNG of one bit per pixel whose data is `rows`, already compressed."""

    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def jpeg(size: int) -> bytes:
    """A sound header of size x size and hardly any data."""
    out = io.BytesIO()
    Image.new("RGB", (16, 16)).save(out, "jpeg")
    data = bytearray(out.getvalue())
    at = data.index(b"\xff\xc0")
    data[at + 5 : at + 9] = struct.pack(">HH", size, size)
    return bytes(data)


def scans(count: int) -> bytes:
    """A progressive JPEG of 4000 x 4000 whose last scan comes again and again."""
    out = io.BytesIO()
    Image.new("L", (4000, 4000)).save(out, "jpeg", progressive=True)
    data = out.getvalue()
    start = data.rindex(b"\xff\xda")
    return data[:start] + data[start:-2] * count + data[-2:]


def gif(size: int) -> bytes:
    screen = struct.pack("<HHBBB", size, size, 0x80, 0, 0) + bytes(6)
    frame = b"," + struct.pack("<HHHHB", 0, 0, size, size, 0) + b"\x02\x02\x4c\x01\x00"
    return b"GIF89a" + screen + frame + b";"


def bmp(size: int) -> bytes:
    return (
        b"BM"
        + struct.pack("<IHHI", 54, 0, 0, 54)
        + struct.pack("<IiiHHIIiiII", 40, size, size, 1, 24, 0, 0, 0, 0, 0, 0)
    )


def tiff(size: int) -> bytes:
    tags = ((256, 4, 1, size), (257, 4, 1, size), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 1), (273, 4, 1, 8))
    more = ((277, 3, 1, 1), (278, 4, 1, size), (279, 4, 1, 8))
    entries = b"".join(struct.pack("<HHII", *tag) for tag in (*tags, *more))
    return b"II*\0" + struct.pack("<I", 16) + bytes(8) + struct.pack("<H", 9) + entries + bytes(4)


def webp(size: int) -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (size, size)).save(out, "webp", lossless=True, method=0, quality=0)
    return out.getvalue()


def avif(size: int) -> bytes:
    """A small AVIF whose box of the size lies."""
    out = io.BytesIO()
    Image.new("RGB", (16, 16)).save(out, "avif")
    data = bytearray(out.getvalue())
    at = data.index(b"ispe") + 8
    data[at : at + 8] = struct.pack(">II", size, size)
    return bytes(data)


def heif(size: int) -> bytes:
    """The same boxes under the name of HEIF, whose pixels nothing here can write."""
    return avif(size).replace(b"ftypavif", b"ftypheic", 1)


def zip_bits(megabytes: int) -> bytes:
    return zip_zeros(b"", megabytes, zlib.compressobj(9))


def lie(length: int) -> bytes:
    return SOUND + make_frame(b"", length=length)[:12]


MAKERS = {
    # A header of length zero has a checksum that is not zero: the first byte of zeros is damage.
    "zeros.tfrecord.gz": lambda: zip_zeros(SOUND, 64, zlib.compressobj(9, zlib.DEFLATED, 31)),
    "zeros.tfrecord.zlib": lambda: zip_zeros(SOUND, 64, zlib.compressobj(9)),
    "zeros.tfrecord.xz": lambda: zip_zeros(SOUND, 512, lzma.LZMACompressor(preset=1)),
    "zeros.tfrecord.zst": lambda: pack(SOUND) + pack(bytes(64 * MEGABYTE)) * 16,
    "empty_records.tfrecord.gz": lambda: gzip.compress(write_frames([b""]) * (1 << 20), mtime=0) * 2,
    "empty_records.tfrecord.zst": lambda: pack(write_frames([b""]) * (1 << 20)) * 4,
    "empty_records.tfrecord.zlib": lambda: zlib.compress(write_frames([b""]) * (1 << 20), 9),
    "empty_records.tfrecord.xz": lambda: lzma.compress(write_frames([b""]) * (1 << 20), preset=1),
    "length_1_tib.tfrecord.zlib": lambda: zlib.compress(lie(1 << 40) + bytes(16 * MEGABYTE)),
    "length_1_tib.tfrecord.xz": lambda: zip_zeros(lie(1 << 40), 512, lzma.LZMACompressor(preset=1)),
    "length_1_tib.tfrecord.gz": lambda: gzip.compress(lie(1 << 40) + bytes(16 * MEGABYTE), mtime=0),
    "length_1_tib.tfrecord.zst": lambda: pack(lie(1 << 40)) + pack(bytes(64 * MEGABYTE)) * 16,
    "length_1_gib.tfrecord.xz": lambda: zip_zeros(lie(1 << 30), 512, lzma.LZMACompressor(preset=1)),
    "png_of_400_million_pixels.tfrecord": lambda: image_record(png(20000, 20000, zip_bits(48))),
    "png_of_a_trillion_pixels.tfrecord": lambda: image_record(png(1 << 20, 1 << 20, zip_bits(1))),
    "jpeg_of_4_billion_pixels.tfrecord": lambda: image_record(jpeg(65500)),
    "jpeg_of_3000_scans.tfrecord.gz": lambda: gzip.compress(image_record(scans(3000)), mtime=0),
    "gif_of_4_billion_pixels.tfrecord": lambda: image_record(gif(65535)),
    "bmp_of_4_billion_pixels.tfrecord": lambda: image_record(bmp(65000)),
    "tiff_of_4_billion_pixels.tfrecord": lambda: image_record(tiff(65000)),
    "avif_of_4_billion_pixels.tfrecord": lambda: image_record(avif(65000)),
    "heif_of_4_billion_pixels.tfrecord": lambda: image_record(heif(65000)),
    "webp_of_268_million_pixels.tfrecord": lambda: image_record(webp(16383)),
}


def main() -> None:
    for name, make in MAKERS.items():
        (HERE / name).write_bytes(make())


if __name__ == "__main__":
    main()
