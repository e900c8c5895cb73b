from __future__ import annotations

import pytest

import tfrkit as tfr
from tfrkit.errors import SourceError
from tfrkit.images.encode import ImageOptions
from tfrkit.sources.class_folders import ClassFolders

NAMES = ["cat/1.png", "cat/deep/2.png", "dog/1.png"]


def scan(source, tmp_path):
    return source.scan(str(tmp_path))


def test_class_is_the_first_folder_and_ids_follow_sorted_names(make_images, tmp_path):
    found = scan(ClassFolders(make_images(NAMES)), tmp_path)
    assert [found.items.key(i) for i in range(3)] == ["cat/1.png", "cat/deep/2.png", "dog/1.png"]
    assert found.items.labels.tolist() == [0, 0, 1]
    assert found.label_files == {"classes.txt": "0:cat\n1:dog\n"}
    assert found.counts == {"class": {"cat": 2, "dog": 1}}
    assert found.problems == []


def test_row_has_the_features_slim_readers_expect(make_images, tmp_path):
    root = make_images(NAMES)
    found = scan(ClassFolders(root), tmp_path)
    row = found.reader.read(found.items.item(2))
    assert row == {
        "image/encoded": (root / "dog/1.png").read_bytes(),
        "image/format": "png",
        "image/height": 6,
        "image/width": 8,
        "image/channels": 3,
        "image/filename": b"dog/1.png",
        "image/class/label": 1,
        "image/class/text": b"dog",
    }
    assert set(found.schema.names) == set(row)


def test_schema_knows_classes_and_after_reading_the_images(make_images, tmp_path):
    found = scan(ClassFolders(make_images(NAMES)), tmp_path)
    for number in range(3):
        found.reader.read(found.items.item(number))
    schema = found.schema_after(found.reader.take_facts())
    assert schema["image/class/label"].classes == ("cat", "dog")
    assert schema["image/encoded"].format == "png"
    assert schema["image/encoded"].decoded_shape == (6, 8, 3)


def test_empty_folder_is_a_class_so_that_ids_do_not_shift_later(make_images, tmp_path):
    root = make_images(NAMES)
    (root / "bird").mkdir()
    found = scan(ClassFolders(root), tmp_path)
    assert found.label_files["classes.txt"] == "0:bird\n1:cat\n2:dog\n"
    assert "class 'bird' has no image" in found.notes


@pytest.mark.parametrize("out", ["out", "out/", "out/x.tfrecord", "sets/new/out"])
def test_output_below_the_classes_is_no_class_now_and_later(make_images, tmp_path, out):
    root = make_images(NAMES)
    (root / "empty").mkdir()
    for force in (False, True):
        tfr.build(ClassFolders(root), f"{root}/{out}", force=force)
        found = scan(ClassFolders(root), tmp_path)
        assert found.label_files["classes.txt"] == "0:cat\n1:dog\n2:empty\n"
    classes = next(root.rglob("*classes.txt")).read_text()
    assert classes == "0:cat\n1:dog\n2:empty\n"


def test_folder_with_a_link_to_itself_and_no_image_is_a_class(make_images, tmp_path):
    root = make_images(NAMES)
    (root / "loop").mkdir()
    (root / "loop" / "again").symlink_to(root / "loop")
    assert "2:loop" in scan(ClassFolders(root), tmp_path).label_files["classes.txt"]


def test_image_outside_the_class_folders_is_a_problem(make_images, tmp_path):
    found = scan(ClassFolders(make_images([*NAMES, "stray.png"])), tmp_path)
    assert [(p.key, p.reason) for p in found.problems] == [("stray.png", "image is not in a class folder")]
    assert found.items.size == 3


def test_images_without_any_class_folder_hint_at_the_folder_above(make_images, tmp_path, monkeypatch):
    make_images(["1.png"])
    monkeypatch.chdir(tmp_path)
    [problem] = scan(ClassFolders("in"), tmp_path).problems
    assert problem.hint == f"did you mean the folder above: {tmp_path}"


def test_class_outside_the_given_ones_blocks_and_names_every_file(make_images, tmp_path):
    found = scan(ClassFolders(make_images(NAMES), classes=["dog", "owl"]), tmp_path)
    assert [p.key for p in found.problems] == ["cat/1.png", "cat/deep/2.png"]
    assert all(p.blocking and "class 'cat' is not one of the 2" in p.reason for p in found.problems)
    assert found.label_files["classes.txt"] == "0:dog\n1:owl\n"


def test_offset_moves_ids_in_rows_and_label_file(make_images, tmp_path):
    found = scan(ClassFolders(make_images(NAMES), label_offset=1), tmp_path)
    assert found.reader.read(found.items.item(0))["image/class/label"] == 1
    assert found.label_files["classes.txt"] == "1:cat\n2:dog\n"


def test_folders_named_like_splits_are_not_taken_for_classes(make_images, tmp_path):
    root = make_images(["train/cat/1.png", "test/cat/2.png"])
    with pytest.raises(SourceError, match="class folders are named test, train, which are names of splits"):
        scan(ClassFolders(root), tmp_path)


def test_split_folders_give_splits_and_classes_below(make_images, tmp_path):
    root = make_images(["train/cat/1.png", "train/dog/2.png", "test/cat/3.png"])
    found = scan(ClassFolders(root, split_folders=True), tmp_path)
    assert found.items.split_names == ("test", "train")
    assert found.items.splits.tolist() == [0, 1, 1]
    assert found.reader.read(found.items.item(2))["image/class/text"] == b"dog"


def test_options_hold_everything_that_affects_the_output(make_images):
    root = make_images(NAMES)
    options = ClassFolders(root, images=ImageOptions(gray=True), classes="names.txt", label_offset=2).options()
    assert options["images"]["gray"] is True
    assert (options["classes"], options["label_offset"]) == ("names.txt", 2)


def test_missing_folder_raises(tmp_path):
    with pytest.raises(SourceError, match="no such folder, expected one of class folders with images"):
        scan(ClassFolders(tmp_path / "nowhere"), tmp_path)
