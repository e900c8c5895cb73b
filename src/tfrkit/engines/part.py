"""Parts of a job that any scheduler runs, without an engine."""

from __future__ import annotations

from dataclasses import dataclass

_FINISH = "finish"


def parse_part(text: str) -> tuple[int | None, int]:
    """Return the number of a part and the number of parts; no number for "finish".

    Example:
        >>> parse_part("0/4"), parse_part("finish")
        ((0, 4), (None, 1))
    """
    if text == _FINISH:
        return None, 1
    index, slash, count = text.partition("/")
    if not (slash and index.isdigit() and count.isdigit() and int(index) < int(count)):
        raise ValueError(f"part expected I/N with I from 0 to N-1, such as 0/4, or 'finish', got {text!r}")
    return int(index), int(count)


@dataclass(frozen=True)
class Part:
    """One of several runs of the same verb that share its work, given as `engine`: on Slurm, Kubernetes or by hand.

    The runs meet in a folder, on a disk that all machines see or in a store. Each leaves the results of its tasks
    there, and raises `OtherPartsError` if those of other parts are missing. The one that finds all of them returns the
    result, or writes the output. The folder is yours to remove.

    Attributes:
        part: "I/N", such as "0/4"; "finish" only puts the results together.
        folder: Where the parts meet.

    Example:
        >>> tfr.tools.count("train-*.tfrecord", engine=tfr.tools.Part("0/1", "parts"))
        [('train-00000-of-00001.tfrecord', 3)]
    """

    part: str
    folder: str

    def __post_init__(self) -> None:
        parse_part(self.part)

    @property
    def index(self) -> int | None:
        """Number of this part, from 0; None for "finish"."""
        return parse_part(self.part)[0]

    @property
    def count(self) -> int:
        """Number of parts."""
        return parse_part(self.part)[1]
