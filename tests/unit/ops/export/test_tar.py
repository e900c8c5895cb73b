"""Our tar headers are those of tarfile, and so are the archives."""

from __future__ import annotations

import io
import tarfile

import pytest

from tfrkit.ops.export.tar import TarWriter, make_header

NAMES = ["a.txt", "a/b.c.jpg", "x" * 96 + ".png", "x" * 97 + ".png", "grüße.txt", "d/" * 120 + "x.bin", "\udcff.bin"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("nbytes", [0, 1, 511, 512, 8**11 - 1, 8**11])
def test_header_is_that_of_tarfile(name: str, nbytes: int) -> None:
    info = tarfile.TarInfo(name)
    info.size = nbytes
    assert make_header(name, nbytes) == info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def test_archive_is_that_of_tarfile() -> None:
    members = [
        (name, bytes([number]) * size)
        for number, (name, size) in enumerate(zip(NAMES, (0, 1, 511, 512, 513, 20_000, 9), strict=True))
    ]
    ours, theirs = io.BytesIO(), io.BytesIO()
    writer = TarWriter(ours)
    with tarfile.TarFile(fileobj=theirs, mode="w", format=tarfile.PAX_FORMAT, encoding="utf-8") as archive:
        for name, data in members:
            writer.add(name, data)
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    writer.close()
    assert ours.getvalue() == theirs.getvalue()
    assert writer.nbytes == len(ours.getvalue())


def test_empty_archive_is_that_of_tarfile() -> None:
    ours, theirs = io.BytesIO(), io.BytesIO()
    TarWriter(ours).close()
    tarfile.TarFile(fileobj=theirs, mode="w").close()
    assert ours.getvalue() == theirs.getvalue()
