"""`make mutants`: a mutant changes something only while its switch is on; the sample, its tests and its table."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import mutants  # type: ignore[import-not-found]

SOURCE = """
def answer(a: int, b: int) -> object:
    found = []
    for number in range(3):
        if number == a:
            continue
        found.append(number - b)
    return found if a or not b else (a + b, True)
"""


def test_each_place_of_a_module_is_changed_by_its_switch_alone() -> None:
    counter = mutants.Mutate(SOURCE)
    counter.transform()
    chosen = {place: (place, mutants.Mutant("room", "module.py", place)) for place in range(len(counter.found))}
    tree = ast.fix_missing_locations(mutants.Mutate(SOURCE, chosen).transform())
    active = -1
    space = {"_is_mutant_on": lambda number: number == active}
    exec(compile(tree, "module.py", "exec"), space)

    def ask() -> list[object]:
        return [space["answer"](a, b) for a in (0, 1, 2) for b in (1, 0, 3)]

    plain: dict[str, object] = {}
    exec(SOURCE, plain)
    unchanged = ask()
    assert unchanged == [plain["answer"](a, b) for a in (0, 1, 2) for b in (1, 0, 3)]  # type: ignore[operator]
    for active in chosen:
        assert ask() != unchanged, chosen[active][1].change
    assert [mutant.change for _, mutant in chosen.values()] == [
        "for number in range( {3 -> 4} ):",
        "if {number == a -> not number == a} :",
        "if {number == a -> number != a} :",
        "{continue -> break}",
        "found.append( {number - b -> number + b} )",
        "return found if {a or not b -> not (a or not b)} else (a + b, True)",
        "return found if {a or not b -> a and (not b)} else (a + b, True)",
        "return found if a or {not b -> b} else (a + b, True)",
        "return found if a or not b else ( {a + b -> a - b} , True)",
        "return found if a or not b else (a + b, {True -> False} )",
    ]


def test_equivalent_changes_are_those_of_lines_that_are_there() -> None:
    for path, change in mutants.read_equivalent():
        before, _, rest = change.partition("{")
        source = (mutants.PACKAGE / path).read_text()
        assert any(line.strip().startswith(before.strip()) for line in source.splitlines()), (path, change)
        assert " -> " in rest


def test_sample_is_that_of_its_seed() -> None:
    assert mutants.choose_mutants("exchange", 5, 1) == mutants.choose_mutants("exchange", 5, 1)
    assert mutants.choose_mutants("exchange", 5, 1) != mutants.choose_mutants("exchange", 5, 2)


def test_sample_keeps_its_mutants_when_other_code_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "PACKAGE", tmp_path)
    (tmp_path / "room").mkdir()
    module = tmp_path / "room" / "module.py"

    def choose(source: str) -> set[str]:
        module.write_text(source)
        return {mutant.change for mutant in mutants.choose_mutants("room", 6, 1)}

    before = choose(SOURCE)
    assert len(before) == 6
    new = "def first(a: int) -> bool:\n    return a > 5\n"
    assert len(choose(new + SOURCE) & before) >= 6 - len(choose(new))  # new ones take the places of the last
    assert choose(SOURCE.replace("continue", "pass")) >= before - {"{continue -> break}"}


def test_equal_lines_are_separate_mutants(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutants, "PACKAGE", tmp_path)
    (tmp_path / "room").mkdir()
    (tmp_path / "room" / "module.py").write_text("a = 1\na = 1\n")
    assert sorted(mutant.line for mutant in mutants.choose_mutants("room", 2, 1)) == [1, 2]


def test_own_tests_come_first_then_the_fastest(tmp_path: Path) -> None:
    trial = mutants.Trial([], tmp_path, sys.stdout, is_verbose=False)
    tests = [f"tests/unit/a/test_{name}" for name in ("x.py::a", "y_more.py::b", "z.py::c")]
    trial.seconds = dict(zip(tests, [2.0, 3.0, 1.0], strict=True))
    mutant = mutants.Mutant("a", "a/y.py", 0)
    assert trial.choose_tests(mutant, {tests[0], tests[2]}) == [tests[2], tests[0], tests[1]]
    assert trial.choose_tests(mutant, {""}) == [tests[1], tests[2], tests[0]]  # an import


@pytest.mark.parametrize("verdict", ["unreached", "hangs", "survived"])
def test_table_counts_what_was_not_noticed(verdict: str) -> None:
    found = [mutants.Mutant("a", "a/y.py", place, verdict="failed") for place in range(9)]
    found += [
        mutants.Mutant("a", "a/y.py", 9, verdict=verdict),
        mutants.Mutant("a", "a/y.py", 10, verdict="equivalent"),
    ]
    assert list(mutants.format_table(found))[2] == "| a | 11 | 1 | 9 | 0 | 90 % |"
