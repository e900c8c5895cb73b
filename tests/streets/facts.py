"""Facts an asker returns about a dataset, compared with the truth."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from streets.differences import DIFFERENCES, Difference
from streets.truth import Feature, Made, Row, show_value

# What may be stated about one feature: kind, dtype, shape, encoding, logical, classes, optional, present, unset.
FeatureFacts = Mapping[str, Any]


@dataclass(frozen=True)
class Facts:
    """Facts of an asker; None if not stated. Rows of an unordered asker are compared as a set."""

    rows: Sequence[Row] | None = None
    is_ordered: bool = True
    split_rows: Mapping[str, Sequence[Row]] | None = None
    count: int | None = None
    splits: Mapping[str, int] | None = None
    features: Mapping[str, FeatureFacts] | None = None
    kind: str | None = None
    problems: Sequence[str] = ()


def find_wrong(asked: str, facts: Facts, made: Made, differences: Sequence[Difference] = DIFFERENCES) -> list[str]:
    """Differences from the truth, one line each, without the intended ones."""
    known = [difference for difference in differences if difference.is_asked(asked)]
    wrong = list(facts.problems)
    if facts.rows is not None:
        wrong += _compare_rows("rows", facts.rows, made.rows, made, known, facts.is_ordered)
    if facts.count is not None and facts.count != len(made.rows):
        wrong.append(f"count is {facts.count}, expected {len(made.rows)}")
    if facts.kind is not None and facts.kind != made.truth.kind:
        wrong.append(f"kind is {facts.kind}, expected {made.truth.kind}")
    if facts.splits is not None:
        wrong += _compare_splits(facts.splits, made)
    for name, rows in (facts.split_rows or {}).items():
        wrong += _compare_rows(f"split {name}", rows, made.rows_of(name), made, known, facts.is_ordered)
    if facts.features is not None:
        wrong += _compare_features(facts.features, made, known)
    return wrong


def describe_feature(name: str, feature: Feature, rows: Sequence[Row]) -> dict[str, Any]:
    """All facts about a feature."""
    facts: dict[str, Any] = {
        "kind": feature.kind,
        "dtype": feature.dtype,
        "shape": feature.shape,
        "encoding": feature.encoding,
        "optional": feature.optional,
        "classes": feature.classes,
        "present": sum(name in row for row in rows),
        "unset": sum(name in row and row[name] is None for row in rows),
    }
    if feature.logical is not None:
        facts["logical"] = feature.logical
    return facts


def _compare_rows(
    what: str, found: Sequence[Row], expected: Sequence[Row], made: Made, known: list[Difference], is_ordered: bool
) -> list[str]:
    wanted = [_expect_row(row, made, known) for row in expected]
    got = [{name: value for name, value in row.items() if not _is_ignored(name, made, known)} for row in found]
    if len(got) != len(wanted):
        return [f"{what}: {len(got)} rows, expected {len(wanted)}"]
    if not is_ordered:
        missing = Counter(map(_countable, wanted)) - Counter(map(_countable, got))
        extra = Counter(map(_countable, got)) - Counter(map(_countable, wanted))
        if not missing:
            return []
        first = next(iter(missing))
        likest = max(extra, key=lambda row: len(set(row) & set(first)))
        return _compare_row(f"{what}, a row", dict(likest), dict(first))
    for number, (one, other) in enumerate(zip(got, wanted, strict=True)):
        if one != other:
            return _compare_row(f"{what}, row {number}", one, other)
    return []


def _compare_row(where: str, found: Row, expected: Row) -> list[str]:
    lines = []
    for name in sorted({*found, *expected}):
        if name not in found or name not in expected or found[name] != expected[name]:
            one, other = (show_value(row[name]) if name in row else "absent" for row in (found, expected))
            lines.append(f"{where}: {name} is {one}, expected {other}")
    return lines


def _compare_splits(found: Mapping[str, int], made: Made) -> list[str]:
    if dict(found) == dict(made.splits) or (not made.is_certain and not found):
        return []
    return [f"splits are {dict(found)}, expected {dict(made.splits)}"]


def _compare_features(found: Mapping[str, FeatureFacts], made: Made, known: list[Difference]) -> list[str]:
    lines = []
    rows = made.rows
    expected = {name: describe_feature(name, feature, rows) for name, feature in made.truth.features.items()}
    ignored = {name for name in {*found, *expected} if _is_ignored(name, made, known)}
    for name in sorted({*found, *expected} - ignored):
        if name not in found:
            lines.append(f"feature {name} is missing")
        elif name not in expected:
            lines.append(f"feature {name} is new")
        else:
            changed = _expect_facts(name, expected[name], made, known)
            lines += [
                f"{fact} of {name} is {value!r}, expected {changed[fact]!r}"
                for fact, value in found[name].items()
                if fact in changed and value != changed[fact]
            ]
    return lines


def _expect_row(row: Row, made: Made, known: list[Difference]) -> Row:
    expected: Row = {}
    for name, value in row.items():
        feature = made.truth.features.get(name, Feature())
        chosen = [difference for difference in known if difference.applies(name, feature)]
        if any(difference.is_ignored for difference in chosen):
            continue
        for difference in chosen:
            if difference.expect is not None and name is not None:
                name, value = difference.expect(name, value)
        if name is not None:
            expected[name] = value
    return expected


def _expect_facts(name: str, facts: dict[str, Any], made: Made, known: list[Difference]) -> dict[str, Any]:
    feature = made.truth.features[name]
    for difference in known:
        if difference.facts is not None and difference.applies(name, feature):
            facts = {fact: value for fact, value in {**facts, **difference.facts(feature)}.items() if value is not ...}
    return facts


def _is_ignored(name: str, made: Made, known: list[Difference]) -> bool:
    feature = made.truth.features.get(name, Feature())
    return any(difference.is_ignored and difference.applies(name, feature) for difference in known)


def _countable(row: Row) -> tuple[tuple[str, Any], ...]:
    return tuple(sorted(row.items(), key=lambda item: item[0]))
