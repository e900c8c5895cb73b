"""Display of bad inputs: problems with equal reasons become one line with a count, and a hint is shown once.

Reasons that differ only in their numbers, such as coordinates, count as equal; if reasons differ by more, the source
sets the `kind` of the problem. Grouping affects the display only: every problem remains in `SourceError.problems`,
in skipped.jsonl and in the JSON of a dry run.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tfrkit.errors import Hint, Step, in_one_line
from tfrkit.sources.base import Problem

# A group of up to this many problems is shown in full; of a larger group, this many places are shown.
_SHOWN = 3
# The hint for all bad inputs, if they can be skipped.
SKIP_ADVICE = Hint("repair or remove them", Step("or leave them out: {on_bad}", on_bad="skip"))
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class ProblemGroup:
    """Problems of one kind, in the order in which they were found."""

    problems: tuple[Problem, ...]

    @property
    def hint(self) -> str:
        """The common hint, or ""."""
        return self.problems[0].hint

    def describe(self) -> list[str]:
        """Return one line for each problem if they are few, else one line for all."""
        if len(self.problems) <= _SHOWN:
            return [in_one_line(describe_problem(problem)) for problem in self.problems]
        first = self.problems[0]
        is_same = all(problem.reason == first.reason for problem in self.problems)
        places = "; ".join(problem.key for problem in self.problems[:_SHOWN])
        where = f"at {places} and {len(self.problems) - _SHOWN:,} more"
        return [in_one_line(f"{len(self.problems):,} {self._name(first.reason, is_same)} - {where}")]

    def describe_reason(self) -> str:
        """Return the common reason, without places."""
        first = self.problems[0]
        if len(self.problems) <= 1:
            return first.reason
        return self._name(first.reason, all(problem.reason == first.reason for problem in self.problems), "")

    def _name(self, reason: str, is_same: bool, noun: str = "times") -> str:
        kind = self.problems[0].kind
        if kind:
            return kind if is_same else f"{kind}, the first: {reason}"
        if is_same:
            return f"{noun}: {reason}" if noun else reason
        return f"{noun}, the first: {reason}" if noun else f"{reason}, and others like it"


def group_problems(problems: Iterable[Problem]) -> list[ProblemGroup]:
    """Group problems by kind, or by reason without its numbers; groups are ordered by their first problem."""
    groups: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        alike = problem.kind or _NUMBER.sub("#", problem.reason)
        groups.setdefault((alike, problem.hint if not problem.kind else ""), []).append(problem)
    return [ProblemGroup(tuple(members)) for members in groups.values()]


def describe_problem(problem: Problem) -> str:
    """Describe a problem in one line: its place, then its reason."""
    return f"{problem.key}: {problem.reason}" if problem.reason else problem.key
