"""Make the forged files of this folder: each case lies over a copy of old/version_1/dataset.

    python make_forged.py

What each must give is in test_forged.py of the folder above. Checksums are right: only the content lies.
"""

from __future__ import annotations

import json
import shutil
import struct
import sys
from pathlib import Path

import numpy as np

from tfrkit.container.index import ShardIndex, fingerprint_shard, write_index
from tfrkit.storage.local import LocalReader
from tfrkit.testing.reference import encode_example, index_frames, write_frame, write_frames

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent.parent.parent / "trust"))
from surfaces import fix_index  # noqa: E402

DATASET = HERE.parent.parent / "old" / "version_1" / "dataset"
SHARD = "dataset-train.tfrecord-00000-of-00002"
HUGE = 1 << 62


def put(path: str, content: object) -> None:
    place = HERE / path
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content if isinstance(content, bytes) else (json.dumps(content, indent=1) + "\n").encode())


def load(name: str) -> dict[str, object]:
    return dict(json.loads((DATASET / name).read_text()))


def put_index(case: str, shard: Path, offsets: list[int]) -> None:
    """Write a sound index and put other offsets into it, with right checksums."""
    reader, nbytes = LocalReader(str(shard)), shard.stat().st_size
    sound = np.array(index_frames(shard.read_bytes()), np.uint64)
    path = HERE / case / "_index" / f"{shard.name}.tfidx"
    made = ShardIndex(len(sound), sound, "none", nbytes, None, nbytes, "example")
    write_index(str(path), made, fingerprint_shard(reader))
    (path.parent / ".lock").unlink()
    data = path.read_bytes()
    at = data.index(sound.tobytes())
    data = data[:at] + np.array(offsets, np.uint64).tobytes() + data[at + sound.nbytes :]
    path.write_bytes(fix_index(data[:40] + struct.pack("<Q", len(offsets)) + data[48:]))


def make_indexes() -> None:
    offsets = index_frames((DATASET / SHARD).read_bytes())
    put_index("index_in_another_order", DATASET / SHARD, offsets[::-1])
    put_index("index_of_one_record_again_and_again", DATASET / SHARD, [offsets[2]] * len(offsets))
    put_index("index_without_a_record", DATASET / SHARD, offsets[:3] + offsets[4:])
    put_index("index_past_the_end", DATASET / SHARD, [*offsets[:-1], HUGE])
    # A record whose value is a whole frame with right checksums: the index leads into it.
    inner = write_frame(encode_example({b"name": ("bytes", [b"forged"])}))
    rows = [encode_example({b"name": ("bytes", [text])}) for text in (b"first", inner, b"last")]
    data = write_frames(rows)
    put("index_into_a_payload/inside.tfrecord", data)
    starts = index_frames(data)
    put_index(
        "index_into_a_payload",
        HERE / "index_into_a_payload" / "inside.tfrecord",
        [starts[0], data.index(inner), starts[2]],
    )


def make_manifests() -> None:
    shards = load("tfrkit.json")["shards"]
    assert isinstance(shards, list)
    for case, name in (("above", "../secret.tfrecord"), ("absolute", "{root}/secret.tfrecord"), ("parent", "..")):
        put(f"manifest_leads_{case}/tfrkit.json", {**load("tfrkit.json"), "shards": [{**shards[0], "name": name}]})
    lies = [{**shard, "records": HUGE} for shard in shards]
    put("manifest_of_huge_counts/tfrkit.json", {**load("tfrkit.json"), "shards": lies})
    lies = [{**shard, "records": shard["records"] - 1} for shard in shards]
    put("manifest_of_fewer_records/tfrkit.json", {**load("tfrkit.json"), "shards": lies})
    put("manifest_too_deep/tfrkit.json", b"[" * 20_000)


def make_tfds() -> None:
    info = load("dataset_info.json")
    splits = info["splits"]
    assert isinstance(splits, list)
    for case, template in (("above", "../secret.tfrecord"), ("absolute", "{root}/secret.tfrecord")):
        changed = [{**split, "filepathTemplate": template} for split in splits]
        put(f"tfds_leads_{case}/dataset_info.json", {**info, "splits": changed})
    changed = [{**split, "name": "../../train", "shardLengths": ["7"]} for split in splits]
    put("tfds_split_leads_above/dataset_info.json", {**info, "splits": changed})
    changed = [{**split, "shardLengths": [str(HUGE)] * 2} for split in splits]
    put("tfds_of_huge_lengths/dataset_info.json", {**info, "splits": changed})
    changed = [{**split, "shardLengths": ["1"] * 20_000} for split in splits[:1]]
    put("tfds_of_20000_shards/dataset_info.json", json.dumps({**info, "splits": changed}).encode())
    put(
        "tfds_names_code/features.json",
        {"pythonClassName": "os.system", "featuresDict": {"features": {"touch ran": {"pythonClassName": "os.system"}}}},
    )


def make_changes() -> None:
    for case, name, was_there in (
        ("replaces_above", "../precious", True),
        ("removes_above", "../precious", False),
        ("replaces_absolute", "{root}/precious", True),
    ):
        put(f"change_{case}/.tfrkit-change/journal.json", {"steps": [{"path": name, "was_there": was_there}]})
        put(f"change_{case}/.tfrkit-change/old/{0 if was_there else 1}", b"forged")


def make_builds() -> None:
    put("build_removes_above/_build/replaced.json", ["{root}/precious", "../precious", "../d/../precious"])
    put("build_removes_above/_build/plan.json", {"hash": "0" * 16, "shards": 1})
    put("build_plan_too_deep/_build/plan.json", b"[" * 20_000)


def make_states() -> None:
    state = json.loads((DATASET.parent / "state.json").read_text())
    for case, change in {
        "past_the_end": {"row": HUGE},
        "before_the_start": {"row": -1},
        "of_text": {"row": "4"},
        "of_another_dataset": {"dataset": "0" * 16},
        "of_a_huge_epoch": {"epoch": 1 << 70},
    }.items():
        put(f"states/{case}.json", {**state, **change})


def main() -> None:
    for path in HERE.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
    for make in (make_indexes, make_manifests, make_tfds, make_changes, make_builds, make_states):
        make()


if __name__ == "__main__":
    main()
