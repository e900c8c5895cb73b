"""Clients of obstore for each server, without anything of tfrkit."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from obstore.store import AzureStore, GCSStore, HTTPStore, S3Store
from servers import AZURITE_ACCOUNT, AZURITE_KEY, S3_KEY, S3_SECRET, Started

# Retries are quick: the servers are on this machine.
_CLIENT: dict[str, Any] = {"allow_http": True, "timeout": timedelta(seconds=60), "read_timeout": timedelta(seconds=5)}
_RETRY: dict[str, Any] = {
    "max_retries": 10,
    "backoff": {"init_backoff": timedelta(milliseconds=10), "max_backoff": timedelta(milliseconds=100), "base": 2},
}


def make_s3(server: Started, bucket: str = "bucket") -> S3Store:
    return S3Store(
        bucket, endpoint=server.url, access_key_id=S3_KEY, secret_access_key=S3_SECRET, region="us-east-1",
        client_options=_CLIENT, retry_config=_RETRY,
    )  # fmt: skip


def make_gcs(server: Started, bucket: str = "bucket") -> GCSStore:
    key = (
        f'{{"gcs_base_url":"{server.url}","disable_oauth":true,"client_email":"","private_key":"","private_key_id":""}}'
    )
    return GCSStore(bucket, service_account_key=key, client_options=_CLIENT, retry_config=_RETRY)


def make_azure(server: Started, container: str = "bucket") -> AzureStore:
    return AzureStore(
        container_name=container, account_name=AZURITE_ACCOUNT, account_key=AZURITE_KEY,
        endpoint=f"{server.url}/{AZURITE_ACCOUNT}", client_options=_CLIENT, retry_config=_RETRY,
    )  # fmt: skip


def make_http(server: Started, bucket: str = "bucket") -> HTTPStore:
    return HTTPStore(f"{server.url}/{bucket}", client_options=_CLIENT, retry_config=_RETRY)
