from __future__ import annotations

from pathlib import Path

import pytest

import tfrkit
from tfrkit.errors import RemoteAddressError, StorageError
from tfrkit.storage.addresses import parse_remote, require_local, signature_of

ADDRESSES = {
    "s3://bucket/x.tfrecord": "aws s3 cp s3://bucket/x.tfrecord .",
    "s3:/bucket/x": "aws s3 cp s3://bucket/x .",
    "gs://bucket/train-*": "gcloud storage cp 'gs://bucket/train-*' .",
    "https://example.org/x.tfrecord": "curl -LO https://example.org/x.tfrecord",
    "hf://datasets/owner/name/x.tfrecord": "hf download owner/name --repo-type dataset --local-dir .",
    "az://container/x": "azcopy copy az://container/x .",
    "weird+store://x": "copy it here with the store's own tool",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_address_is_refused_with_the_tool_that_fetches_it(address: str) -> None:
    with pytest.raises(RemoteAddressError, match="expected a local path, got a remote address") as caught:
        require_local(address)
    assert ADDRESSES[address] in str(caught.value)
    assert isinstance(caught.value, StorageError)


def test_address_has_a_store_and_a_key() -> None:
    assert parse_remote("s3a://bucket//data/x") == ("s3", "s3://bucket", "data/x")
    assert parse_remote(str(Path("gs://bucket/x"))) == ("gs", "gs://bucket", "x")
    assert parse_remote("abfs://box@account.dfs.core.windows.net/x") == (
        "az", "az://box@account.dfs.core.windows.net", "x",
    )  # fmt: skip
    assert parse_remote("data/x") is None
    for address in ("s3://", "s3:///x"):
        with pytest.raises(StorageError, match="expected s3://bucket/key, got no bucket"):
            parse_remote(address)


def test_signed_part_is_kept_out_of_names() -> None:
    found = parse_remote("https://host/x.tfrecord?X-Amz-Signature=secret")
    assert found is not None and "secret" not in str(found)
    assert signature_of(found.address) == "X-Amz-Signature=secret"
    assert parse_remote("https://host/x.tfrecord") == found
    with pytest.raises(RemoteAddressError) as caught:
        require_local("https://host/y?X-Amz-Signature=secret")
    assert "secret" not in str(caught.value)
    with pytest.raises(StorageError, match="without name and password") as caught_login:
        parse_remote("https://me:secret@host/x")
    assert "secret" not in str(caught_login.value)


def test_file_address_is_answered_with_its_path() -> None:
    with pytest.raises(RemoteAddressError, match="give the path alone: /data/x"):
        require_local("file:///data/x")


@pytest.mark.parametrize("path", ["x.tfrecord", "/a/b", "C:/data", "a:b", "./s3:x", "data/s3://x", "-", "~/x", ""])
def test_path_is_none(path: str) -> None:
    require_local(path)


def test_file_that_is_called_so_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s3:").mkdir()
    (tmp_path / "s3:" / "x").write_bytes(b"")
    require_local("s3://x")


def test_build_refuses_inputs_at_addresses_and_creates_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(RemoteAddressError, match="expected a local path"):
        tfrkit.build(tfrkit.sources.arrays("s3://bucket/digits.npz"), "out")
    assert list(tmp_path.iterdir()) == []
