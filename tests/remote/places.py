"""The same bytes on each server, and how tfrkit addresses them there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import obstore
from servers import AZURITE_ACCOUNT, AZURITE_KEY, S3_KEY, S3_SECRET

# Keys come from the environment, as users have them.
KEYS = {
    "AWS_ACCESS_KEY_ID": S3_KEY,
    "AWS_SECRET_ACCESS_KEY": S3_SECRET,
    "AWS_REGION": "us-east-1",
    "AZURE_STORAGE_ACCOUNT_NAME": AZURITE_ACCOUNT,
    "AZURE_STORAGE_ACCOUNT_KEY": AZURITE_KEY,
    # A service account without a login; the client would look for one otherwise, even for anonymous writing.
    "GOOGLE_SERVICE_ACCOUNT_KEY": '{"disable_oauth":true,"client_email":"","private_key":"","private_key_id":""}',
}
NAMES = ("s3-fault", "gs-fault", "http-fault", "s3-moto", "az-azurite", "http-nginx")
WRITABLE = ("s3-fault", "gs-fault", "s3-moto", "az-azurite")


@dataclass
class Place:
    """A folder on a server."""

    name: str
    address: str
    """Address of the folder for tfrkit, without a slash at the end."""
    options: dict[str, Any]
    """Arguments of `use_storage`."""
    client: Any = field(repr=False)
    """A store of obstore for the folder's bucket; None for a folder of nginx."""
    folder: str = ""
    """Key of the folder, with a slash at the end."""
    disk: Path | None = None

    def put(self, name: str, data: bytes) -> None:
        """Store an object without tfrkit."""
        if self.disk is not None:
            path = self.disk / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        else:
            obstore.put(self.client, self.folder + name, data)

    def fetch(self, name: str) -> bytes | None:
        """Return an object without tfrkit; None if it is not there."""
        try:
            return bytes(obstore.get(self.client, self.folder + name).bytes())
        except FileNotFoundError:
            return None

    def names(self) -> list[str]:
        """Return the names of all objects in the folder and below, without tfrkit."""
        found = obstore.list(self.client, self.folder or None).collect()
        return sorted(row["path"].removeprefix(self.folder) for row in found)

    def names_below(self, name: str) -> list[str]:
        """Return the names of all objects in an inner folder ("x/"), without tfrkit."""
        found = obstore.list(self.client, self.folder + name or None).collect()
        return sorted(row["path"].removeprefix(self.folder) for row in found)

    def remove(self, name: str) -> None:
        """Delete all objects in an inner folder, without tfrkit."""
        obstore.delete(self.client, [self.folder + one for one in self.names_below(name)])

    def put_folder(self, folder: Path) -> None:
        """Store all files below a folder."""
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                self.put(str(path.relative_to(folder)), path.read_bytes())

    def words(self) -> list[str]:
        """Return the options of a command."""
        words = []
        for name, value in self.options.items():
            words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
        return words

    @contextmanager
    def used(self) -> Iterator[None]:
        """Make tfrkit of this process use this server."""
        from tfrkit.storage.options import use_storage

        use_storage(**self.options)
        try:
            yield
        finally:
            use_storage()


def set_keys() -> None:
    """Set the keys of all servers in the environment of this process, and nothing else that a client would use."""
    for name in list(os.environ):
        if name.startswith(("AWS_", "AZURE_", "GOOGLE_")):
            del os.environ[name]
    os.environ.update(KEYS)
