"""Requests to any other store through fsspec: Hugging Face, HDFS, SFTP, the user's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tfrkit._optional import import_or_explain
from tfrkit.errors import RemoteAddressError
from tfrkit.storage.addresses import Remote, suggest_fetch
from tfrkit.storage.objects import Body, ObjectInfo, StoreFault
from tfrkit.storage.options import StorageOptions

# Keys under which filesystems report what changes with the bytes of an object.
_VERSION_KEYS = ("ETag", "etag", "e_tag", "generation", "blob_id", "md5Hash", "checksum", "mtime", "LastModified")


def open_client(remote: Remote, options: StorageOptions) -> FsspecClient:
    """Return a client of the store of an address. Raises `RemoteAddressError` if fsspec does not know the scheme."""
    fsspec = import_or_explain("fsspec", "remote")
    try:
        kind = fsspec.get_filesystem_class(remote.scheme)
    except (ValueError, ImportError) as error:
        package = getattr(error, "name", None)
        needs = f", which needs the package {package}" if package else ""
        raise RemoteAddressError(
            f"no filesystem for {remote.scheme}://{needs}",
            shard=remote.address,
            hint=f"install the fsspec filesystem of this store    or fetch it: {suggest_fetch(remote)}",
        ) from None
    given: dict[str, Any] = {}
    if options.endpoint is not None:
        given["endpoint"] = options.endpoint
    if options.anonymous:
        given |= {"token": False} if remote.scheme == "hf" else {"anon": True}
    # A new instance: others of this process may have another event loop or an old listing.
    return FsspecClient(kind(skip_instance_cache=True, use_listings_cache=False, **given), remote)


class FsspecClient:
    """A filesystem of fsspec.

    Its reads cannot name a version, so the version is compared after each read: a replaced object is noticed, at the
    cost of one more request.
    """

    can_list = True
    is_pinned = False

    def __init__(self, filesystem: Any, remote: Remote) -> None:
        self._fs = filesystem
        root = remote.root
        self._root = root.partition("://")[2] if remote.scheme != "memory" else f"/{root.partition('://')[2]}"

    def _path(self, key: str) -> str:
        return f"{self._root}/{key}"

    def get(self, key: str, start: int, stop: int | None, version: str | None) -> Body:
        try:
            data = self._fs.cat_file(self._path(key), start=start, end=stop)
        except Exception as error:  # noqa: BLE001 - each filesystem has its own errors
            raise _classify(error) from None
        info = self.head(key)
        if version is not None and info.version != version:
            raise StoreFault("changed", "the object was replaced")
        return Body([memoryview(data)], info)

    def head(self, key: str) -> ObjectInfo:
        try:
            return self._read_info(self._fs.info(self._path(key)), key)
        except StoreFault:
            raise
        except Exception as error:  # noqa: BLE001
            raise _classify(error) from None

    def list(self, folder: str) -> tuple[Iterable[ObjectInfo], Iterable[str]]:
        try:
            found = self._fs.ls(self._path(folder).rstrip("/"), detail=True)
        except FileNotFoundError:
            return [], []
        except Exception as error:  # noqa: BLE001
            raise _classify(error) from None
        objects, folders = [], []
        for info in found:
            key = folder + info["name"].rstrip("/").rpartition("/")[2]
            if info["type"] == "directory":
                folders.append(f"{key}/")
            else:
                objects.append(self._read_info(info, key))
        return objects, folders

    def _read_info(self, info: dict[str, Any], key: str) -> ObjectInfo:
        if info.get("type") == "directory":
            raise StoreFault("missing", "no such object")
        if info.get("size") is None:
            raise StoreFault("refused", "the filesystem does not report the size of the object")
        version = next((str(info[name]) for name in _VERSION_KEYS if info.get(name) is not None), None)
        return ObjectInfo(key, int(info["size"]), version, _read_time(info))


def _read_time(info: dict[str, Any]) -> int:
    times = (info.get(name) for name in ("LastModified", "last_modified", "mtime", "modified", "created"))
    found = next((time for time in times if time is not None), 0)
    seconds = found.timestamp() if hasattr(found, "timestamp") else found
    return int(seconds) * 10**9 if isinstance(seconds, (int, float)) else 0


def _classify(error: Exception) -> StoreFault:
    if isinstance(error, FileNotFoundError):
        return StoreFault("missing", "no such object")
    if isinstance(error, PermissionError):
        return StoreFault("denied", "the store refuses access")
    if isinstance(error, (NotImplementedError, ValueError, TypeError)):
        return StoreFault("refused", f"the filesystem failed ({type(error).__name__})")
    return StoreFault("broken", f"the filesystem failed ({type(error).__name__})")
