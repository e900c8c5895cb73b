"""Requests that are refused, by the reason; no server runs."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from tfrkit.view.guard import MAX_BODY_NBYTES, Entry, Guard, Refusal, Request, Rules, check_request, list_headers

TOKEN = "0123456789abcdef0123456789abcdef"
RULES = Rules(TOKEN, 8123)
FRAMED = Rules(TOKEN, 8123, ancestors=("http://localhost:8888",))
COOKIE = f"tfrkit-8123={TOKEN}"
HOST = "127.0.0.1:8123"


def make_request(method: str = "GET", path: str = "/api/set", query: str = "", **headers: str | None) -> Request:
    """A request that is accepted, with other headers; None leaves one out."""
    given: dict[str, str | None] = {"host": HOST, "cookie": COOKIE, **headers}
    raw = [
        (name.replace("_", "-").encode(), value.encode("latin-1")) for name, value in given.items() if value is not None
    ]
    return Request(method, path, query, raw)


def make_post(path: str = "/api/export", **headers: str | None) -> Request:
    given = {"content_type": "application/json", "sec_fetch_site": "same-origin", **headers}
    return make_request("POST", path, **given)


GET_REFUSED: list[tuple[int, dict[str, Any]]] = [
    # Host: DNS rebinding arrives with the attacker's name.
    (421, {"host": "evil.example"}),
    (421, {"host": "evil.example:8123"}),
    (421, {"host": None}),
    (421, {"host": ""}),
    (421, {"host": "127.0.0.1.evil.example:8123"}),
    (421, {"host": "localhost.evil.example"}),
    (421, {"host": "127.0.0.1@evil.example"}),
    (421, {"host": "127.0.0.1:8123, evil.example"}),
    (421, {"host": "127.0.0.2:8123"}),
    (421, {"host": "0.0.0.0:8123"}),
    (421, {"host": "[::]:8123"}),
    (421, {"host": "2130706433:8123"}),
    (421, {"host": "0x7f.1"}),
    (421, {"host": "localhost."}),
    (421, {"host": "127.0.0.1:"}),
    (421, {"host": "127.0.0.1:port"}),
    (421, {"host": "127.0.0.1:123456"}),
    (421, {"host": "http://127.0.0.1"}),
    (421, {"host": "127.0.0.1/"}),
    (421, {"host": " 127.0.0.1"}),
    # Token and cookie.
    (403, {"cookie": None}),
    (403, {"cookie": ""}),
    (403, {"cookie": "tfrkit-8123="}),
    (403, {"cookie": f"tfrkit-8123={TOKEN[:-1]}"}),
    (403, {"cookie": f"tfrkit-8123={TOKEN}0"}),
    (403, {"cookie": f"tfrkit-8123={TOKEN.upper()}"}),
    (403, {"cookie": f"tfrkit-9999={TOKEN}"}),
    (403, {"cookie": f"TFRKIT-8123={TOKEN}"}),
    (403, {"cookie": None, "query": f"token={TOKEN}"}),
    (403, {"cookie": None, "authorization": f"Bearer {TOKEN}"}),
    (403, {"cookie": None, "path": "/", "query": "token=wrong"}),
    (403, {"cookie": None, "path": "/", "query": "token="}),
    (403, {"path": "/", "query": "token=wrong"}),
    (403, {"cookie": None, "path": f"/{TOKEN}/"}),
    (403, {"cookie": None, "path": "/w/main.js"}),
    (403, {"cookie": "tfrkit-8123=\xff\xfe"}),
    # Other sites.
    (403, {"origin": "http://evil.example"}),
    (403, {"origin": "null"}),
    (403, {"origin": "http://127.0.0.1:9999"}),
    (403, {"origin": "http://localhost:8123"}),
    (403, {"origin": "file://"}),
    (403, {"sec_fetch_site": "cross-site"}),
    (403, {"sec_fetch_site": "same-site"}),
    (403, {"sec_fetch_site": "anything"}),
    (403, {"sec_fetch_site": "cross-site", "sec_fetch_mode": "no-cors", "sec_fetch_dest": "image", "path": "/t"}),
    (403, {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}),
    (403, {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe", "path": "/"}),
    (403, {"sec_fetch_site": "cross-site", "sec_fetch_mode": "cors", "sec_fetch_dest": "empty", "path": "/"}),
    (403, {"sec_fetch_site": "same-site", "sec_fetch_mode": "no-cors", "path": "/w/main.js"}),
    # Methods.
    (405, {"method": "PUT"}),
    (405, {"method": "DELETE"}),
    (405, {"method": "PATCH"}),
    (405, {"method": "OPTIONS"}),
    (405, {"method": "TRACE"}),
    (405, {"method": "CONNECT"}),
    (405, {"method": "PROPFIND"}),
    (405, {"method": "get"}),
    (405, {"method": "POST"}),
    (405, {"method": "POST", "path": "/", "query": f"token={TOKEN}"}),
    # Paths.
    (400, {"path": "/w/../../etc/passwd"}),
    (400, {"path": "/w/..%2f..%2fetc/passwd"}),
    (400, {"path": "//evil.example/"}),
    (400, {"path": "/w/a\\b"}),
    (400, {"path": "/w/a\x00b"}),
    (400, {"path": "/w/a b"}),
    (400, {"path": "/api/record/١"}),
    (400, {"path": "*"}),
    (400, {"path": "http://127.0.0.1/"}),
    # Sizes.
    (414, {"query": "where=" + "x" * 20_000}),
    (431, {"x_more": "x" * 40_000}),
    (413, {"content_length": str(MAX_BODY_NBYTES + 1)}),
    (400, {"content_length": "-1"}),
    (400, {"content_length": "1e3"}),
]  # fmt: skip


@pytest.mark.parametrize(("status", "changes"), GET_REFUSED, ids=str)
def test_request_is_refused(status: int, changes: dict[str, Any]) -> None:
    verdict = check_request(RULES, make_request(**changes))
    assert isinstance(verdict, Refusal), verdict
    assert verdict.status == status


POST_REFUSED: list[tuple[int, dict[str, Any]]] = [
    (405, {"path": "/api/set"}),
    (405, {"path": "/t"}),
    (405, {"path": "/api/export/"}),
    (403, {"sec_fetch_site": None}),
    (403, {"sec_fetch_site": "none"}),
    (403, {"sec_fetch_site": "same-site"}),
    (403, {"sec_fetch_site": "cross-site"}),
    (403, {"sec_fetch_site": "same-origin", "origin": "http://evil.example"}),
    (403, {"sec_fetch_site": None, "origin": "null"}),
    (403, {"sec_fetch_site": None, "origin": "http://127.0.0.1"}),
    (403, {"cookie": None}),
    (415, {"content_type": None}),
    (415, {"content_type": "text/plain"}),
    (415, {"content_type": "application/x-www-form-urlencoded"}),
    (415, {"content_type": "multipart/form-data"}),
    (415, {"content_type": "application/json, text/plain"}),
    (415, {"content_type": "application/jsonp"}),
    (421, {"host": "evil.example:8123", "origin": "http://evil.example:8123"}),
]


@pytest.mark.parametrize(("status", "changes"), POST_REFUSED, ids=str)
def test_post_is_refused(status: int, changes: dict[str, Any]) -> None:
    verdict = check_request(RULES, make_post(**changes))
    assert isinstance(verdict, Refusal), verdict
    assert verdict.status == status


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"method": "HEAD"},
        {"host": "LOCALHOST:8123"},
        {"host": "[::1]:8123"},
        {"host": "127.0.0.1"},
        {"host": "localhost:9000"},  # ssh -L 9000:127.0.0.1:8123
        {"cookie": f"other=1; {COOKIE}"},
        {"cookie": f"tfrkit-8123=planted; {COOKIE}"},
        {"sec_fetch_site": "none"},
        {"sec_fetch_site": "same-origin", "origin": f"http://{HOST}"},
        {"path": "/", "sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"},
    ],
    ids=str,
)
def test_request_of_the_page_is_routed(changes: dict[str, Any]) -> None:
    assert check_request(RULES, make_request(**changes)) == changes.get("path", "/api/set")


def test_post_of_the_page_is_routed() -> None:
    assert check_request(RULES, make_post()) == "/api/export"
    assert check_request(RULES, make_post("/api/tag", sec_fetch_site=None, origin=f"http://{HOST}")) == "/api/tag"


def test_two_hosts_are_refused() -> None:
    request = make_request()
    verdict = check_request(RULES, Request("GET", "/api/set", "", [*request.headers, (b"host", b"evil.example")]))
    assert verdict == Refusal(421, "host is not a name of this server")


def test_allowed_name_is_a_host() -> None:
    rules = Rules(TOKEN, 8123, names=("viewer.example",))
    assert check_request(rules, make_request(host="viewer.example:8123")) == "/api/set"
    assert isinstance(check_request(rules, make_request()), Refusal)


def test_host_of_a_proxy_is_accepted_with_the_token_in_the_path_only() -> None:
    behind = Rules(TOKEN, 8123, ancestors=("'self'",), has_proxy=True)
    path, host = f"/{TOKEN}/api/set", "hub.example"
    assert check_request(behind, make_request(path=path, host=host, cookie=None)) == "/api/set"
    export = make_post(f"/{TOKEN}/api/export", host=host, cookie=None, origin=f"https://{host}")
    assert check_request(behind, export) == "/api/export"
    for rules, request in (
        (behind, make_request(host=host)),
        (behind, make_request(path=f"/{'0' * len(TOKEN)}/api/set", host=host)),
        (behind, make_request(path="/", query=f"token={TOKEN}", host=host)),
        (FRAMED, make_request(path=path, host=host, cookie=None)),
    ):
        assert check_request(rules, request) == Refusal(421, "host is not a name of this server")
    foreign = make_post(f"/{TOKEN}/api/export", host=host, cookie=None, origin="https://evil.example")
    assert check_request(behind, foreign) == Refusal(403, "origin is another site")


def test_token_in_the_address_enters_and_is_taken_out_of_it() -> None:
    request = make_request(path="/", query=f"record=3&token={TOKEN}&where=a+%3C+1", cookie=None)
    assert check_request(RULES, request) == Entry("record=3&where=a+%3C+1", is_foreign=False)


def test_token_in_the_path_is_for_framed_pages_only() -> None:
    for path, routed in ((f"/{TOKEN}/", "/"), (f"/{TOKEN}/api/set", "/api/set")):
        assert check_request(FRAMED, make_request(path=path, cookie=None)) == routed
        assert isinstance(check_request(RULES, make_request(path=path, cookie=None)), Refusal)
    visit = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "iframe"}
    assert check_request(FRAMED, make_request(path=f"/{TOKEN}/", cookie=None, **visit)) == "/"
    assert isinstance(check_request(FRAMED, make_request(path=f"/{TOKEN}/t", cookie=None, **visit)), Refusal)


def test_policy_has_nothing_unsafe_and_only_notebooks_may_frame() -> None:
    headers = list_headers(RULES)
    policy = headers["content-security-policy"]
    assert "unsafe" not in policy and "http" not in policy and "*" not in policy
    assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
    assert headers["x-frame-options"] == "DENY"
    assert "frame-ancestors http://localhost:8888" in list_headers(FRAMED)["content-security-policy"]
    assert not [name for name in headers if name.startswith("access-control")]


async def _call(request: Request, rules: Rules = RULES, body: bytes = b"") -> list[Mapping[str, Any]]:
    sent: list[Mapping[str, Any]] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"cache-control", b"private")]})
        await send({"type": "http.response.body", "body": f"{scope['path']} {message['type']}".encode()})

    async def receive() -> Mapping[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": request.method, "path": request.path, "headers": list(request.headers)}
    await Guard(app, rules)({**scope, "query_string": request.query.encode()}, receive, send)
    return sent


def call(request: Request, **options: Any) -> tuple[int, dict[str, str], str]:
    start, content = asyncio.run(_call(request, **options))
    headers = {name.decode(): value.decode() for name, value in start["headers"]}
    return start["status"], headers, content["body"].decode()


def test_guard_routes_and_keeps_headers_of_the_answer() -> None:
    status, headers, body = call(make_request())
    assert (status, body) == (200, "/api/set http.request")
    assert headers["cache-control"] == "private"
    assert headers["x-content-type-options"] == "nosniff"


def test_guard_refuses_in_the_one_error_shape_with_all_headers() -> None:
    status, headers, body = call(make_request(host="evil.example"))
    assert status == 421
    assert body == '{"ok": false, "error": "host is not a name of this server", "status": 421, "where": {}}'
    assert headers["content-security-policy"].startswith("default-src 'none'")


def test_guard_sets_the_cookie_and_redirects() -> None:
    status, headers, _ = call(make_request(path="/", query=f"token={TOKEN}&record=3", cookie=None))
    assert (status, headers["location"]) == (303, "./?record=3")
    assert headers["set-cookie"] == f"tfrkit-8123={TOKEN}; HttpOnly; SameSite=Strict; Path=/"
    assert TOKEN not in headers["location"]


def test_guard_moves_on_from_a_page_of_its_own_when_another_site_links_to_it() -> None:
    visit = {"sec_fetch_site": "cross-site", "sec_fetch_mode": "navigate", "sec_fetch_dest": "document"}
    query = f"token={TOKEN}&where=%22%3E%3Cscript%3E"
    status, headers, body = call(make_request(path="/", query=query, cookie=None, **visit))
    assert status == 200 and "set-cookie" in headers
    assert "<script" not in body and TOKEN not in body
    assert "url=./?where=%22%3E%3Cscript%3E" in body


def test_guard_ends_a_body_that_grows_beyond_the_limit() -> None:
    _, _, body = call(make_post(), body=b"x" * (MAX_BODY_NBYTES + 1))
    assert body == "/api/export http.disconnect"


def test_guard_closes_websockets() -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def unused(*_: Any) -> Any:
        raise AssertionError

    asyncio.run(Guard(unused, RULES)({"type": "websocket"}, unused, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]
