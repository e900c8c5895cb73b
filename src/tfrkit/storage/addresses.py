"""Recognize remote addresses, split them into store and key, and refuse those that cannot be used."""

from __future__ import annotations

import os
import re
import shlex
from typing import Final, NamedTuple

from tfrkit.errors import RemoteAddressError, StorageError

# One slash also matches, because pathlib merges two slashes into one.
_ADDRESS: Final = re.compile(
    r"(s3a?|gc?s|az|abfss?|wasbs?|https?|ftp|hf|hdfs|oss|file):/+|([a-z][a-z0-9+.-]+)://", re.IGNORECASE
)
# Commands that copy an object to the current folder; {} is its address.
_TOOLS: Final = {
    "s3": "aws s3 cp {} .",
    "gs": "gcloud storage cp {} .",
    "az": "azcopy copy {} .",
    "http": "curl -LO {}",
    "https": "curl -LO {}",
    "hdfs": "hdfs dfs -get {} .",
}
# Commands that list a folder.
_LISTS: Final = {"s3": "aws s3 ls", "gs": "gcloud storage ls", "hdfs": "hdfs dfs -ls"}
_SAME: Final = {"s3a": "s3", "gcs": "gs", "abfs": "az", "abfss": "az", "wasb": "az", "wasbs": "az"}

# The signed part of an address is a secret: it is kept here, in memory, and is in no name, message or pickle.
_signatures: dict[str, str] = {}


class Remote(NamedTuple):
    """A remote address: `root` names the store (s3://bucket), `key` the object or folder in it.

    `scheme` is the usual one: "s3" for s3a.
    """

    scheme: str
    root: str
    key: str

    @property
    def address(self) -> str:
        return f"{self.root}/{self.key}" if self.key else self.root


def has_scheme(path: str) -> bool:
    """Whether a path is an address such as s3://bucket/x and no local file has this name.

    Example:
        >>> has_scheme("s3://bucket/x"), has_scheme("data/x")
        (True, False)
    """
    return ":/" in path and _ADDRESS.match(path) is not None and not os.path.lexists(path)


def find_windows_path(path: str) -> str | None:
    """Return a hint with the path as WSL has it if this is a path of Windows, else None.

    Example:
        >>> find_windows_path("C:/data/x.csv")
        'this looks like a path of Windows; on Linux, in WSL: /mnt/c/data/x.csv'
    """
    if os.sep != "/" or ("\\" not in path and not re.match("[A-Za-z]:/", path)):
        return None
    here = re.sub("^([A-Za-z]):/", lambda drive: f"/mnt/{drive[1].lower()}/", path.replace("\\", "/"))
    return f"this looks like a path of Windows; on Linux, in WSL: {here}"


def refuse_windows_drive(path: str) -> None:
    r"""Raise `StorageError` for an output such as C:\x, which on Linux would be an odd name in the current folder."""
    if re.match(r"[A-Za-z]:[\\/]", path) and (hint := find_windows_path(path)) and not os.path.lexists(path[:2]):
        raise StorageError("cannot write, there are no drives here", shard=path, hint=hint)


def parse_remote(path: str) -> Remote | None:
    """Split an address into store and key; None for a local path. The signed part of a web address is removed.

    Example:
        >>> parse_remote("s3a://bucket/data/x.tfrecord")
        Remote(scheme='s3', root='s3://bucket', key='data/x.tfrecord')
    """
    match = _ADDRESS.match(path) if ":/" in path else None
    if match is None or os.path.lexists(path):
        return None
    given = (match[1] or match[2]).lower()
    rest = path[match.end() :]
    if given == "file":
        raise RemoteAddressError(
            "expected a local path, got a remote address (file://)",
            shard=path,
            hint=f"give the path alone: /{rest}",
        )
    scheme = _SAME.get(given, given)
    if scheme in ("http", "https"):
        rest, mark, signature = rest.partition("?")
        # A name and a password before the host are secrets, too.
        _, at, host = rest.partition("@") if "@" in rest.partition("/")[0] else ("", "", rest)
        if at:
            raise StorageError(
                "expected an address without name and password", shard=f"{scheme}://{host}", hint="use a signed address"
            )
        if mark:
            _signatures[f"{scheme}://{rest}"] = signature
        if f"{scheme}://{rest}" in _signatures:
            return Remote(scheme, f"{scheme}://{rest}", "")  # each signed object is a store of its own
    store, _, key = rest.partition("/")
    if not store or match[0].endswith("///"):
        raise StorageError(f"expected {scheme}://bucket/key, got no bucket", shard=path)
    # The account in abfs://container@account.dfs.core.windows.net/x is part of the store.
    return Remote(scheme, f"{scheme}://{store}", re.sub("/+", "/", key).lstrip("/"))


def signature_of(address: str) -> str | None:
    """Return the signature that came with this address in this process, or None. It is a secret: never print it."""
    return _signatures.get(address)


def keep_signature(address: str, signature: str) -> None:
    """Use a signed part for an address in this process."""
    _signatures[address] = signature


def normalize_address(path: str) -> str:
    """Return an address in its usual form without secrets, and a local path as it is.

    Example:
        >>> normalize_address("https://example.org/x.tfrecord?X-Amz-Signature=abc")
        'https://example.org/x.tfrecord'
    """
    remote = parse_remote(path)
    return path if remote is None else remote.address


def require_local(path: str) -> None:
    """Raise `RemoteAddressError` for an address such as s3://bucket/x, unless a local file has this name.

    Example:
        >>> require_local("data/x.tfrecord")
    """
    remote = parse_remote(path)
    if remote is not None:
        raise RemoteAddressError(
            f"expected a local path, got a remote address ({remote.scheme}://)",
            shard=remote.address,
            hint=f"to read it: {suggest_fetch(remote)}    to write it: write here, and copy it there    "
            "or mount the store",
        )


def suggest_list(address: str) -> str:
    """Return the command that lists the folder of an object that was not found.

    Example:
        >>> suggest_list("s3://bucket/data/trian-*")
        'list what is there: aws s3 ls s3://bucket/data/'
    """
    remote = parse_remote(address)
    if remote is None or remote.scheme not in _LISTS:
        return "check the address"
    folder = remote.key.rstrip("/").rpartition("/")[0]
    return f"list what is there: {_LISTS[remote.scheme]} {remote.root}/{folder + '/' if folder else ''}"


def suggest_fetch(remote: Remote) -> str:
    """Return the command that copies an object to the current folder.

    Example:
        >>> suggest_fetch(Remote("s3", "s3://bucket", "x"))
        'aws s3 cp s3://bucket/x .'
    """
    if remote.scheme == "hf":
        # hf://datasets/owner/name/file; addresses of models have no kind.
        parts = remote.address.removeprefix("hf://").split("/")
        kind = " --repo-type dataset" if parts[0] == "datasets" else ""
        parts = parts[1:] if parts[0] in ("datasets", "spaces") else parts
        return f"hf download {shlex.quote('/'.join(parts[:2]))}{kind} --local-dir ."
    tool = _TOOLS.get(remote.scheme)
    return "copy it here with the store's own tool" if tool is None else tool.format(shlex.quote(remote.address))
