from __future__ import annotations

from tfrkit.build.problem_groups import group_problems
from tfrkit.sources.base import Problem


def describe(problems):
    return [line for group in group_problems(problems) for line in group.describe()]


def test_few_problems_are_shown_one_by_one():
    assert describe([Problem("a", "x"), Problem("b", "x"), Problem("c", "y")]) == ["a: x", "b: x", "c: y"]


def test_line_breaks_in_names_do_not_begin_a_line():
    assert describe([Problem("a\nb.png", "x\ny")]) == ["a\\nb.png: x\\ny"]
    assert describe([Problem(f"{n}\n.png", "x") for n in range(5)]) == [
        "5 times: x - at 0\\n.png; 1\\n.png; 2\\n.png and 2 more"
    ]


def test_reasons_that_differ_in_numbers_are_one_line_with_the_first_reason():
    problems = [Problem(f"{n}.xml", f"box ({n}, -1.5, 1e+03) is outside, {n}x9") for n in range(12)]
    assert describe(problems) == [
        "12 times, the first: box (0, -1.5, 1e+03) is outside, 0x9 - at 0.xml; 1.xml; 2.xml and 9 more"
    ]


def test_different_reasons_are_not_grouped():
    problems = [Problem(str(n), f"class {name!r} is none") for n in range(4) for name in ("cat", "dog")]
    assert [line.partition(" - at ")[0] for line in describe(problems)] == [
        "4 times: class 'cat' is none",
        "4 times: class 'dog' is none",
    ]


def test_kind_names_all_of_them():
    problems = [Problem(f"{n}.xml", f"no image 'i{chr(97 + n)}.jpg'", kind="annotations lack images") for n in range(5)]
    assert describe(problems) == [
        "5 annotations lack images, the first: no image 'ia.jpg' - at 0.xml; 1.xml; 2.xml and 2 more"
    ]
    same = [
        Problem(str(n), "image is not in a class folder", kind="images are not in a class folder") for n in range(641)
    ]
    assert describe(same) == ["641 images are not in a class folder - at 0; 1; 2 and 638 more"]


def test_groups_keep_the_order_of_their_first_problem_and_its_hint():
    problems = [Problem("a", "x", hint="do"), Problem("b", "y"), Problem("c", "x", hint="do")]
    groups = group_problems(problems)
    assert [(len(group.problems), group.hint) for group in groups] == [(2, "do"), (1, "")]


def test_reason_without_places():
    (group,) = group_problems([Problem("a", "at byte 3"), Problem("b", "at byte 4")])
    assert group.describe_reason() == "at byte 3, and others like it"
    (group,) = group_problems([Problem("a", "empty"), Problem("b", "empty")])
    assert group.describe_reason() == "empty"
