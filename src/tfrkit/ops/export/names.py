"""Safe file names from names in records: inside the output folder, unique, and different in more than case.

Names in records are untrusted. Empty parts, `.` and `..` are left out; NULs and names that are too long are replaced.
If names collide, on this file system or on one that ignores case, all but the first get a number.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata

_MAX_PART = 255  # bytes, on every file system in use
_MAX_PATH = 2048
_KEPT_BYTES = 200
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\udc80-\udcff]")


class SafeNames:
    """Makes names safe and unique. Uses about 100 bytes of memory per name."""

    def __init__(self, *, by_stem: bool = False, is_plain: bool = False) -> None:
        """With `by_stem`, names that differ only in their suffix collide, too.

        With `is_plain`, names can be listed one per line in a text file: no control characters, no surrounding blanks.
        """
        self._by_stem = by_stem
        self._is_plain = is_plain
        self._taken: set[int] = set()
        self._folders: dict[str, str] = {"": ""}
        # The last number given for a repeated name; counting from 2 each time would be quadratic if all are the same.
        self._next: dict[int, int] = {}

    def take(self, path: str, *, otherwise: str) -> str:
        """Return the path, made safe and unique; `otherwise` replaces a path with no usable part, or one too long.

        Example:
            >>> names = SafeNames()
            >>> names.take("a/../../b.jpg", otherwise="0.jpg"), names.take("A/B.jpg", otherwise="1.jpg")
            ('a/b.jpg', 'a-2/B.jpg')
        """
        if self._is_plain:
            path = "/".join(_CONTROLS.sub("_", part).strip() for part in path.split("/"))
        parts = [_make_safe(part) for part in path.split("/") if part not in ("", ".", "..")]
        if not parts or len(os.fsencode("/".join(parts))) > _MAX_PATH:
            parts = [otherwise]
        folder = self._take_folder(parts[:-1])
        stem, suffix = os.path.splitext(parts[-1])
        return self._take_free(folder, stem, suffix)

    def reserve(self, path: str) -> str:
        """Reserve a path for a file of the export itself, so that no record gets it."""
        self._taken.add(self._key(*_split(path)))
        return path

    def _take_folder(self, parts: list[str]) -> str:
        """Return the folder for these parts. If folders differ only in case, all but the first are renamed."""
        folder = ""
        for part in parts:
            wanted = f"{folder}/{part}" if folder else part
            found = self._folders.get(wanted)
            if found is None:
                found = self._take_free(folder, part, "", is_folder=True)
                self._folders[wanted] = found
            folder = found
        return folder

    def _take_free(self, folder: str, stem: str, suffix: str, *, is_folder: bool = False) -> str:
        # Even if suffixes are ignored, the folder x and the file x.jpg do not collide.
        mark = "/" if is_folder and self._by_stem else ""
        first = key = self._key(folder, stem + mark, suffix)
        number = self._next.get(first, 1)
        counted = stem
        while key in self._taken:
            number += 1
            counted = f"{stem}-{number}"
            key = self._key(folder, counted + mark, suffix)
        if number > 1:
            self._next[first] = number
        self._taken.add(key)
        name = f"{counted}{suffix}"
        return f"{folder}/{name}" if folder else name

    def _key(self, folder: str, stem: str, suffix: str) -> int:
        name = stem if self._by_stem else stem + suffix
        folded = unicodedata.normalize("NFC", f"{folder}/{name}".casefold())
        return int.from_bytes(hashlib.blake2b(folded.encode("utf-8", "surrogateescape"), digest_size=8).digest())


def safe_part(name: str) -> str:
    """Make a name, such as that of a class, safe as a single part of a path.

    Example:
        >>> safe_part("cat/dog"), safe_part("..")
        ('cat_dog', '_')
    """
    part = name.replace("/", "_")
    return "_" if part in ("", ".", "..") else _make_safe(part)


def _make_safe(part: str) -> str:
    part = part.replace("\0", "_")
    if os.sep != "/":
        part = part.replace(os.sep, "_")
    try:
        encoded = os.fsencode(part)
    except UnicodeEncodeError:
        encoded = part.encode("utf-8", "replace")
        part = encoded.decode()
    # 8 bytes are left for the number that makes a name unique.
    if len(encoded) <= _MAX_PART - 8:
        return part
    stem, suffix = os.path.splitext(part)
    digest = hashlib.blake2b(encoded, digest_size=6).hexdigest()
    kept = os.fsencode(stem)[:_KEPT_BYTES].decode("utf-8", "ignore")
    return f"{kept}-{digest}{suffix if len(os.fsencode(suffix)) <= 16 else ''}"


def _split(path: str) -> tuple[str, str, str]:
    folder, _, name = path.rpartition("/")
    return folder, *os.path.splitext(name)
