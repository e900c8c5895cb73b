"""Write, read, inspect, verify, damage and recover a small dataset. Run it with `make demo`.

A hundred little pictures of digits are drawn here, so nothing is downloaded. Everything lies in `demo/`
afterwards. Ends with an error if anything is not as it should be.
"""

from __future__ import annotations

import io
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw

import tfrkit as tfr

FOLDER = Path("demo")
NUM_RECORDS = 100
NAMES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


def main() -> None:
    started = time.monotonic()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir()
    plain, packed, damaged = FOLDER / "digits.tfrecord", FOLDER / "digits.tfrecord.gz", FOLDER / "damaged.tfrecord"

    title("Write: rows of Python, NumPy and bytes, once plain and once as gzip")
    rows = [make_row(number) for number in range(NUM_RECORDS)]
    for path, compression in [(plain, "none"), (packed, "gzip")]:
        with tfr.Writer(str(path), compression=compression) as writer:
            for row in rows:
                writer.write(row)
        print(f"{path}: {NUM_RECORDS} records, {path.stat().st_size:,} bytes")

    title("Read: by number, in order, in batches; what went in comes out")
    for path in [plain, packed]:
        check_equal(path, rows)
        print(f"{path}: all {NUM_RECORDS} rows are equal to what was written")

    title("Inspect: no spec, no compression flag")
    run("info", packed)
    run("head", packed, "-n", "2")
    run("schema", plain, "--as", "tf")

    title("Verify")
    run("verify", plain, packed)

    title("Damage a copy: one byte of record 41's payload, one byte of record 70's length")
    data = bytearray(plain.read_bytes())
    starts = find_frames(data)
    data[starts[41] + 12 + 20] ^= 0x01
    data[starts[70] + 1] ^= 0x40
    damaged.write_bytes(data)
    run("verify", damaged, expected_code=1)

    title("Recover: damage is listed, everything else is read")
    dataset = tfr.open(str(damaged), on_error="skip")
    numbers = [row["number"] for row in dataset]
    expect(numbers == [n for n in range(NUM_RECORDS) if n not in (41, 70)], f"wrong rows survived: {numbers}")
    expect(len(dataset.errors) == 2, f"expected 2 errors, got {dataset.errors}")
    print(f"{damaged}: {len(numbers)} of {NUM_RECORDS} rows read, {len(dataset.errors)} damaged ones skipped:")
    for error in dataset.errors:
        print(f"  record {error.record}, byte {error.offset}: {error.cause}")

    print(f"\nDone in {time.monotonic() - started:.1f} s. The files are in {FOLDER}/.")


def make_row(number: int) -> dict[str, object]:
    digit = number % 10
    picture = Image.new("L", (28, 28), color=0)
    ImageDraw.Draw(picture).text((9 + number // 10 % 5, 8), str(digit), fill=255)
    png = io.BytesIO()
    picture.save(png, format="PNG")
    return {
        "number": number,
        "image": png.getvalue(),
        "pixels": np.asarray(picture),  # dtype and shape are kept
        "label": digit,
        "name": NAMES[digit],
        "strokes": np.arange(number % 4, dtype=np.int64),  # as many as there are, also none
    }


def check_equal(path: Path, rows: list[dict[str, object]]) -> None:
    dataset = tfr.open(str(path))
    expect(len(dataset) == len(rows), f"{path}: expected {len(rows)} records, got {len(dataset)}")
    for number in (0, 57, len(rows) - 1):
        expect(same_row(dataset[number], rows[number]), f"{path}: row {number} differs: {dataset[number]}")
    for number, row in enumerate(dataset):
        expect(same_row(row, rows[number]), f"{path}: row {number} differs: {row}")
    labels = np.concatenate([batch["label"] for batch in dataset.batch(32)])
    expect(labels.tolist() == [row["label"] for row in rows], f"{path}: labels differ: {labels}")


def same_row(found: dict[str, object], written: dict[str, object]) -> bool:
    wanted = {name: value.encode() if isinstance(value, str) else value for name, value in written.items()}
    return found.keys() == wanted.keys() and all(np.array_equal(found[name], wanted[name]) for name in wanted)


def find_frames(data: bytes | bytearray) -> list[int]:
    """Where each frame starts: a length of 8 bytes, its checksum of 4, the payload, its checksum of 4."""
    starts = [0]
    while starts[-1] < len(data):
        starts.append(starts[-1] + 8 + 4 + struct.unpack_from("<Q", data, starts[-1])[0] + 4)
    return starts


def run(*arguments: object, expected_code: int = 0) -> None:
    command = shutil.which("tfr", path=str(Path(sys.executable).parent)) or "tfr"
    words = [str(argument) for argument in arguments]
    print(f"$ tfr {' '.join(words)}", flush=True)
    code = subprocess.run([command, *words], check=False).returncode
    expect(code == expected_code, f"expected exit code {expected_code}, got {code}")
    print(flush=True)


def expect(is_true: bool, message: str) -> None:
    if not is_true:
        sys.exit(f"demo failed: {message}")


def title(text: str) -> None:
    print(f"\n== {text}", flush=True)


if __name__ == "__main__":
    main()
