"""The fault server answers like moto and Azurite, so that tests against it mean something."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import obstore
import pytest
from clients import make_azure, make_gcs, make_s3
from servers import S3_KEY, FaultServer, Reply, Started

# One row is one request: method, path below the bucket, headers, body. `{etag}` is the ETag of the last answer that had
# one, `{upload}` the id of the last upload.
# moto wants a signature and does not check it.
SIGNED = {"Authorization": f"AWS4-HMAC-SHA256 Credential={S3_KEY}/20260101/us-east-1/s3/aws4_request, Signature=0"}
PART = b"p" * (5 << 20)
TABLE: list[tuple[str, str, dict[str, str], bytes]] = [
    ("GET", "s/missing", {}, b""),
    ("HEAD", "s/missing", {}, b""),
    ("PUT", "s/a", {}, b"0123456789"),
    ("GET", "s/a", {}, b""),
    ("HEAD", "s/a", {}, b""),
    ("GET", "s/a", {"Range": "bytes=2-4"}, b""),
    ("GET", "s/a", {"Range": "bytes=8-99"}, b""),
    ("GET", "s/a", {"Range": "bytes=7-"}, b""),
    ("GET", "s/a", {"Range": "bytes=-3"}, b""),
    ("GET", "s/a", {"Range": "bytes=10-12"}, b""),
    ("GET", "s/a", {"If-Match": "{etag}"}, b""),
    ("GET", "s/a", {"If-Match": '"other"'}, b""),
    ("GET", "s/a", {"If-Match": '"other"', "Range": "bytes=2-4"}, b""),
    ("GET", "s/a", {"If-None-Match": "{etag}"}, b""),
    ("PUT", "s/a", {"If-None-Match": "*"}, b"again"),
    ("GET", "s/a", {}, b""),
    ("PUT", "s/new", {"If-None-Match": "*"}, b"first"),
    ("PUT", "s/new", {"If-Match": "{etag}"}, b"second"),
    ("PUT", "s/new", {"If-Match": '"0123"'}, b"third"),
    ("PUT", "s/none", {"If-Match": '"0123"'}, b"third"),
    ("GET", "s/new", {}, b""),
    ("PUT", "s/empty", {}, b""),
    ("GET", "s/empty", {}, b""),
    ("PUT", "s/d/x%20%26y", {}, b"odd name"),
    ("PUT", "s/d/z", {}, b"z"),
    ("GET", "?list-type=2&prefix=s/", {}, b""),
    ("GET", "?list-type=2&prefix=s/&delimiter=/", {}, b""),
    ("GET", "?list-type=2&prefix=s/&max-keys=2", {}, b""),
    ("GET", "?list-type=2&prefix=s/&start-after=s/a", {}, b""),
    ("GET", "?list-type=2&prefix=s/nothing", {}, b""),
    ("POST", "s/big?uploads", {}, b""),
    ("PUT", "s/big?partNumber=1&uploadId={upload}", {}, PART),
    ("PUT", "s/big?partNumber=2&uploadId={upload}", {}, b"end"),
    ("GET", "s/big", {}, b""),
    ("POST", "s/big?uploadId={upload}", {}, b"{parts}"),
    ("GET", "s/big", {"Range": "bytes=5242879-5242883"}, b""),
    ("HEAD", "s/big", {}, b""),
    ("POST", "s/big?uploads", {}, b""),
    ("PUT", "s/big?partNumber=1&uploadId={upload}", {}, b"x"),
    ("POST", "s/big?uploadId={upload}", {"If-None-Match": "*"}, b"{parts}"),
    ("DELETE", "s/big?uploadId={upload}", {}, b""),
    ("DELETE", "s/big?uploadId={upload}", {}, b""),
    ("DELETE", "s/a", {}, b""),
    ("DELETE", "s/a", {}, b""),
    ("GET", "s/a", {}, b""),
]


def ask(server: Started) -> list[dict[str, Any]]:
    """Make all requests of the table in order; return what matters of each answer."""
    known = {"etag": "", "upload": ""}
    parts: list[str] = []
    answers = []
    for method, path, headers, body in TABLE:
        if body == b"{parts}":
            rows = [f"<Part><PartNumber>{n}</PartNumber><ETag>{e}</ETag></Part>" for n, e in enumerate(parts, 1)]
            body = f"<CompleteMultipartUpload>{''.join(rows)}</CompleteMultipartUpload>".encode()
        headers = {name: value.format(**known) for name, value in headers.items()}
        reply = server.request(method, f"/bucket/{path.format(**known)}", headers=headers | SIGNED, body=body)
        known["etag"] = reply.headers.get("etag", known["etag"])
        if found := re.search(rb"<UploadId>(.+?)</UploadId>", reply.body):
            known["upload"] = found[1].decode()
            parts = []
        if "partNumber" in path:
            parts.append(reply.headers["etag"])
        answers.append({"request": f"{method} {path} {headers}", **describe(method, path, reply)})
    return answers


def describe(method: str, path: str, reply: Reply) -> dict[str, Any]:
    facts: dict[str, Any] = {"status": reply.status}
    if reply.status >= 400:
        # An error of HEAD has no body to name it.
        code = re.search(rb"<Code>(.*?)</Code>", reply.body)
        return facts | {"code": code and code[1] if method != "HEAD" else None}
    names = ["etag", "content-range"]
    if method in ("GET", "HEAD") and "list-type" not in path:
        names += ["content-length"]
    facts |= {name: reply.headers.get(name) for name in names}
    if "list-type" in path:
        fields = rb"<(Key|Size|ETag|KeyCount|IsTruncated)>(.*?)</|<(CommonPrefixes)><Prefix>(.*?)</"
        facts["list"] = sorted(re.findall(fields, reply.body.replace(b"&quot;", b'"')))
    elif method == "GET":
        facts["body"] = reply.body[:100]
    return facts


def test_fault_server_answers_every_request_of_the_table_as_moto_does(fault_server: FaultServer, moto: Started) -> None:
    pairs = zip(ask(fault_server), ask(moto), strict=True)
    assert [pair for pair in pairs if pair[0] != pair[1]] == []


# --- through the client: all four dialects


def outcome(call: Callable[[], Any]) -> Any:
    """The result of a call, or the kind of its error."""
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - the kind is the result
        return type(error).__name__


def use(store: Any) -> list[Any]:
    """What a client sees of a store, as plain values."""
    data = bytes(range(256)) * 10
    found: list[Any] = []

    def get(name: str, **options: Any) -> Any:
        return outcome(lambda: bytes(obstore.get(store, name, options=options or None).bytes()))

    def put(name: str, data: bytes, mode: Any) -> Any:
        result = outcome(lambda: obstore.put(store, name, data, mode=mode))
        return result if isinstance(result, str) else "stored"

    for row in obstore.list(store, "u").collect():
        obstore.delete(store, row["path"])
    found += [get("u/none"), outcome(lambda: obstore.head(store, "u/none"))]
    first = obstore.put(store, "u/a", data)
    found += [get("u/a") == data, get("u/a", range=(5, 9)), get("u/a", range={"offset": 2555})]
    found += [get("u/a", range=(2550, 9999)), get("u/a", range=(9998, 9999))]
    found += [get("u/a", range=(5, 9), if_match=first["e_tag"]), get("u/a", range=(5, 9), if_match='"0x8D000"')]
    found += [get("u/a", if_none_match=first["e_tag"])]
    found += [put("u/a", b"x", "create"), put("u/new", b"1", "create"), put("u/new", b"2", "create"), get("u/new")]
    version = obstore.head(store, "u/new")
    update = {name: version[name] for name in ("e_tag", "version") if version.get(name)}
    found += [put("u/new", b"3", update), put("u/new", b"4", update), get("u/new")]
    obstore.put(store, "u/big", b"q" * (11 << 20), chunk_size=5 << 20)
    found += [obstore.head(store, "u/big")["size"], get("u/big", range=(10 << 20, (10 << 20) + 3))]
    for name in ("u/d/x y&z", "u/d/e/f"):
        obstore.put(store, name, b"")
    found += [get("u/d/e/f")]
    found += [[(row["path"], row["size"]) for row in obstore.list(store, "u").collect()]]
    folders = obstore.list_with_delimiter(store, "u")
    found += [sorted(folders["common_prefixes"]), sorted(row["path"] for row in folders["objects"])]
    obstore.delete(store, ["u/d/x y&z", "u/d/e/f"])
    found += [
        [row["path"] for row in obstore.list(store, "u/d").collect()],
        outcome(lambda: obstore.delete(store, "u/a")),
    ]
    found += [get("u/a")]
    return found


@pytest.mark.parametrize("dialect", ["s3", "gs"])
def test_client_sees_the_same_on_the_fault_server_as_on_moto(
    fault_server: FaultServer, moto: Started, dialect: str
) -> None:
    theirs = use(make_s3(moto))
    ours = use(make_s3(fault_server) if dialect == "s3" else make_gcs(fault_server))
    assert ours == theirs


def test_client_sees_the_same_on_the_fault_server_as_on_azurite(fault_server: FaultServer, azurite: Started) -> None:
    theirs = use(make_azure(azurite))
    ours = use(make_s3(fault_server))
    assert ours == theirs
