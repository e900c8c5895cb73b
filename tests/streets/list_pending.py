"""Ask every cell and write pending.txt anew: `python tests/streets/list_pending.py [MAKER...]`. Deleted with that file.

A cell that was listed keeps its point; another one gets a point by what is wrong with it.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from streets.cells import ask, list_askers, list_pairs, make
from streets.makers import MAKERS
from streets.pending import PENDING
from streets.storages import STORAGES

# What a message of a wrong cell points to; the first that fits.
_POINTS = (
    ("A8", r"-map: (MissingFeatureError|ShapeError)"),
    ("A3", r"records\(\) of"),
    ("A4", r"picture decodes"),
    ("A5", r"mask asked for"),
    ("A9", r"brain"),
    ("A9", r"-csv_back:.*tensor"),
    ("new", r"Internal Arrow Type"),
    ("new", r"-jsonl_back:"),
    ("new", r"bare_raw-.*-stats"),
    ("A9", r"writer_\w+-file_gzip-made"),
    ("A2", r": (splits are|split \w+|no file is of)|QueryError|east and west|-made:"),
    ("A1", r"(is bytes|classes of|dtype of|shape of|logical of|encoding of|no column|expected class names)"),
    ("A1", r"rows, (a )?row|optional of"),
)


def find_wrong_cells(pair: tuple[str, str]) -> dict[str, list[str]]:
    wrong = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["XDG_CACHE_HOME"] = str(Path(folder) / "cache")
        try:
            made = make(*pair, Path(folder))
        except AssertionError as error:
            return {"-".join((*pair, "made")): [str(error)]}
        for asked in list_askers(*pair):
            lines = ask(asked, made, Path(folder) / f"ask_{asked}")
            if lines:
                wrong["-".join((*pair, asked))] = lines
    return wrong


def name_point(cell: str, lines: list[str]) -> str:
    known = PENDING.get(cell)
    text = "\n".join(f"{cell}: {line}" for line in lines)
    return known or next((point for point, pattern in _POINTS if re.search(pattern, text)), "new")


def main() -> None:
    rows: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    asked_makers = sys.argv[1:] or list(MAKERS)
    for cell, point in PENDING.items():
        made, stored, asked = cell.split("-")
        if made not in asked_makers:
            rows[point, asked, made].append(stored)
    with ProcessPoolExecutor(2) as pool:
        for wrong in pool.map(find_wrong_cells, [pair for pair in list_pairs() if pair[0] in asked_makers]):
            for cell, lines in wrong.items():
                made, stored, asked = cell.split("-")
                rows[name_point(cell, lines), asked, made].append(stored)
                print("\n".join(f"{cell}: {line:.300}" for line in lines))
    text = ""
    for (point, asked, made), stored in sorted(rows.items()):
        names = [name for name, storage in STORAGES.items() if MAKERS[made].can_store(storage)]
        text += f"{point} {asked} {made} {'*' if set(stored) == set(names) else ' '.join(stored)}\n"
    Path(__file__).with_name("pending.txt").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
