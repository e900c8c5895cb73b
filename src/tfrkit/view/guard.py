"""Refuse every request that does not come from the page of this server: host, token, origin, method, size.

A server on loopback is reachable by every page that the browser has open, and by other names through DNS rebinding. So
`Host` is compared with a fixed list, each request needs the token, and requests that other sites start are refused.
"""

from __future__ import annotations

import hmac
import html
import json
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode

Headers = Sequence[tuple[bytes, bytes]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
App = Callable[[Any, Receive, Send], Awaitable[None]]

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
POST_PATHS = ("/api/export", "/api/tag")
MAX_TARGET_NBYTES = 16 << 10
MAX_HEADER_NBYTES = 32 << 10
MAX_BODY_NBYTES = 1 << 20

_POLICY = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self' blob:",
    "media-src": "'self' blob:",
    "connect-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "require-trusted-types-for": "'script'",
}
# For bytes from records: no script, no frames, no origin of its own.
SANDBOX_POLICY = "sandbox; default-src 'none'; frame-ancestors 'none'"

# Everything variable is in the query, so a path has nothing to decode.
_PATH = re.compile(r"/[A-Za-z0-9/_.-]*")
_HOST = re.compile(r"(\[[0-9a-f:]+\]|[a-z0-9.-]+)(?::([0-9]{1,5}))?")
_JSON_TYPE = re.compile(r"application/json(?:\s*;\s*charset=utf-8)?", re.IGNORECASE)


@dataclass(frozen=True)
class Rules:
    """The requests that are accepted.

    `names` are the hosts of this server in lower case. `ancestors` are the origins that may frame the page; with any,
    the token may also be the first part of the path, because a framed page gets no cookies. With `has_proxy` such a
    request may have any host: that of the server it came through. Another site does not know the path.
    """

    token: str
    port: int
    names: tuple[str, ...] = LOOPBACK
    ancestors: tuple[str, ...] = ()
    has_proxy: bool = False

    @property
    def cookie(self) -> str:
        """Name of the cookie: browsers share cookies between the ports of a host."""
        return f"tfrkit-{self.port}"


@dataclass(frozen=True)
class Request:
    """The parts of a request that are checked."""

    method: str
    path: str
    query: str = ""
    headers: Headers = ()

    def list(self, name: str) -> list[str]:
        """Return the values of a header."""
        return [value.decode("latin-1") for key, value in self.headers if key.lower() == name.encode()]

    def get(self, name: str) -> str | None:
        """Return the only value of a header, None without one, and all of them joined if there are several."""
        return ", ".join(self.list(name)) if self.list(name) else None


@dataclass(frozen=True)
class Refusal:
    """Status and reason of a refused request."""

    status: int
    error: str


@dataclass(frozen=True)
class Entry:
    """A request with the token in its query: answered with a cookie and the address without the token."""

    query: str
    is_foreign: bool


def check_request(rules: Rules, request: Request) -> Refusal | Entry | str:
    """Return the refusal of a request, its entry, or the path to route."""
    return check_host(rules, request) or _check_sizes(request) or _check_form(request) or _check_key(rules, request)


def check_host(rules: Rules, request: Request) -> Refusal | None:
    """Refuse a `Host` that is not one of ours. The port may differ: `ssh -L` maps another one to ours."""
    hosts = request.list("host")
    found = _HOST.fullmatch(hosts[0].lower()) if len(hosts) == 1 else None
    is_known = found is not None and (found[1] in rules.names or (rules.has_proxy and _has_key(rules, request)))
    return None if is_known else Refusal(421, "host is not a name of this server")


def _check_sizes(request: Request) -> Refusal | None:
    if len(request.path) + len(request.query) > MAX_TARGET_NBYTES:
        return Refusal(414, "address is too long")
    if sum(len(name) + len(value) for name, value in request.headers) > MAX_HEADER_NBYTES:
        return Refusal(431, "headers are too long")
    lengths = request.list("content-length")
    if len(lengths) > 1 or any(not length.isdecimal() for length in lengths):
        return Refusal(400, "content length is not a number")
    if lengths and int(lengths[0]) > MAX_BODY_NBYTES:
        return Refusal(413, "body is too long")
    return None


def _check_form(request: Request) -> Refusal | None:
    if not _PATH.fullmatch(request.path) or ".." in request.path or "//" in request.path:
        return Refusal(400, "path is not in its plain form")
    if request.method not in ("GET", "HEAD", "POST"):
        return Refusal(405, "method is not GET, HEAD or POST")
    return None


def _check_key(rules: Rules, request: Request) -> Refusal | Entry | str:
    """Check the token, then the origin of the request."""
    path, given = request.path, dict(parse_qsl(request.query)).get("token")
    if _has_key(rules, request):
        path = f"/{path[1:].partition('/')[2]}"
    elif path == "/" and given is not None:
        if not _is_equal(given, rules.token):
            return Refusal(403, "token is wrong")
    elif not any(_is_equal(value, rules.token) for value in _read_cookies(request, rules.cookie)):
        return Refusal(403, "token is missing, open the address that the command printed")
    refusal = _check_origin(rules, request, path)
    if refusal is not None:
        return refusal
    if path == "/" and given is not None and request.method != "POST":
        kept = [(name, value) for name, value in parse_qsl(request.query) if name != "token"]
        return Entry(urlencode(kept), request.get("sec-fetch-site") in ("cross-site", "same-site"))
    return path


def _has_key(rules: Rules, request: Request) -> bool:
    """Whether the first part of the path is the token, which it may be in a frame."""
    head = request.path[1:].partition("/")[0]
    return bool(rules.ancestors and head and _is_equal(head, rules.token))


def _check_origin(rules: Rules, request: Request, path: str) -> Refusal | None:
    site, origin, host = request.get("sec-fetch-site"), request.get("origin"), str(request.get("host")).lower()
    is_ours = origin is not None and origin.lower() in (f"http://{host}", f"https://{host}")
    if origin is not None and not is_ours:
        return Refusal(403, "origin is another site")
    if request.method == "POST":
        if path not in POST_PATHS:
            return Refusal(405, "method is not GET or HEAD")
        if site != "same-origin" and not (site is None and is_ours):
            return Refusal(403, "request was started by another site")
        if not _JSON_TYPE.fullmatch(request.get("content-type") or ""):
            return Refusal(415, "content type is not application/json")
        return None
    if site in (None, "none", "same-origin"):
        return None
    # A link to the page, or its frame in a notebook, may be followed from anywhere; nothing else.
    places = ("document", "iframe") if rules.ancestors else ("document",)
    is_visit = request.get("sec-fetch-mode") == "navigate" and request.get("sec-fetch-dest") in places
    if site not in ("cross-site", "same-site") or path != "/" or not is_visit:
        return Refusal(403, "request was started by another site")
    return None


def _is_equal(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), token.encode())


def _read_cookies(request: Request, name: str) -> list[str]:
    pairs = [pair.strip().partition("=") for line in request.list("cookie") for pair in line.split(";")]
    return [value for key, _, value in pairs if key == name]


def list_headers(rules: Rules) -> dict[str, str]:
    """Return the headers of every answer."""
    ancestors = " ".join(rules.ancestors) or "'none'"
    policy = "; ".join(f"{name} {value}" for name, value in {**_POLICY, "frame-ancestors": ancestors}.items())
    return {
        "content-security-policy": policy,
        "cross-origin-opener-policy": "same-origin",
        # A framed page belongs to another site, which has to be able to load it.
        "cross-origin-resource-policy": "cross-origin" if rules.ancestors else "same-origin",
        "referrer-policy": "no-referrer",
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
        **({} if rules.ancestors else {"x-frame-options": "DENY"}),
    }


class Guard:
    """ASGI application that checks each request before it reaches `app`, and adds headers to each answer."""

    def __init__(self, app: App, rules: Rules) -> None:
        self._app = app
        self._rules = rules
        self._headers = list_headers(rules)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        query = scope.get("query_string", b"").decode("latin-1")
        request = Request(scope["method"], scope["path"], query, scope["headers"])
        verdict = check_request(self._rules, request)
        send = self._add_headers(send)
        if isinstance(verdict, Refusal):
            await _answer(send, verdict.status, {"content-type": "application/json"}, _to_json(verdict))
        elif isinstance(verdict, Entry):
            await self._enter(send, verdict)
        else:
            await self._app({**scope, "path": verdict, "raw_path": verdict.encode()}, _limit_body(receive), send)

    def _add_headers(self, send: Send) -> Send:
        async def send_all(message: Mapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                more = [(n.encode(), v.encode()) for n, v in self._headers.items() if n.encode() not in given]
                message = {**message, "headers": [*message["headers"], *more]}
            await send(message)

        return send_all

    async def _enter(self, send: Send, entry: Entry) -> None:
        place = f"./?{entry.query}" if entry.query else "./"
        rules = self._rules
        headers = {"set-cookie": f"{rules.cookie}={rules.token}; HttpOnly; SameSite=Strict; Path=/"}
        if not entry.is_foreign:
            await _answer(send, 303, {**headers, "location": place})
            return
        # After a redirect that another site started, the browser would hold the cookie back; a page of our own that
        # moves on is a new start.
        text = f'<!doctype html><meta http-equiv="refresh" content="0;url={html.escape(place)}"><title>tfr view</title>'
        await _answer(send, 200, {**headers, "content-type": "text/html; charset=utf-8"}, text.encode())


def _limit_body(receive: Receive) -> Receive:
    """Pass on a body up to its limit, also if its length was not announced."""
    num_received = 0

    async def receive_limited() -> Mapping[str, Any]:
        nonlocal num_received
        message = await receive()
        num_received += len(message.get("body", b""))
        return message if num_received <= MAX_BODY_NBYTES else {"type": "http.disconnect"}

    return receive_limited


def _to_json(refusal: Refusal) -> bytes:
    return json.dumps({"ok": False, "error": refusal.error, "status": refusal.status, "where": {}}).encode()


async def _answer(send: Send, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
    shown = {**headers, "content-length": str(len(body))}
    raw = [(name.encode(), value.encode()) for name, value in shown.items()]
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})
