"""What people do with the viewer, against the real server and real files."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from datasets import HOSTILE, frame_starts

import tfrkit as tfr

RealView = Callable[..., Any]


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return list(tfr.open(str(folder)))  # type: ignore[arg-type]


def test_grid_shows_every_record_with_its_caption(real_view: RealView, datasets_folder: Path) -> None:
    view = real_view("scenes")
    assert view.open()["count"] == 96
    rows = rows_of(datasets_folder / "scenes")
    for number in (0, 5, 11):
        assert view.page.locator(f"#tile-{number} .tile-text").inner_text().strip() == str(rows[number]["label"])
    view.page.wait_for_selector(".figure")
    view.shot("grid")
    view.press("End", "grid", last=95)
    assert view.page.locator("#tile-95 canvas").count() == 1


def test_record_shows_features_picture_legend_and_bytes(real_view: RealView, datasets_folder: Path) -> None:
    view = real_view("scenes")
    view.open("record=2", "detail")
    row = rows_of(datasets_folder / "scenes")[2]
    names = view.page.locator(".feature").evaluate_all("list => list.map((one) => one.dataset.feature)")
    assert set(names) == set(row)
    assert row["image/filename"].decode() in view.page.locator("[data-feature='image/filename']").inner_text()
    legend = " ".join(view.texts(".legend-class"))
    assert all(name.decode() in legend for name in row["image/object/class/text"])
    view.shot("detail")
    view.page.locator(".detail-head button").first.focus()
    assert view.press("x", "hex")["fields"] > 10
    assert "features" in view.page.locator(".hex-fields").inner_text()
    assert view.state()["hex"] == "1"
    view.shot("bytes")


def test_record_is_saved_byte_for_byte(real_view: RealView, datasets_folder: Path) -> None:
    view = real_view("scenes")
    view.open("record=0", "detail")
    with view.page.expect_download() as saved:
        view.page.get_by_role("link", name="Record", exact=True).click()
    file = sorted((datasets_folder / "scenes").glob("*test*"))[0].read_bytes()
    payload = file[12 : frame_starts(file)[1] - 4]
    assert Path(saved.value.path()).read_bytes() == payload


def test_ticks_and_text_choose_the_records_of_sql(real_view: RealView, datasets_folder: Path) -> None:
    view = real_view("scenes")
    view.open()
    view.page.wait_for_selector("[data-key='label/2']")
    view.after(lambda: view.page.locator("[data-key='label/2']").check(), "selection")
    condition = view.state()["where"]
    wanted = [number for number, row in enumerate(rows_of(datasets_folder / "scenes")) if row["label"] == 3]
    assert condition == "label = 3"
    drawn = view.wait(0, what="grid", count=len(wanted))
    view.page.wait_for_function("() => !document.querySelector('.tile-wait:not([hidden])')")
    numbers = view.texts(".tile:not([hidden]) .tile-number")
    assert [int(text) for text in numbers] == wanted[: drawn["last"] + 1]
    assert f"{len(wanted)} of 96" in view.page.locator(".status").inner_text()


def test_search_sort_and_split_work_together(real_view: RealView, datasets_folder: Path) -> None:
    view = real_view("scenes")
    view.open()
    view.page.wait_for_selector(".figure")

    def search() -> None:
        view.page.get_by_placeholder("Search in text").fill("3 shapes")
        view.page.keyboard.press("Enter")

    view.after(search, "selection")
    view.after(lambda: view.page.locator("[data-key=split]").select_option("train"), "selection")
    view.after(lambda: view.page.locator("[data-key=sort]").select_option("brightness"), "selection")
    rows = list(enumerate(rows_of(datasets_folder / "scenes")))
    fitting = [
        (row["brightness"], number) for number, row in rows if b"3 shapes" in row["description"] and number >= 24
    ]
    wanted = [number for _, number in sorted(fitting)]
    view.page.locator("#tile-0:not(.tile-wait) .tile-number", has_text=str(wanted[0])).wait_for()
    view.page.wait_for_function("() => !document.querySelector('.tile-wait:not([hidden])')")
    shown = [int(text) for text in view.texts(".tile:not([hidden]) .tile-number")]
    assert shown == wanted[: len(shown)]
    assert view.state()["sort"] == "brightness"


def test_tag_then_filter_then_export_is_byte_for_byte(real_view: RealView, datasets_folder: Path) -> None:
    view = real_view("scenes")
    view.open()
    for key in ("Space", "ArrowRight", "ArrowRight", "Space"):
        view.page.keyboard.press(key)
    view.press("t", "dialog", name="tag")
    view.page.keyboard.type("hard")
    view.press("Enter", "tagged", name="hard", on=True)
    view.after(lambda: view.page.locator("[data-key=tag]").select_option("hard"), "selection")
    view.wait(0, what="grid", count=2)
    view.after(lambda: view.page.locator("[data-key=export]").click(), "dialog", name="export")
    view.page.get_by_role("textbox", name="Name").fill("chosen")
    done = view.after(lambda: view.page.locator("dialog .primary").click(), "exported")
    assert done["records"] == 2
    written = Path(done["path"]).read_bytes()
    file = sorted((datasets_folder / "scenes").glob("*test*"))[0].read_bytes()
    starts = frame_starts(file)
    assert written == file[starts[0] : starts[1]] + file[starts[2] : starts[3]]


def test_damage_is_a_red_tile_with_its_bytes(real_view: RealView) -> None:
    view = real_view("damaged")
    view.open()
    tile = view.page.locator(".tile-damage").first
    text = tile.inner_text()
    assert "payload checksum mismatch" in text
    assert "damaged.tfrecord" in text
    assert view.page.locator(".tile-damage").count() == 2
    assert view.page.locator(".tile-picture:not([hidden])").count() == 18
    view.shot("damage")
    view.after(tile.click, "hex")
    assert "checksum" in view.page.locator(".damage-note").inner_text()
    assert view.page.locator(".byte.is-bad").count() > 0
    assert view.violations() == []
    view.shot("damaged-record")
    view.press("Escape", "grid")
    view.press("d", "grid", count=2)
    assert view.state()["damaged"] == "1"


def test_records_without_pictures_are_cards_and_nothing_in_them_runs(real_view: RealView) -> None:
    view = real_view("mixed")
    dialogs: list[str] = []
    view.page.on("dialog", lambda one: (dialogs.append(one.message), one.dismiss()))
    view.open()
    assert "id" in view.page.locator("#tile-3 .card").inner_text()
    assert view.violations() == []
    view.shot("cards")
    for number, text in enumerate(HOSTILE):
        view.open(f"record={number}", "detail", record=number)
        shown = view.page.locator("[data-feature='text'] .text").inner_text()
        assert shown == text.replace("\u202e", "⟨202E⟩").replace("\u202c", "⟨202C⟩").replace("\u0007", "⟨0007⟩")
    assert view.page.locator("[data-feature='text'] .text *:not(bdi)").count() == 0
    assert dialogs == []
    assert view.page.locator("[data-feature='signal'] .spark").count() == 1
    assert view.page.locator("[data-feature='sound'] audio").count() == 1
    assert json.loads(view.page.locator("[data-feature='meta'] pre").inner_text())["number"] == 4


def test_frames_of_a_sequence_have_a_slider(real_view: RealView) -> None:
    view = real_view("sequences")
    view.open("record=1", "detail")
    slider = view.page.get_by_label("Frame of image")
    before = view.page.locator(".film").get_attribute("src")
    slider.fill("5")
    assert view.page.locator(".film").get_attribute("src") != before
    assert view.page.locator("output", has_text="5 / 7").count() == 1
    assert view.violations() == []


def test_a_guess_is_a_switch_that_stays_in_the_address(real_view: RealView) -> None:
    view = real_view("scenes")
    view.open()
    view.page.locator(".switches summary").click()
    drawn = view.after(lambda: view.page.locator("[data-key=label]").select_option("description"), "grid")
    assert drawn["count"] == 96
    view.page.wait_for_function("() => document.querySelector('#tile-0 .tile-text').textContent.includes('shapes')")
    assert view.state()["label"] == "description"
    view.after(lambda: view.page.locator("[data-key=image]").select_option("-"), "grid")
    view.page.wait_for_selector("#tile-0 .card")
    assert view.state()["image"] == "-"


def test_statistics_page_names_figures_splits_and_rare_classes(real_view: RealView) -> None:
    view = real_view("scenes")
    view.open("view=stats", "stats", is_exact=True)
    text = view.page.locator(".stats-page").inner_text()
    assert "96" in text
    assert "train 72" in text
    assert "Exact, from 96 records" in text
    assert "brightness" in text
    assert view.violations() == []
    view.shot("statistics")
    view.after(lambda: view.page.get_by_role("button", name="train", exact=True).click(), "selection")
    assert view.state()["split"] == "train"


def test_statistics_page_lists_damage_first_and_leads_to_it(real_view: RealView) -> None:
    view = real_view("damaged")
    view.open("view=stats", "stats", is_exact=True)
    assert view.texts(".alert.bad") == ["Damaged places, left out: 2"]
    places = view.page.locator(".finding-list button")
    assert places.count() == 2
    view.after(lambda: places.first.click(), "detail")
    assert view.page.locator(".damage-note").count() == 1


def test_copies_are_looked_for_on_request(real_view: RealView) -> None:
    view = real_view("copies")
    view.open("view=stats", "stats", is_exact=True)
    assert view.page.locator(".pair").count() == 0
    view.after(lambda: view.page.get_by_role("button", name="Look for copies").click(), "stats", deep="1")
    assert "Records in two splits: 2" in view.texts(".alert.bad")
    assert view.page.locator(".pair img").count() == 4
    assert view.violations() == []


def test_class_in_statistics_shows_its_records(real_view: RealView, datasets_folder: Path) -> None:
    view = real_view("scenes")
    view.open("view=stats", "stats", is_exact=True)
    rows = rows_of(datasets_folder / "scenes")
    wanted = [number for number, row in enumerate(rows) if b"triangle" in row["image/object/class/text"]]
    drawn = view.after(lambda: view.page.get_by_role("button", name="triangle").first.click(), "selection")
    assert drawn["count"] == len(wanted)
    assert view.state()["where"] == """list_contains("image/object/class/text", 'triangle')"""


def test_two_datasets_are_compared_row_by_row(real_view: RealView) -> None:
    view = real_view("mixed", "changed")
    assert view.open("view=compare", "compare")["total"] == 1
    row = view.page.locator("tfr-compare tbody tr")
    assert "constant" in row.inner_text()
    assert view.after(row.get_by_role("button").last.click, "detail")["record"] == 5
    assert view.state()["d"] == "1"


def test_dark_and_chinese_pages_are_kept_as_pictures(real_view: RealView) -> None:
    view = real_view("scenes")
    view.open("theme=dark", "grid")
    view.page.wait_for_selector(".figure")
    view.shot("dark")
    view.open("lang=zh", "grid")
    view.page.wait_for_selector(".figure")
    assert view.page.locator("html").get_attribute("lang") == "zh-CN"
    assert "条记录" in view.page.locator(".status").inner_text()
    view.shot("chinese")


def test_keyboard_alone_reaches_everything(real_view: RealView) -> None:
    view = real_view("scenes")
    view.open()
    view.press("?", "dialog", name="help")
    view.page.keyboard.press("Escape")
    view.page.wait_for_selector("dialog", state="detached")
    view.page.keyboard.press("/")
    view.page.keyboard.type("label = 2")
    view.press("Enter", "selection")
    view.page.keyboard.press("Escape")
    view.press("End", "grid")
    view.press("Enter", "detail")
    view.press("p", "detail")
    view.press("x", "hex")
    view.press("Escape", "grid")
    view.go_to(3)
    view.press("Enter", "detail", position=3)


def test_another_name_for_loopback_gets_nothing(chromium_with: Callable[..., Any], real_view: RealView) -> None:
    """A page elsewhere that points its own name at this machine (DNS rebinding) reads nothing."""
    view = real_view("scenes")
    port = view.url.split(":")[2].split("/")[0]
    browser = chromium_with("--host-resolver-rules=MAP evil.example 127.0.0.1")
    page = browser.new_page()
    for path in ("", "api/set", view.url.split("/", 3)[3]):
        answer = page.goto(f"http://evil.example:{port}/{path}")
        assert answer.status in (403, 421)
        assert "scenes" not in page.content()


def test_the_command_prints_an_address_that_shows_the_first_tiles(open_view: Any, datasets_folder: Path) -> None:
    command = [sys.executable, "-m", "tfrkit", "view", str(datasets_folder / "scenes"), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = next(line.strip() for line in process.stdout if line.startswith("http://127.0.0.1:"))
            view = open_view(address)
            assert view.open("record=3", "detail")["record"] == 3
            assert "token" not in view.page.url
        finally:
            process.terminate()
