"""Questions about a path or an address: is it there, how large is it, what is in the folder."""

from __future__ import annotations

import errno
import fnmatch
import glob
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from tfrkit._limits import LIMITS
from tfrkit.errors import StorageError
from tfrkit.storage.addresses import has_scheme
from tfrkit.storage.base import describe_os_error, explain_os_error
from tfrkit.storage.bucket import Bucket, bucket_of, explain_fault
from tfrkit.storage.objects import Listing, ObjectInfo, StoreFault


class UnusableFileError(StorageError):
    """A small file that will be as unusable next time: its content is wrong, or this user may not read it."""


def is_file(path: str) -> bool:
    """Whether there is a file or an object. A store that refuses access to it is taken as one that has none."""
    if not has_scheme(path):
        return os.path.isfile(path)
    bucket, key = bucket_of(path)
    if key in bucket.known or key in bucket.texts or key in bucket.parsed:
        return True
    asked = bucket.asked.pop(key, None)
    return (_find(bucket, key) if asked is None else asked.result()) is not None


def is_folder(path: str) -> bool:
    """Whether there is a folder, local or in a store: there it is a prefix of keys, or has a manifest."""
    if not has_scheme(path):
        return os.path.isdir(path)
    bucket, key = bucket_of(path)
    folder = _folder_key(key)
    if (bucket.texts.keys() | bucket.parsed.keys()) & {f"{folder}{name}" for name in _MANIFESTS}:
        return True
    return bucket.client.can_list and any(map(bool, bucket.list(folder)))


def can_list(path: str) -> bool:
    """Whether the names in a folder can be found out: web servers do not list theirs."""
    return not has_scheme(path) or bucket_of(path)[0].client.can_list


def measure_file(path: str) -> int:
    """Return the size of a file or an object. Raises OSError or `StorageError`."""
    if not has_scheme(path):
        return os.stat(path).st_size
    bucket, key = bucket_of(path)
    found = bucket.known.get(key) or _find(bucket, key)
    if found is None:
        raise StorageError("cannot open, no such object", shard=path)
    return found.nbytes


Stamp = tuple[int, int, int]
"""Size of a local file, when it was changed (ns), and its number on the disk."""


def stamp_file(path: str) -> Stamp:
    """Return what tells a local file from another one under its name. Raises OSError."""
    info = os.stat(path)
    return info.st_size, info.st_mtime_ns, info.st_ino


def recall_version(path: str) -> str | None:
    """Return the version of an object that was found, without a request; None for a file, or if it is not known."""
    if not has_scheme(path):
        return None
    bucket, key = bucket_of(path)
    found = bucket.known.get(key)
    return None if found is None else found.version


def read_time(path: str) -> int:
    """Return when a file or an object was last written, in ns, past any cache; of an object, rounded up to seconds.

    Raises OSError or `StorageError`.
    """
    if not has_scheme(path):
        return os.stat(path).st_mtime_ns
    bucket, key = bucket_of(path)
    try:
        return bucket.head(key).modified_ns + 999_999_999
    except StoreFault as fault:
        raise explain_fault(fault, path) from None


def list_names(folder: str) -> list[str]:
    """Return the names of the files in a folder, sorted; for a local folder also those of its folders.

    Raises OSError for a local folder that cannot be read; a store that cannot list has no names.
    """
    if not has_scheme(folder):
        return sorted(os.listdir(folder or "."))
    bucket, key = bucket_of(folder)
    if not bucket.client.can_list:
        return []
    listed, _ = bucket.list(_folder_key(key))
    return [info.key.rpartition("/")[2] for info in listed]


def list_folders(folder: str) -> list[str]:
    """Return the names of the folders in a folder, sorted. Raises OSError or `StorageError`."""
    if not has_scheme(folder):
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if entry.is_dir())
    bucket, key = bucket_of(folder)
    return [inner.rstrip("/").rpartition("/")[2] for inner in bucket.list(_folder_key(key))[1]]


def glob_names(folder: str, pattern: str) -> list[str]:
    """Return the names in a folder that match a pattern, sorted."""
    if has_scheme(folder):
        return fnmatch.filter(list_names(folder), pattern)
    return sorted(map(os.path.basename, glob.glob(os.path.join(glob.escape(folder), pattern))))


def read_file(path: str) -> bytes | None:
    """Return a small file or object; None if it does not exist.

    Raises `UnusableFileError` for a file that cannot be used, and `StorageError` if the disk or the system failed.
    """
    limit = LIMITS.max_text_nbytes
    if not has_scheme(path):
        try:
            with open(path, "rb") as file:
                data = file.read(limit + 1)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (PermissionError, IsADirectoryError) as error:
            raise UnusableFileError(f"cannot open, {describe_os_error(error)}", shard=path) from None
        except OSError as error:
            if error.errno == errno.ENAMETOOLONG:
                return None
            raise explain_os_error(error, path, verb="read") from None
    else:
        bucket, key = bucket_of(path)
        if key in bucket.texts:
            return bucket.texts[key]
        asked = bucket.asked.pop(key, None)
        read = _fetch(bucket, key) if asked is None else asked.result()
        if read is None:
            return None
        data = read
    if len(data) > limit:
        raise UnusableFileError(f"expected at most {limit:,} bytes of text, got more", shard=path)
    return data


def ask_ahead(paths: Iterable[str]) -> None:
    """Request small objects that `read_file` or `is_file` will need soon, each once; returns at once."""
    for path in paths:
        if has_scheme(path):
            bucket, key = bucket_of(path)
            if key not in bucket.texts:
                bucket.asked[key] = bucket.submit(partial(_fetch, bucket, key))


def open_folder(path: str, manifest: str) -> bytes | None:
    """Return the manifest of a remote folder by one request, and remember it for `read_file`; None without one."""
    bucket, key = bucket_of(path)
    key = _folder_key(key) + manifest
    _MANIFESTS.add(manifest)
    bucket.texts.pop(key, None)
    bucket.parsed.pop(key, None)
    text = _fetch(bucket, key)
    if text is not None:
        bucket.texts[key] = text
    return text


def remember_parsed(path: str, value: object) -> None:
    """Keep what the text of a remote file was parsed to, instead of the text."""
    bucket, key = bucket_of(path)
    bucket.texts.pop(key, None)
    bucket.parsed[key] = value


def recall_parsed(path: str) -> object:
    """Return what `remember_parsed` kept, unless the file was written since; else None."""
    bucket, key = bucket_of(path)
    return bucket.parsed.get(key)


def remember_listed(folder: str, manifest: str, objects: Iterable[tuple[str, int, str | None]]) -> None:
    """Keep name, size and version of the objects of a folder that its manifest, just opened, lists.

    A version that is None is pinned by the first request.
    """
    bucket, key = bucket_of(folder)
    base = _folder_key(key)
    listing = Listing(base + manifest, hash_text(bucket.texts.get(base + manifest, b"")))
    for name, nbytes, version in objects:
        bucket.known[base + name] = ObjectInfo(base + name, nbytes, version)
        bucket.listings.pop(base + name, None)
        if version is not None:
            bucket.listings[base + name] = listing


def hash_text(text: bytes) -> str:
    """Return the digest of a text that `Listing` has."""
    return hashlib.blake2b(text, digest_size=16).hexdigest()


def find_object(path: str) -> bool:
    """Whether there is an object at an address, past any cache; its facts are kept. Raises if access is refused."""
    bucket, key = bucket_of(path)
    if not key and bucket.client.can_list:
        return False  # the address of the whole store
    if key in bucket.fresh:
        bucket.fresh.discard(key)
        return True
    try:
        bucket.known[key] = bucket.head(key)
    except StoreFault as fault:
        bucket.known.pop(key, None)
        if fault.kind != "missing":
            raise explain_fault(fault, path) from None
        return False
    return True


def walk_remote(folder: str) -> list[str]:
    """Return the objects below a remote folder, sorted; names that start with `.` or `_` are skipped."""
    bucket, key = bucket_of(folder)
    return [bucket.address_of(info.key) for info in sorted(_walk(bucket, _folder_key(key)))]


def expand_remote_glob(pattern: str) -> list[str]:
    """Return the addresses that match a glob, sorted; `*` matches within a name, `**` also folders."""
    bucket, key = bucket_of(pattern)
    parts = key.split("/")
    fixed = next(number for number, part in enumerate(parts) if glob.has_magic(part))
    base = "".join(f"{part}/" for part in parts[:fixed])
    keys = sorted(
        info.key
        for info in _walk(bucket, base, depth=None if "**" in parts else len(parts) - fixed - 1)
        if _matches(parts[fixed:], info.key[len(base) :].split("/"))
    )
    bucket.fresh.update(keys)
    return [bucket.address_of(key) for key in keys]


_MANIFESTS: set[str] = set()


def _matches(patterns: Sequence[str], names: Sequence[str]) -> bool:
    """Whether the names of a key match the parts of a glob."""
    if not patterns:
        return not names
    if patterns[0] == "**":
        return _matches(patterns[1:], names) or (bool(names) and _matches(patterns, names[1:]))
    if not names or (names[0].startswith(".") and not patterns[0].startswith(".")):
        return False
    return fnmatch.fnmatchcase(names[0], patterns[0]) and _matches(patterns[1:], names[1:])


def _walk(bucket: Bucket, folder: str, depth: int | None = None) -> Iterator[ObjectInfo]:
    """Yield the objects below a folder, at most `depth` folders deep."""
    waiting = [(folder, 0)]
    while waiting:
        current, level = waiting.pop()
        listed, folders = bucket.list(current)
        yield from (info for info in listed if _is_shown(info.key))
        if depth is None or level < depth:
            waiting += [(inner, level + 1) for inner in folders if _is_shown(inner.rstrip("/"))]


def _is_shown(key: str) -> bool:
    name = key.rpartition("/")[2]
    return bool(name) and not name.startswith((".", "_"))


def _folder_key(key: str) -> str:
    return f"{key.rstrip('/')}/" if key else ""


def _find(bucket: Bucket, key: str) -> ObjectInfo | None:
    """Return the facts about an object; None if there is none, or if the store refuses access, as S3 then does."""
    try:
        found = bucket.head(key)
    except StoreFault:
        return None
    bucket.known[key] = found
    return found


def _fetch(bucket: Bucket, key: str) -> bytes | None:
    try:
        return bucket.read_all(key, LIMITS.max_text_nbytes)[0]
    except StoreFault:
        return None
