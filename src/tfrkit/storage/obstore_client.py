"""Requests to S3, Google Cloud Storage, Azure and web servers through obstore.

obstore is used for single requests only: retries, ranges and their number are decided in `storage.bucket`, where they
are counted. Never call it in a process that was forked after it was used: it waits forever there.
"""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, BinaryIO, Final, Literal

from tfrkit._limits import LIMITS
from tfrkit._optional import import_or_explain
from tfrkit.errors import StorageError
from tfrkit.storage.addresses import Remote, signature_of
from tfrkit.storage.objects import Body, FaultKind, ObjectInfo, StoredVersion, StoreFault
from tfrkit.storage.options import StorageOptions

SCHEMES: Final = ("s3", "gs", "az", "http", "https")

# Enough to keep the cost per piece low, small enough that a cut body loses little.
_PIECE_NBYTES: Final = 1 << 20
# The errors of the client have their status only in the text.
_STATUS: Final = re.compile(r"status code: (\d{3})")
_BUSY: Final = (429, 503)
_PASSING: Final = (408, 500, 502, 504)


def open_client(remote: Remote, options: StorageOptions) -> ObstoreClient:
    """Return a client of the store of an address. Makes no request."""
    can_write = remote.scheme not in ("http", "https")
    return ObstoreClient(
        _open_store(remote, options, tries=0),
        can_list=can_write,
        # The parts of a large object are sent by the client, which therefore repeats them.
        open_writable=partial(_open_store, remote, options, tries=LIMITS.request_tries) if can_write else None,
    )


def _open_store(remote: Remote, options: StorageOptions, *, tries: int) -> Any:
    store = import_or_explain("obstore.store", "remote")
    timing: dict[str, Any] = {
        "client_options": {
            "allow_http": True,
            "connect_timeout": f"{LIMITS.stall_seconds}s",
            "read_timeout": f"{LIMITS.stall_seconds}s",
            # No limit of the whole request: a slow connection is not a dead one.
            "timeout": "1h",
        },
        "retry_config": {"max_retries": tries},
    }
    name = remote.root.partition("://")[2]
    if remote.scheme in ("http", "https"):
        signature = signature_of(remote.root)
        base = remote.root if signature is None else f"{remote.root}?{signature}"
        return store.HTTPStore(base, **timing)
    config: dict[str, Any] = {"skip_signature": True} if options.anonymous else {}
    if remote.scheme == "s3":
        if not options.anonymous:
            config |= _read_profile(options.profile)
        if options.endpoint is not None:
            config["endpoint"] = options.endpoint
        provider = config.pop("credential_provider", None)
        return store.S3Store(name, credential_provider=provider, **config, **timing)
    if options.profile is not None:
        raise StorageError(f"profile expected an s3:// address, got {remote.scheme}://", shard=remote.root)
    if remote.scheme == "gs":
        if options.endpoint is not None:
            config["base_url"] = options.endpoint
        return store.GCSStore(name, **config, **timing)
    container, _, account = name.partition("@")
    if account:
        config["account_name"] = account.partition(".")[0]
    if options.endpoint is not None:
        config["endpoint"] = options.endpoint
    return store.AzureStore(container, **config, **timing)


def _read_profile(profile: str | None) -> dict[str, Any]:
    """Return the keys of a profile of the AWS tools; {} if the environment has keys and no profile is given.

    The client itself knows the environment, containers and instances, but not these files.
    """
    chosen = profile or os.environ.get("AWS_PROFILE")
    if chosen is None and "AWS_ACCESS_KEY_ID" in os.environ:
        return {}
    files = configparser.RawConfigParser()
    try:
        files.read(os.path.expanduser(os.environ.get("AWS_CONFIG_FILE", "~/.aws/config")), encoding="utf-8")
        sections = {title.removeprefix("profile "): dict(files.items(title)) for title in files.sections()}
        files.clear()
        files.read(
            os.path.expanduser(os.environ.get("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials")), encoding="utf-8"
        )
    except (configparser.Error, UnicodeDecodeError):
        raise StorageError("cannot read the profiles in ~/.aws, they are not in their usual format") from None
    for title in files.sections():
        sections.setdefault(title, {}).update(files.items(title))
    found = sections.get(chosen or "default")
    if found is None:
        if chosen is None:
            return {}
        raise StorageError(
            f"no profile {chosen!r} in ~/.aws/credentials or ~/.aws/config",
            hint=f"profiles there: {', '.join(sorted(sections)) or 'none'}",
        )
    config: dict[str, Any] = {}
    for key, name in {"region": "region", "endpoint": "endpoint_url"}.items():
        if name in found:
            config[key] = found[name]
    if "aws_access_key_id" in found and "aws_secret_access_key" in found:
        config |= {"access_key_id": found["aws_access_key_id"], "secret_access_key": found["aws_secret_access_key"]}
        if "aws_session_token" in found:
            config["token"] = found["aws_session_token"]
    elif profile is not None or any(key.startswith(("sso_", "role_", "credential_")) for key in found):
        # Single sign-on, roles and programs that print keys.
        session = import_or_explain("boto3", "remote").Session(profile_name=chosen)
        config["credential_provider"] = import_or_explain("obstore.auth.boto3", "remote").Boto3CredentialProvider(
            session
        )
    return config


class ObstoreClient:
    """A store of obstore."""

    is_pinned = True

    def __init__(self, store: Any, *, can_list: bool, open_writable: Callable[[], Any] | None) -> None:
        self._store = store
        self.can_list = can_list
        self._open_writable = open_writable
        self._broken: set[tuple[str, int | None]] = set()  # ends of ranges whose bodies broke off
        self._obstore = import_or_explain("obstore", "remote")

    def get(self, key: str, start: int, stop: int | None, version: str | None) -> Body:
        options: dict[str, Any] = {}
        if stop is not None:
            options["range"] = (start, stop)
        elif start:
            options["range"] = {"offset": start}
        if version is not None:
            options["if_match"] = version
        pieces: list[memoryview] = []
        # In one piece it takes two thirds of the processor time, but nothing is left of a body that breaks off.
        is_whole = stop is not None and (key, stop) not in self._broken
        result: Any = None
        try:
            result = self._obstore.get(self._store, key, options=options)
            meta = result.meta
            if is_whole:
                pieces.append(memoryview(result.bytes()))
            else:
                for piece in result.stream(min_chunk_size=_PIECE_NBYTES):
                    pieces.append(memoryview(piece))
        except Exception as error:  # noqa: BLE001 - every kind is classified below
            fault = _classify(error)
            fault.body = pieces
            if is_whole and result is not None:
                self._broken.add((key, stop))
            raise fault from None
        if not is_whole:
            self._broken.discard((key, stop))
        return Body(pieces, _read_info(meta, key))

    def head(self, key: str) -> ObjectInfo:
        try:
            meta = self._obstore.head(self._store, key)
        except Exception as error:  # noqa: BLE001
            raise _classify(error) from None
        return _read_info(meta, key)

    def list(self, folder: str) -> tuple[Iterable[ObjectInfo], Iterable[str]]:
        try:
            found = self._obstore.list_with_delimiter(self._store, folder or None)
        except Exception as error:  # noqa: BLE001
            raise _classify(error) from None
        objects = [_read_info(meta, meta["path"]) for meta in found["objects"]]
        return objects, [f"{prefix.rstrip('/')}/" for prefix in found["common_prefixes"]]

    def load(self, key: str) -> tuple[bytes, StoredVersion]:
        try:
            result = self._obstore.get(self._store, key)
            return bytes(result.bytes()), _stored_version(result.meta)
        except Exception as error:  # noqa: BLE001
            raise _classify(error) from None

    def put(self, key: str, data: bytes, replaces: StoredVersion | Literal["nothing", "anything"]) -> StoredVersion:
        self._require_writable()
        mode: Any = {"nothing": "create", "anything": "overwrite"}.get(str(replaces))
        if isinstance(replaces, StoredVersion):
            mode = {"e_tag": replaces.etag, "version": replaces.generation}
            mode = {name: value for name, value in mode.items() if value is not None}
        try:
            return _stored_version(self._obstore.put(self._store, key, data, mode=mode, use_multipart=False))
        except Exception as error:  # noqa: BLE001
            if type(error).__name__ in ("AlreadyExistsError", "PreconditionError"):
                raise StoreFault("changed", "another process wrote the object") from None
            raise _classify(error) from None

    def put_file(self, key: str, file: BinaryIO, nbytes: int) -> StoredVersion:
        self._require_writable()
        assert self._open_writable is not None
        # Stores allow 10,000 parts.
        part_nbytes = max(LIMITS.block_nbytes, -(-nbytes // 9_000))
        try:
            put = self._obstore.put(
                self._open_writable(), key, file, use_multipart=nbytes > part_nbytes, chunk_size=part_nbytes
            )
        except Exception as error:  # noqa: BLE001
            raise _classify(error) from None
        return _stored_version(put)

    def delete(self, key: str) -> None:
        self._require_writable()
        try:
            self._obstore.delete(self._store, key)
        except FileNotFoundError:
            return
        except Exception as error:  # noqa: BLE001
            fault = _classify(error)
            if fault.kind != "missing":
                raise fault from None

    def _require_writable(self) -> None:
        if self._open_writable is None:
            raise StoreFault("refused", "web servers are only read")


def _stored_version(meta: Any) -> StoredVersion:
    return StoredVersion(meta.get("e_tag"), meta.get("version"))


def _read_info(meta: Any, key: str) -> ObjectInfo:
    return ObjectInfo(key, meta["size"], _version_of(meta), int(meta["last_modified"].timestamp()) * 10**9)


def _version_of(meta: Any) -> str | None:
    version: str | None = meta["e_tag"]
    # A weak ETag never matches: the store may give equal ones to different bytes.
    if version is None or version.startswith("W/"):
        return None
    # Azure's listings have no quotes, its other answers do.
    return version if version.startswith('"') else f'"{version}"'


def _classify(error: Exception) -> StoreFault:
    """Return the fault for an error of the client, without its text, which has addresses and may have signatures."""
    name, text = type(error).__name__, str(error)
    status = _STATUS.search(text)
    code = int(status[1]) if status else None
    kind: FaultKind
    if isinstance(error, FileNotFoundError) or name == "NotFoundError" or code == 404:
        return StoreFault("missing", "no such object")
    if name in ("PermissionDeniedError", "UnauthenticatedError") or code in (401, 403):
        return StoreFault("denied", f"the store refuses access{f' (status {code})' if code else ''}")
    if name == "PreconditionError" or code == 412:
        return StoreFault("changed", "the object was replaced")
    if code is not None:
        kind = "busy" if code in _BUSY else "broken" if code in _PASSING else "refused"
        return StoreFault(kind, f"the store answered with status {code}")
    if "non-partial response" in text or ("range" in text.lower() and "mismatch" in text.lower()):
        return StoreFault("refused", "the server sends whole files only, it does not know ranges")
    if "redential" in text and ("missing" in text.lower() or "metadata" in text.lower() or "169.254" in text):
        return StoreFault("denied", "no keys were found, in the environment or a profile")
    if "kind: Timeout" in text or "timed out" in text:
        return StoreFault("broken", f"the store sent nothing for {LIMITS.stall_seconds:g} seconds")
    if "kind: Connect" in text or "onnection refused" in text:
        return StoreFault("unreachable", "no connection to the store")
    if name == "GenericError" or isinstance(error, OSError):
        return StoreFault("broken", "the connection broke")
    return StoreFault("refused", f"the client failed ({name})")
