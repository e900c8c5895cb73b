"""From a folder of captchas to batches for training, and back from damage. Run it with `make demo`.

A few hundred captchas are drawn here, so nothing is downloaded. Everything is in `demo/` afterwards. Each line that
says that something holds was checked just before; where anything does not hold, the demo stops with an error.

    python examples/demo.py [NUMBER OF IMAGES]
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import shutil
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from make_captchas import CHARACTERS, HEIGHT, WIDTH, make_captchas
from PIL import Image

import tfrkit as tfr

FOLDER = Path("demo")
IMAGES, CAPTCHA, AGAIN = FOLDER / "images", FOLDER / "captcha", FOLDER / "again"
SHEET, STATE = FOLDER / "sheet.png", FOLDER / "state.json"
DAMAGED, REPAIRED, DAMAGE_SHEET = FOLDER / "damaged.tfrecord", FOLDER / "repaired.tfrecord", FOLDER / "damaged.png"
MADE = (IMAGES, CAPTCHA, AGAIN, SHEET, STATE, DAMAGED, REPAIRED, DAMAGE_SHEET)

BATCH = 8


def main(count: int) -> None:
    started = time.monotonic()
    remove_old()
    texts = draw_images(count)
    build(texts)
    verify(count)
    show(texts)
    read_back(texts)
    shuffle_and_batch(count)
    resume()
    damage_and_repair()
    print(
        f"\nDone in {time.monotonic() - started:.1f} s. Look at {SHEET} and {DAMAGE_SHEET}; all files are in {FOLDER}/."
    )


def remove_old() -> None:
    for path in MADE:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


# --- writing


def draw_images(count: int) -> dict[str, str]:
    title(f"Draw {count} captchas: 5 letters and digits each, lines and noise over them")
    paths = make_captchas(IMAGES, count, seed=0)
    with Image.open(paths[0]) as first:
        expect(first.size == (WIDTH, HEIGHT), f"{paths[0]} is {first.size}")
    expect(len(list(IMAGES.iterdir())) == count, f"{IMAGES} has {len(list(IMAGES.iterdir()))} files")
    print(f"{IMAGES}: {count} PNG of {WIDTH}x{HEIGHT}, such as {paths[0].name}")
    return {path.name: path.name[:5] for path in paths}


def build(texts: dict[str, str]) -> None:
    title("Build: the characters of each file name become 5 labels, images become gray 224x224, some go to test")
    num_test = len(texts) // 5
    options = ["--label", "^(?P<text>[0-9A-Za-z]{5})", "--gray", "--resize", "224x224"]
    options += ["--split", f"test={num_test}", "--shards", 2, "--seed", 0]
    run("build", "file-names", IMAGES, "-o", CAPTCHA, *options)
    report = json.loads((CAPTCHA / "report.json").read_text())
    expect((report["written"], report["skipped"]) == (len(texts), 0), f"the report says {report}")
    sizes = {split: part["records"] for split, part in report["splits"].items()}
    expect(sizes == {"train": len(texts) - num_test, "test": num_test}, f"splits are {sizes}")
    shards = list_shards(CAPTCHA)
    expect(len(shards) == 4, f"shards are {shards}")
    print(f"\n{sizes['train']} for training, {num_test} for test, 2 files each; no image was left out.")

    run("build", "file-names", IMAGES, "-o", AGAIN, *options, "--jobs", 1, "--progress", "none", quiet=True)
    digests = [[hash_file(path) for path in list_shards(folder)] for folder in (CAPTCHA, AGAIN)]
    expect(digests[0] == digests[1], "a second build gave other bytes")
    print("Built again, with one process: every byte of the 4 files is the same.")


def verify(count: int) -> None:
    title("Verify: both checksums of every record")
    output = run("verify", CAPTCHA)
    expect(output.strip() == f"ok, {count} records", f"verify says {output!r}")


def show(texts: dict[str, str]) -> None:
    title("Look at what was stored")
    said = run("sheet", CAPTCHA, "-o", SHEET)
    drawn = hash_file(SHEET)
    shown = json.loads(run("sheet", CAPTCHA, "-o", SHEET, "--force", "--format", "json", quiet=True))
    expect(hash_file(SHEET) == drawn, "a second sheet differs")
    labels = [tile["label"] for tile in shown["tiles"]]
    expect(said.startswith(f"{SHEET}: {len(labels)} of {len(texts)} records"), f"it says {said!r}")
    expect(shown["findings"] == [], f"findings are {shown['findings']}")
    expect(len(labels) == min(36, len(texts)) and set(labels) <= set(texts.values()), f"labels are {labels}")
    with Image.open(SHEET) as image:
        expect(image.size == (shown["width"], shown["height"]), f"{SHEET} is {image.size}")
        expect(len(image.getcolors(1 << 24) or []) > 100, f"{SHEET} is empty")
    print(f"\n{len(labels)} images with their labels: {', '.join(labels[:6])}, ...")


# --- reading


def read_back(texts: dict[str, str]) -> None:
    title("Read it back, in Python")
    ds = tfr.open(str(CAPTCHA))
    train, test = ds["train"], ds["test"]
    names = [[row["filename"].decode() for row in part] for part in (train, test)]
    expect(set(names[0]).isdisjoint(names[1]), "an image is in train and in test")
    expect(sorted(names[0] + names[1]) == sorted(texts), "not every image is there once")
    say_code(f'ds = tfr.open("{CAPTCHA}"); ds.splits', ds.splits)
    say_code(
        'row = ds["test"][0]; row["label/text"], row["image"].shape', (test[0]["label/text"], test[0]["image"].shape)
    )
    worst = max(compare_row(row) for row in ds)
    expect(worst <= 1, f"a pixel differs by {worst}")
    print(f"Every image is in one split, once. All {len(ds)} have their text, its 5 labels, and the pixels that")
    print("Pillow gives for the file, to within one gray level.")


def compare_row(row: dict[str, Any]) -> int:
    """How far the pixels of a row are from those of its file; its labels must be those of its name."""
    name = row["filename"].decode()
    expect(row["label/text"].decode() == name[:5], f"{name} has the text {row['label/text']}")
    spelled = "".join(sorted(CHARACTERS)[row[f"label{place}"]] for place in range(5))
    expect(spelled == name[:5], f"{name} has the labels of {spelled}")
    with Image.open(IMAGES / name) as image:
        wanted = np.asarray(image.convert("RGB").resize((224, 224), Image.Resampling.BICUBIC).convert("L"), np.int16)
    return int(np.abs(row["image"][:, :, 0] - wanted).max())


def shuffle_and_batch(count: int) -> None:
    title("Split once more while reading, shuffle, batch")
    ds = tfr.open(str(CAPTCHA))
    train, val = ds["train"].split({"train": 0.9, "val": 0.1}, seed=0)
    num_train = count - count // 5
    expect(len(train) + len(val) == num_train, f"parts are {len(train)} and {len(val)}")
    parts = [{row["filename"] for row in part.select(["filename"])} for part in (train, val)]
    expect(parts[0].isdisjoint(parts[1]) and len(parts[0] | parts[1]) == num_train, "the parts overlap")
    say_code(
        'train, val = ds["train"].split({"train": 0.9, "val": 0.1}, seed=0); len(train), len(val)',
        (len(train), len(val)),
    )

    plain, once, twice, other = (
        read_names(part) for part in (train, train.shuffle(1), train.shuffle(1), train.shuffle(2))
    )
    expect(once == twice != other and plain != once, "shuffles are not what they should be")
    expect(sorted(plain) == sorted(once) == sorted(other), "a shuffle lost rows")
    print("Shuffled: all rows are there, in an order that the seed alone decides.")

    batches = train.shuffle(seed=1).decode(**{"label/text": "text"}).batch(BATCH)
    batch = next(iter(batches))
    expect(batch["image"].shape == (BATCH, 224, 224, 1) and batch["image"].dtype == np.uint8, "images are wrong")
    expect(batch["label/ids"].shape == (BATCH, 5), "labels are wrong")
    decoded = [str(text) for text in batch["label/text"]]
    expect(decoded == [name[:5] for name in once[:BATCH]], f"the batch has {decoded}")
    say_code(
        f"batch = next(iter(train.shuffle(seed=1).batch({BATCH}))); batch['image'].shape, batch['label/ids'].shape",
        (batch["image"].shape, batch["label/ids"].shape),
    )
    expect(sum(len(batch["image"]) for batch in batches) == len(train), "an epoch is not whole")
    print(f"An epoch is {len(batches)} batches, every row once.")


def resume() -> None:
    title("Stop in the middle of an epoch, go on elsewhere")

    def start() -> Any:
        return iter(tfr.open(str(CAPTCHA))["train"].shuffle(seed=1).select(["filename"]).batch(BATCH))

    first = start()
    seen = [next(first)["filename"][0] for _ in range(2)]
    STATE.write_text(json.dumps(first.state_dict()))
    rest = [list(batch["filename"]) for batch in first]
    second = start()
    second.load_state_dict(json.loads(STATE.read_text()))
    again = [list(batch["filename"]) for batch in second]
    expect(len(rest) > 0 and rest == again, "the second run goes on elsewhere")
    expect(not set(seen) & {name for names in again for name in names}, "rows come twice")
    size = STATE.stat().st_size
    print(f"{STATE} ({size} bytes) was saved after 2 of the {2 + len(rest)} batches of all training rows.")
    print(f"A new iterator that loads it gives the other {len(rest)}, the same rows in the same order.")


# --- damage


def damage_and_repair() -> None:
    title("Damage a copy of a file: a byte of an image, a byte of a length, and the end cut off")
    source = list_shards(CAPTCHA)[-1]
    records = list(tfr.open(str(source)).records())
    data = bytearray(source.read_bytes())
    starts = find_frames(data)
    hit, lost, last = 3, len(records) // 2, len(records) - 1
    data[starts[hit] + 12 + 2000] ^= 0x01
    data[starts[lost] + 1] ^= 0x40
    DAMAGED.write_bytes(data[:-100])
    *lines, verdict = run("verify", DAMAGED, code=1).splitlines()
    expect(verdict == f"3 findings, {len(records) - 3} records readable", f"verify says {verdict!r}")
    found = [line for line in lines if line.startswith(f"{DAMAGED}, ")]
    for line, number in zip(found, (hit, lost, last), strict=True):
        expect(re.search(rf", bytes? {starts[number]}[: ]", line) is not None, f"{line} is not at record {number}")
    print("\nAll three places were found, each with its byte.")
    run("sheet", DAMAGED, "-o", DAMAGE_SHEET, "-n", 12, code=1)

    title("Repair: copy every record that is whole")
    run("repair", DAMAGED, "-o", REPAIRED, code=1)
    kept = [record for number, record in enumerate(records) if number not in (hit, lost, last)]
    expect(list(tfr.open(str(REPAIRED)).records()) == kept, "the repaired file holds other records")
    expect(run("verify", REPAIRED).strip() == f"ok, {len(kept)} records", "the repaired file is not sound")
    print(f"The other {len(kept)} of {len(records)} records are there, byte for byte.")


def find_frames(data: bytes | bytearray) -> list[int]:
    """Where each frame starts: a length of 8 bytes, its checksum of 4, the payload, its checksum of 4."""
    starts = [0]
    while starts[-1] < len(data):
        starts.append(starts[-1] + 8 + 4 + struct.unpack_from("<Q", data, starts[-1])[0] + 4)
    return starts[:-1]


# --- telling


def list_shards(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.tfrecord-*"))


def hash_file(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def read_names(part: tfr.Dataset) -> list[str]:
    return [row["filename"].decode() for row in part.select(["filename"])]


def run(*arguments: object, code: int = 0, quiet: bool = False) -> str:
    """Run the real command, show it and its output; any other exit code than expected ends the demo."""
    command = shutil.which("tfr", path=str(Path(sys.executable).parent)) or "tfr"
    words = [str(argument) for argument in arguments]
    if not quiet:
        print(f"$ tfr {shlex.join(words)}", flush=True)
    done = subprocess.run([command, *words], check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if not quiet:
        print(done.stdout, end="", flush=True)
    expect(done.returncode == code, f"exit code {done.returncode}, expected {code}: {done.stdout}")
    return done.stdout


def say_code(code: str, value: object) -> None:
    print(f">>> {code}\n{value}")


def expect(is_true: bool, message: str) -> None:
    if not is_true:
        sys.exit(f"demo failed: {message}")


def title(text: str) -> None:
    print(f"\n== {text}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
