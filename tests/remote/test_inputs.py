"""Inputs of builds on each server: the same records as from the local folder, and bad objects by their address."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from places import Place
from servers import FaultServer

from tfrkit.testing.commands import run_command

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the makers of tests/streets

from streets import make_pictures, make_tables
from streets.building import make_from_store
from streets.storages import STORAGES, Storage
from streets.test_store_inputs import MAKERS, made, read_built
from streets.truth import Made

# A web server does not list, so that it has no folders of images.
ELSEWHERE = [
    ("az-azurite", make_pictures.make_class_folders),
    ("az-azurite", make_tables.make_table_parquet),
    ("gs-fault", make_pictures.make_voc_seg),
    ("http-nginx", make_tables.make_table_csv),
    ("http-nginx", make_pictures.make_coco),
]


@pytest.mark.parametrize(("name", "make"), [*(("s3-moto", make) for make in MAKERS), *ELSEWHERE])
def test_build_from_each_server_equals_a_build_from_the_folder(
    make_place: Callable[[str], Place], tmp_path: Path, name: str, make: Callable[[Path, Storage], Made]
) -> None:
    place = make_place(name)

    def put(inputs: Path) -> tuple[str, list[str]]:
        place.put_folder(inputs)
        return place.address, place.words()

    make(made(tmp_path / "here"), STORAGES["folder_north"])
    make_from_store(make, made(tmp_path / "store"), STORAGES["folder_north"], put)
    assert read_built(tmp_path / "store", place.address) == read_built(tmp_path / "here", str(tmp_path / "here"))


def put_images(place: Place, folder: Path, number: int) -> None:
    for i in range(number):
        picture = make_pictures.encode(make_pictures.draw(i), "PNG")
        make_pictures.save(folder / f"{'ab'[i % 2]}/{i:03d} #%é.png", picture)
    place.put_folder(folder)


def build_here_and_there(place: Place, folder: Path, *words: str) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """Build from a local folder to disk, and from its copy on a server to the server; return the shards of both."""
    command = ["build", "class-folders", "--shards", "3", "--quiet", *words]
    assert run_command([*command, str(folder), "-o", str(folder.parent / "here/d")]).exit_code == 0
    ran = run_command([*command, place.address, "-o", f"{place.address}/out/d", *place.words()])
    assert (ran.exit_code, ran.stderr) == (0, "")
    here = {path.name: path.read_bytes() for path in (folder.parent / "here/d").glob("*.tfrecord*")}
    return here, {name: place.fetch(f"out/d/{name}") or b"" for name in here}


def test_workers_read_a_folder_of_objects_with_odd_names(make_place: Callable[[str], Place], tmp_path: Path) -> None:
    place = make_place("s3-moto")
    put_images(place, tmp_path / "in", 60)
    here, there = build_here_and_there(place, tmp_path / "in", "--jobs", "2")
    assert there == here


def test_faults_of_the_server_do_not_change_the_records(
    fault_server: FaultServer, make_place: Callable[[str], Place], tmp_path: Path
) -> None:
    place = make_place("s3-fault")
    put_images(place, tmp_path / "in", 80)
    fault_server.set_faults(slow_down=0.05, cut=0.05, only="^GET", seed=3)
    here, there = build_here_and_there(place, tmp_path / "in", "--jobs", "1")
    fault_server.set_faults()
    assert there == here


def test_folder_of_a_web_server_is_refused_in_one_sentence(make_place: Callable[[str], Place], tmp_path: Path) -> None:
    place = make_place("http-nginx")
    ran = run_command(["build", "class-folders", place.address, "-o", str(tmp_path / "out")])
    assert ran.exit_code == 3
    assert "expected a folder of class folders with images in a store that lists its objects" in ran.stderr
