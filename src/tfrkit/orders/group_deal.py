"""Distribution of whole groups to parts: a table of the number of groups of each kind in every part.

A kind is all groups of one size or, with labels, of one size and one mix of labels. Kinds are distributed from the
largest to the smallest, so that small groups even out the large ones. Groups of one kind are distributed together, so
that the work grows with the number of kinds, not of groups. The arithmetic uses integers and single divisions, so the
result is the same on every machine.
"""

from __future__ import annotations

import numpy as np

from tfrkit._types import Int64Array

Mix = list[tuple[int, int]]
"""The classes in one group, with the number of records of each."""

# Each step reduces the error by at least two records, so few steps are needed.
_MAX_STEPS = 200


def deal_sizes(sizes: Int64Array, num_groups: Int64Array, targets: list[int], ties: list[int]) -> Int64Array:
    """Distribute kinds that differ only in size. `ties` ranks otherwise equal parts."""
    table = np.zeros((len(sizes), len(targets)), np.int64)
    wanted = [part for part, target in enumerate(targets) if target]
    room = list(targets)
    for kind in np.argsort(-sizes, kind="stable").tolist():
        size, num_left = int(sizes[kind]), int(num_groups[kind])
        total = sum(max(0, space) for space in room)
        quotas = [num_left * max(0, space) // total for space in room]
        for part, quota in enumerate(quotas):
            room[part] -= quota * size
            table[kind, part] += quota
        for _ in range(num_left - sum(quotas)):
            part = _choose_part(size, room, targets, wanted, ties)
            room[part] -= size
            table[kind, part] += 1
    return table


def _choose_part(size: int, room: list[int], targets: list[int], wanted: list[int], ties: list[int]) -> int:
    """Choose the part furthest below its share after half the group; prefer parts with room for the whole group."""
    holding = [part for part in wanted if room[part] >= size]
    if holding:
        return max(holding, key=lambda part: ((2 * room[part] - size) / targets[part], ties[part]))
    return max(wanted, key=lambda part: (room[part], ties[part]))


def deal_mixes(mixes: list[Mix], num_groups: Int64Array, targets: list[int], ties: list[int]) -> Int64Array:
    """Distribute kinds that differ in their labels, each to the part that needs its classes most.

    The need of a part is measured as (actual / ideal) squared, for each class and once for the size: the sum of squares
    is smallest if every part has its ideal counts.
    """
    sizes = [sum(count for _, count in mix) for mix in mixes]
    num_records = sum(targets)
    num_classes = 1 + max((label for mix in mixes for label, _ in mix), default=-1)
    class_sizes = [0] * num_classes
    for mix, times in zip(mixes, num_groups.tolist(), strict=True):
        for label, count in mix:
            class_sizes[label] += count * times
    wanted = [part for part, target in enumerate(targets) if target]
    have = [[0] * num_classes for _ in targets]
    have_records = [0] * len(targets)
    table = np.zeros((len(mixes), len(targets)), np.int64)

    def give(kind: int, part: int, times: int) -> None:
        for label, count in mixes[kind]:
            have[part][label] += count * times
        have_records[part] += sizes[kind] * times
        table[kind, part] += times

    for kind in sorted(range(len(mixes)), key=lambda kind: -sizes[kind]):
        num_left = int(num_groups[kind])
        for part in wanted if num_left > 1 else ():
            quota = int(num_groups[kind]) * targets[part] // num_records
            if quota:
                give(kind, part, quota)
                num_left -= quota
        for _ in range(num_left):
            costs = []
            for part in wanted:
                row = have[part]
                cost = sizes[kind] * (2 * have_records[part] + sizes[kind]) / num_records
                for label, count in mixes[kind]:
                    cost += count * (2 * row[label] + count) / class_sizes[label]
                costs.append((cost / targets[part], -ties[part], part))
            give(kind, min(costs)[2], 1)
    return table


def fill_empty(table: Int64Array, sizes: Int64Array, targets: list[int]) -> None:
    """Give every requested part that is empty a group, from the part where that changes the sizes least.

    REQUIRES: at least as many groups as parts with a target.
    """
    for part, target in enumerate(targets):
        if not target or table[:, part].any():
            continue
        deviations = sizes @ table - np.array(targets)
        costs = np.abs(deviations[None, :] - sizes[:, None]) - np.abs(deviations[None, :])
        costs += np.abs(deviations[part] + sizes)[:, None]
        costs[(table == 0) | (table.sum(axis=0) < 2)[None, :]] = np.iinfo(np.int64).max
        kind, giver = divmod(int(np.argmin(costs)), len(targets))
        table[kind, giver] -= 1
        table[kind, part] += 1


def refine_sizes(table: Int64Array, sizes: Int64Array, targets: list[int]) -> None:
    """Move or swap single groups as long as that brings the sizes closer to the targets.

    REQUIRES: sizes ascending.
    """
    for _ in range(_MAX_STEPS):
        deviations = (sizes @ table - np.array(targets)).tolist()
        best_gain, best = 0, (0, -1, 0, 0)  # kind given, kind taken back or -1, giver, taker
        for giver, surplus in enumerate(deviations):
            for taker, deficit in enumerate(deviations):
                if surplus > 0 > deficit and targets[taker]:
                    gain, given, taken = _find_shift(table[:, giver], table[:, taker], sizes, surplus, -deficit)
                    if gain > best_gain:
                        best_gain, best = gain, (given, taken, giver, taker)
        if not best_gain:
            return
        given, taken, giver, taker = best
        table[given, giver] -= 1
        table[given, taker] += 1
        if taken >= 0:
            table[taken, taker] -= 1
            table[taken, giver] += 1


def _find_shift(
    giver: Int64Array, taker: Int64Array, sizes: Int64Array, surplus: int, deficit: int
) -> tuple[int, int, int]:
    """Find the best (gain, kind given, kind taken back or -1) between a part that is too large and one too small."""
    given = np.flatnonzero(giver)
    backs = np.flatnonzero(taker)
    choices = [np.full(len(given), -1)] if giver.sum() > 1 else []
    if len(backs):
        # The two kinds to take back whose shift is just below and just above the required one.
        after = np.searchsorted(sizes[backs], sizes[given] - min(surplus, deficit))
        choices += [backs[np.minimum(after, len(backs) - 1)], backs[np.maximum(after - 1, 0)]]
    best = (0, -1, -1)
    for choice in choices:
        shift = sizes[given] - np.where(choice >= 0, sizes[choice], 0)
        gains = surplus + deficit - np.abs(surplus - shift) - np.abs(deficit - shift)
        at = int(np.argmax(gains))
        best = max(best, (int(gains[at]), int(given[at]), int(choice[at])), key=lambda found: found[0])
    return best
