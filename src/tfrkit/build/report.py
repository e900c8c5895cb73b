"""Report of a build: found, written and skipped inputs; printed, and saved as report.json and skipped.jsonl."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tfrkit.build.problem_groups import SKIP_ADVICE, group_problems
from tfrkit.errors import SourceError
from tfrkit.sources.base import Problem, count_bad_inputs

# Maximum number of groups in one message. All problems are in `problems`, and the command prints all groups.
_SHOWN_GROUPS = 20


@dataclass
class Skipped:
    """A skipped input and the reason. `split` is None if it was skipped before splitting.

    `input` is the input it counts for; "" means `key`, None means no single input.
    """

    key: str
    reason: str
    split: str | None = None
    input: str | None = ""
    kind: str = ""
    hint: str = ""

    @classmethod
    def of(cls, problem: Problem) -> Skipped:
        """Convert a problem that was found before splitting."""
        return cls(problem.key, problem.reason, input=problem.input, kind=problem.kind, hint=problem.hint)

    def to_problem(self) -> Problem:
        """Return the problem because of which the input was skipped."""
        return Problem(self.key, self.reason, input=self.input, kind=self.kind, hint=self.hint)

    def to_json(self) -> dict[str, Any]:
        """Return the content of one line of skipped.jsonl."""
        return {"key": self.key, "reason": self.reason, "split": self.split}


@dataclass
class Report:
    """The result of a build.

    Attributes:
        out: Path of the dataset.
        found: Number of scanned inputs.
        written: Number of records.
        skipped: Skipped inputs, with reasons.
        ignored: Counts of other files, by kind.
        nbytes_in: Size of the inputs.
        nbytes_out: Size of the shards.
        seconds: Duration of this run.
        splits: Counts of records, shards and bytes of each split.
        notes: Decisions of the build that a user should know of.
        counts: Labels and how often they occur.
        resumed: Number of shards kept from an earlier run.
        is_dry: Whether this was a dry run: nothing was written, and sizes are estimates.
        part: The part of the build that this run made, such as "0/4".
        missing_shards: Number of shards that other parts have still to make.
        already_there: Whether the dataset already existed, built from the same inputs with the same options.
    """

    out: str
    source: str
    found: int = 0
    written: int = 0
    skipped: list[Skipped] = field(default_factory=list)
    ignored: dict[str, int] = field(default_factory=dict)
    nbytes_in: int | None = None
    nbytes_out: int = 0
    seconds: float = 0.0
    seed: int = 0
    splits: dict[str, dict[str, int]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    resumed: int = 0
    is_dry: bool = False
    already_there: bool = False
    part: str = ""
    missing_shards: int = 0

    @property
    def num_skipped(self) -> int:
        """The number of skipped inputs; one input may have several entries in `skipped`."""
        return count_bad_inputs(entry.to_problem() for entry in self.skipped)

    @property
    def ok(self) -> bool:
        """Whether every scanned input is in the dataset."""
        return not self.skipped and not self.problems

    def add_shard(self, split: str, num_records: int, nbytes: int) -> None:
        """Add a shard to the counts of its split."""
        counts = self.splits.setdefault(split, {"records": 0, "shards": 0, "nbytes": 0})
        counts["records"] += num_records
        counts["shards"] += 1
        counts["nbytes"] += nbytes
        self.nbytes_out += nbytes

    def to_json(self) -> dict[str, Any]:
        """Return the content of report.json."""
        content: dict[str, Any] = {
            "out": self.out,
            "source": self.source,
            "found": self.found,
            "written": self.written,
            "skipped": self.num_skipped,
            "skipped_by_reason": _count_reasons(self.skipped),
            "ignored": self.ignored,
            "nbytes_in": self.nbytes_in,
            "nbytes_out": self.nbytes_out,
            "seconds": round(self.seconds, 3),
            "seed": self.seed,
            "splits": self.splits,
            "counts": self.counts,
            "notes": self.notes,
        }
        if self.is_dry:
            content["dry_run"] = True
            content["problems"] = [{"key": p.key, "reason": p.reason, "blocking": p.blocking} for p in self.problems]
        if self.part:
            content["part"] = self.part
            content["missing_shards"] = self.missing_shards
        return content


def refuse(problems: Iterable[Problem], *, found: int, is_begun: bool = False, can_skip: bool = True) -> SourceError:
    """Return the error for these bad inputs: the first groups are in its message, all problems in `problems`.

    `can_skip` says whether anything is left to write without the bad inputs.
    """
    listed = tuple(problems)
    groups = group_problems(listed)
    lines = []
    for group in groups[:_SHOWN_GROUPS]:
        lines += [*group.describe(), *([f"  {group.hint}"] if group.hint else [])]
    if len(groups) > _SHOWN_GROUPS:
        num_more = sum(len(group.problems) for group in groups[_SHOWN_GROUPS:])
        lines.append(f"... and {num_more:,} more")
    is_blocked = not can_skip or any(problem.blocking for problem in listed)
    begun = "shards without them are kept" if is_begun else "nothing was written"
    advice = [] if is_blocked else [SKIP_ADVICE]
    error = SourceError(f"{_count(listed, found)}, {begun}", hint="\n  ".join([*lines, *advice]) or None)
    error.problems = listed
    error.advice = "" if is_blocked else SKIP_ADVICE
    return error


def _count(problems: Sequence[Problem], found: int) -> str:
    """Describe how many inputs are bad, and how many problems belong to no single input, such as those of a column."""
    num_bad = count_bad_inputs(problems)
    num_others = sum(problem.bad_input is None for problem in problems)
    others = f"{num_others:,} problem" + ("" if num_others == 1 else "s")
    if not num_bad:
        # `found` is 0 if the columns of a table cannot be read: its rows are not counted then.
        return f"{others} in {found:,} input{'' if found == 1 else 's'}" if found else f"{others} found"
    counted = f"{num_bad:,} of {found:,} inputs {'is' if num_bad == 1 else 'are'} bad"
    return f"{counted} and there {'is' if num_others == 1 else 'are'} {others} more" if num_others else counted


def write_skipped_lines(skipped: Iterable[Skipped]) -> str:
    """Return the content of skipped.jsonl."""
    return "".join(json.dumps(entry.to_json(), ensure_ascii=False) + "\n" for entry in skipped)


def _count_reasons(skipped: Iterable[Skipped]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for entry in skipped:
        counts[entry.reason] = counts.get(entry.reason, 0) + 1
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))
