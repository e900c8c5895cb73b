"""Uploads in parts that were begun and never completed: stores do not list them as objects, and charge for them.

The client for all other requests (obstore) cannot list them, so this needs boto3, and works for s3:// only. Azure
removes such parts after a week by itself; Google Cloud Storage has a lifecycle rule for them.
"""

from __future__ import annotations

from typing import Any

from tfrkit._optional import import_or_explain
from tfrkit.errors import StorageError
from tfrkit.storage.addresses import parse_remote
from tfrkit.storage.options import options_of

_RULE = "or give the bucket a lifecycle rule that aborts incomplete uploads"


def abort_uploads(folder: str) -> int | None:
    """Abort the unfinished uploads of objects below a folder; return their number, None for a store without a list.

    Raises `StorageError` if boto3 is not installed, or the store refuses.
    """
    remote = parse_remote(folder)
    if remote is None or remote.scheme != "s3":
        return None
    try:
        boto3, botocore = import_or_explain("boto3", "remote"), import_or_explain("botocore", "remote")
    except ImportError:
        raise StorageError(
            "unfinished uploads can only be listed with boto3, which is not installed",
            shard=remote.address,
            hint=f"install it: pip install boto3    {_RULE}",
        ) from None
    options = options_of(remote.root)
    bucket, prefix = remote.root.partition("://")[2], f"{remote.key.rstrip('/')}/" if remote.key else ""
    num_aborted = 0
    try:
        config: Any = import_or_explain("botocore.config", "remote").Config(
            signature_version=botocore.UNSIGNED if options.anonymous else None, retries={"max_attempts": 5}
        )
        client = boto3.Session(profile_name=options.profile).client("s3", endpoint_url=options.endpoint, config=config)
        for page in client.get_paginator("list_multipart_uploads").paginate(Bucket=bucket, Prefix=prefix):
            for upload in page.get("Uploads") or ():
                client.abort_multipart_upload(Bucket=bucket, Key=upload["Key"], UploadId=upload["UploadId"])
                num_aborted += 1
    except Exception as error:  # noqa: BLE001 - boto3's errors have addresses and may have keys: only their kind is shown
        raise StorageError(
            f"cannot list unfinished uploads ({type(error).__name__})", shard=remote.address, hint=_RULE
        ) from None
    return num_aborted
