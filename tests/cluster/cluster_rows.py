"""Rows of the tests of Ray Data and Spark."""

from __future__ import annotations

import numpy as np

import tfrkit as tfr


def make_row(number):
    row = {"x": number, "y": np.float32(number), "name": f"n{number % 7}", "image": b"\xff\xd8" + bytes(number % 3)}
    row |= {"vec": [1, 2, number], "var": list(range(number % 3))}
    return row | ({"rare": number} if number % 100 == 99 else {})


def build_rows(place, shards):
    """Build 500 rows into a folder, and return it."""
    tfr.build((make_row(number) for number in range(500)), place, shards=shards, jobs=1)
    return place


def read_rows(folder):
    return {row["x"]: {name: np.asarray(row[name]).tolist() for name in row} for row in tfr.open(folder)}
