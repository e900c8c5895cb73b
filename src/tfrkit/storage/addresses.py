"""Refuse remote addresses, with a hint that shows the command to fetch them."""

from __future__ import annotations

import os
import re
import shlex
from typing import Final

from tfrkit.errors import RemoteAddressError

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
_SAME: Final = {"s3a": "s3", "gcs": "gs", "abfs": "az", "abfss": "az", "wasb": "az", "wasbs": "az"}


def require_local(path: str) -> None:
    """Raise `RemoteAddressError` for an address such as s3://bucket/x, unless a local file has this name.

    Example:
        >>> require_local("data/x.tfrecord")
    """
    match = _ADDRESS.match(path)
    if match is None or os.path.lexists(path):
        return
    scheme = (match[1] or match[2]).lower()
    rest = path[match.end() :]
    if scheme == "file":
        hint = f"give the path alone: /{rest}"
    else:
        fetch = _suggest_fetch(_SAME.get(scheme, scheme), rest, f"{scheme}://{rest}")
        hint = f"to read it: {fetch}    to write it: write here, and copy it there    or mount the store"
    raise RemoteAddressError(f"expected a path of this machine, got an address ({scheme}://)", shard=path, hint=hint)


def _suggest_fetch(scheme: str, rest: str, address: str) -> str:
    if scheme == "hf":
        # hf://datasets/owner/name/file; addresses of models have no kind.
        parts = rest.split("/")
        kind = " --repo-type dataset" if parts[0] == "datasets" else ""
        parts = parts[1:] if parts[0] in ("datasets", "spaces") else parts
        return f"hf download {shlex.quote('/'.join(parts[:2]))}{kind} --local-dir ."
    tool = _TOOLS.get(scheme)
    return "copy it here with the store's own tool" if tool is None else tool.format(shlex.quote(address))
