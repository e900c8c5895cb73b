"""How stores are reached: endpoint, profile, anonymous access, cache."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from tfrkit.storage.addresses import parse_remote

_SIZE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", re.IGNORECASE)
_UNITS: Final = {"": 1, "K": 1000, "M": 1000**2, "G": 1000**3, "T": 1000**4}


@dataclass(frozen=True)
class StorageOptions:
    """How a remote address is read. There are no secrets in it: keys come from the environment or a profile.

    Attributes:
        endpoint: Address of a server with the interface of the store, such as MinIO for s3://.
        profile: Section of ~/.aws/credentials and ~/.aws/config to use for s3://.
        anonymous: Send requests without a signature, for public data.
        cache: Folder and size of a cache of blocks, as DIR:SIZE (/scratch/cache:200G).

    Example:
        >>> StorageOptions(endpoint="http://localhost:9000").anonymous
        False
    """

    endpoint: str | None = None
    profile: str | None = None
    anonymous: bool = False
    cache: str | None = None

    def __post_init__(self) -> None:
        for name in ("endpoint", "profile", "cache"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise TypeError(f"{name} expected a text, got {type(value).__name__}")
        if self.endpoint is not None and not self.endpoint.startswith(("http://", "https://")):
            raise ValueError(f"endpoint expected an address that starts with http:// or https://, got {self.endpoint}")
        if self.endpoint is not None and ("@" in self.endpoint or "?" in self.endpoint):
            raise ValueError("endpoint expected an address without a password or a signature")
        if self.cache is not None:
            parse_cache(self.cache)


def parse_cache(text: str) -> tuple[str, int]:
    """Return the folder and the size in bytes of DIR:SIZE.

    Example:
        >>> parse_cache("/scratch/cache:1.5G")
        ('/scratch/cache', 1500000000)
    """
    folder, _, size = text.rpartition(":")
    match = _SIZE.fullmatch(size)
    if not folder or match is None:
        raise ValueError(f"cache expected DIR:SIZE, such as /scratch/cache:200G, got {text!r:.100}")
    return os.path.expanduser(folder), int(float(match[1]) * _UNITS[match[2].upper()])


_default = StorageOptions()
_given: dict[str, StorageOptions] = {}


def use_storage(
    *, endpoint: str | None = None, profile: str | None = None, anonymous: bool = False, cache: str | None = None
) -> None:
    """Set how remote addresses are read from now on in this process, if `tfrkit.open` is not given its own `storage`.

    Args:
        endpoint: Address of a server with the interface of the store, such as MinIO for s3://.
        profile: Section of ~/.aws/credentials and ~/.aws/config to use for s3://.
        anonymous: Send requests without a signature, for public data.
        cache: Folder and size of a cache of blocks, as DIR:SIZE (/scratch/cache:200G).
    """
    global _default
    _default = StorageOptions(endpoint, profile, anonymous, cache)


def set_options(root: str, options: StorageOptions) -> None:
    """Set the options of one store of this process."""
    _given[root] = options


def given_options(addresses: Iterable[str]) -> dict[str, StorageOptions]:
    """Return the options of the stores of remote addresses, for another process."""
    roots = dict.fromkeys(remote.root for one in addresses if (remote := parse_remote(one)) is not None)
    return {root: options_of(root) for root in roots}


def use_given(stores: Mapping[str, StorageOptions]) -> None:
    """Use the options that `given_options` of another process returned."""
    for root, options in stores.items():
        if options_of(root) != options:  # in a process of the same machine they may be the default
            set_options(root, options)


def options_of(root: str) -> StorageOptions:
    """Return the options of a store."""
    return _given.get(root, _default)
