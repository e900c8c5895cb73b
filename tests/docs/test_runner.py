"""The runner of pages: what it finds, what it compares, what it writes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from runner.blocks import Block, Data, PageError, parse_page
from runner.compare import is_shown
from runner.drive import NOT_RUN, SHOWN_ONLY, find_print_comments, split_commands
from runner.run import find_pages, make_data, run_page

ROOT = Path(__file__).parents[2]

PAGE = """# A page

<!-- data: numbers 3 x.tfrecord -->

```console
$ tfr count x.tfrecord | tail -1
      3  x.tfrecord
$ tfr verify x.tfrecord
ok, 3 records
$ tfr verify missing.tfrecord  # exit 3
tfr: cannot open, no such file or directory - at ...
...
```

```python
x = 20 + 1
print(x)  # 21
```

```python
print("a")
print(x)
```

```text
a
21
```
"""


def run(text: str, folder: Path) -> list[tuple[int, str]]:
    page = folder / "page.md"
    page.write_text(text, encoding="utf-8")
    return run_page(page).failures


def test_true_page_passes(tmp_path: Path) -> None:
    assert run(PAGE, tmp_path) == []


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("ok, 3", "ok, 4", 8, "the output differs"),
        ("\n      3  x.tfrecord\n", "\n", 6, "the output differs"),
        ("tfr verify x", "tfr verfiy x", 8, "exit code 2, expected 0"),
        ("# exit 3", "", 10, "exit code 3, expected 0"),
        ("# 21", "# 22", 17, "the page shows '22', printed was '21'"),
        ("20 + 1", "20 +", 15, "SyntaxError"),
        ("a\n21\n", "a\n2l\n", 25, "the output differs"),
        ("```text\na\n21\n```\n", "", 20, "does not show what is printed"),
        ("```python\nx", "```ruby\nx", 15, "kind 'ruby' is not run"),
        ("x.tfrecord -->", "y.tfrecord -->", 6, "the output differs"),
    ],
)
def test_page_that_is_not_true_fails_with_its_line(old: str, new: str, line: int, what: str, tmp_path: Path) -> None:
    assert PAGE.count(old) >= 1
    failures = run(PAGE.replace(old, new, 1), tmp_path)
    assert failures[0][0] == line
    assert what in failures[0][1]


def test_update_writes_what_was_printed(tmp_path: Path) -> None:
    wrong = PAGE.replace("ok, 3 records\n", "").replace("# 21", "# ?").replace("a\n21\n", "b\n")
    page = tmp_path / "page.md"
    page.write_text(wrong, encoding="utf-8")
    assert run_page(page).updated == PAGE


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a\nb", "a\nb", True),
        ("a\nb", "a\nc", False),
        ("a\n...\nz", "a\nb\nc\nz", True),
        ("a\n...\nz", "a\nb\nc\ny", False),
        ("a ... z", "a b z", True),
        ("a ... z", "a b\nz", False),
        ("took 0.3 s", "took 12.7 s", True),
        ("took 0.3 s", "took 0.3 m", False),
        ("5 items/s", "1,250 items/s", True),
        ("", "", True),
        ("", "x", False),
    ],
)
def test_outputs_are_equal_but_for_what_is_declared(shown: str, printed: str, same: bool) -> None:
    assert is_shown(shown, printed) is same


def test_marks_belong_to_the_next_block() -> None:
    steps = parse_page("<!-- file: a.py -->\n```python\nx\n```\n\n```text\ny\n```\n\n<!-- data: s3 b -->\n")
    assert steps == [
        Block("python", 2, "x\n", {"file": "a.py"}),
        Block("text", 6, "y\n", {}, follows=True),
        Data(10, ["s3", "b"]),
    ]


@pytest.mark.parametrize("text", ["```python\nx\n", "  ```python\nx\n```\n", "<!-- not run: gpu -->\ntext\n"])
def test_page_that_cannot_be_read_is_refused(text: str) -> None:
    with pytest.raises(PageError, match=r"^page:\d+: "):
        parse_page(text)


def test_commands_may_have_several_lines() -> None:
    block = Block("console", 1, "$ a \\\n    b\nout\n$ c\n")
    assert split_commands(block) == [(2, "a \\\n    b", ["out"]), (5, "c", [])]


def test_only_prints_at_the_top_level_show_their_output() -> None:
    assert find_print_comments('print(1)  # 1\nif x:\n    print(2)  # a note\nprint("# no")\n') == {1: "1"}


def test_lists_of_what_is_not_run_are_short_and_used() -> None:
    pages = [parse_page((ROOT / page).read_text(encoding="utf-8"), page) for page in find_pages()]
    blocks = [step for steps in pages for step in steps if isinstance(step, Block)]
    assert len(SHOWN_ONLY) <= 5
    assert len(NOT_RUN) <= 5
    assert {block.kind for block in blocks} - {"python", "console"} <= SHOWN_ONLY.keys()
    assert {block.marks["not run"] for block in blocks if "not run" in block.marks} == NOT_RUN.keys()


def test_page_that_takes_too_long_is_named_and_its_commands_end(tmp_path: Path) -> None:
    page, pid = tmp_path / "page.md", tmp_path / "pid"
    page.write_text(f"# x\n\n```console\n$ echo $$ >{pid}; exec sleep 600\n```\n", encoding="utf-8")
    seconds = 1
    while not (pid.exists() and pid.read_text()):  # a slow machine has not started the command yet
        assert run_page(page, timeout=seconds).failures == [(1, f"the page was not done after {seconds} s")]
        seconds *= 2
    for _ in range(1000):
        if not is_running(int(pid.read_text())):
            break
        time.sleep(0.01)
    else:
        pytest.fail("the command still runs")


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_readers_can_make_what_a_page_starts_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_data(ROOT / "docs" / "learn" / "photos.md")
    assert sorted(path.name for path in (tmp_path / "photos").iterdir()) == ["daisy", "rose", "tulip"]
