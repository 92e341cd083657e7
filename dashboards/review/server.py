"""The server of the review page: loopback only, one reviewer, and an address that nobody can guess.

A request is answered if its path begins with the random token, its ``Host`` is this server, and its ``Origin``, if any,
is this page. So no page of another origin and no other user can read the text. Nothing of it is logged.
"""

import hmac
import json
import secrets
import socket
from base64 import b64decode
from importlib.resources import files

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from tasks.corpora.masked_text import DIRECT_IDENTIFIERS
from tasks.errors import PalimpsestError, ResourceError
from tasks.review.reading import Reading
from tasks.review.record import MARK_CLASSES, Mark

HOST = "127.0.0.1"
_LARGEST_REQUEST = 1 << 20
"""Largest request in bytes."""


class Guard:
    """Refuses requests of other origins, under other names, without the token or without the password."""

    def __init__(self, app: ASGIApp, port: int, token: str, password: str | None) -> None:
        self.app, self.token, self.password = app, token, password
        self.hosts = {f"{HOST}:{port}", f"localhost:{port}"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it without a reason."""
        if scope["type"] != "http":
            return
        headers = Request(scope).headers
        host, origin = headers.get("host", ""), headers.get("origin")
        first = scope["path"].split("/")[1]
        if (
            host not in self.hosts
            or (origin is not None and origin != f"http://{host}")
            or (scope["method"] != "GET" and origin is None)
            or headers.get("sec-fetch-site", "none") not in ("none", "same-origin")
            or not hmac.compare_digest(first.encode(), self.token.encode())
        ):
            await Response("refused", 403)(scope, receive, send)
        elif self.password is not None and not _knows(headers.get("authorization", ""), self.password):
            asked = {"WWW-Authenticate": 'Basic realm="palimpsest review"'}
            await Response("a password is needed", 401, asked)(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def _knows(authorization: str, password: str) -> bool:
    try:
        given = b64decode(authorization.removeprefix("Basic "), validate=True).partition(b":")[2]
    except ValueError:
        return False
    return hmac.compare_digest(given, password.encode())


def make_app(reading: Reading, port: int, token: str, password: str | None = None) -> ASGIApp:
    """The application; ``token`` is the first part of each path."""
    page = (files("dashboards.review") / "page.html").read_text(encoding="utf-8")

    def state() -> dict[str, object]:
        line = reading.next_line()
        return {"shown": None if line is None else reading.shown(line), "bound": reading.bound()}

    async def show(request: Request) -> Response:
        nonce = secrets.token_urlsafe()
        about = {
            "corpus": reading.corpus,
            "technique": reading.technique,
            "reviewer": reading.reviewer,
            "suggestions": reading.suggestions,
            "classes": MARK_CLASSES,
            "direct": sorted(DIRECT_IDENTIFIERS),
        }
        html = page.replace("{{nonce}}", nonce).replace("{{about}}", json.dumps(about).replace("<", "\\u003c"))
        policy = (
            f"default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; connect-src 'self'; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        return _closed(Response(html, media_type="text/html", headers={"Content-Security-Policy": policy}))

    async def line(request: Request) -> Response:
        return _closed(JSONResponse(await run_in_threadpool(state)))

    async def undo(request: Request) -> Response:
        reading.undo()
        return await line(request)

    async def save(request: Request) -> Response:
        try:
            body = await request.body()
            if len(body) > _LARGEST_REQUEST:
                raise ValueError
            given = json.loads(body)
            marks = [Mark(int(m["start"]), int(m["end"]), str(m["label"]), m["direct"] is True) for m in given["marks"]]
            number, seconds = int(given["line"]), float(given["seconds"])
            if not 0 <= seconds < 1e6:
                raise ValueError
        except (ValueError, TypeError, KeyError):
            return _closed(JSONResponse({"error": "the request is no reviewed line."}, 400))
        try:
            await run_in_threadpool(reading.save, number, marks, seconds)
        except (PalimpsestError, OSError) as error:
            return _closed(JSONResponse({"error": str(error)}, 409))
        return await line(request)

    routes = [
        Route(f"/{token}/", show),
        Route(f"/{token}/line", line),
        Route(f"/{token}/save", save, methods=["POST"]),
        Route(f"/{token}/undo", undo, methods=["POST"]),
    ]
    return Guard(Starlette(routes=routes), port, token, password)


def _closed(response: Response) -> Response:
    response.headers.update(
        {
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "Cross-Origin-Resource-Policy": "same-origin",
            "Cross-Origin-Opener-Policy": "same-origin",
        }
    )
    return response


def listen(port: int) -> socket.socket:
    """A socket on loopback; ``port`` 0 takes a free one. Raises ``ResourceError`` if the port is in use."""
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except OSError as error:
        listener.close()
        raise ResourceError(f"port {port} cannot be used: {error.strerror}. Choose another one.") from None
    return listener


def serve(app: ASGIApp, listener: socket.socket) -> None:
    """Answer until the process is interrupted. No request is logged: its path contains the token."""
    import uvicorn

    settings = uvicorn.Config(app, log_level="critical", access_log=False, server_header=False, lifespan="off")
    uvicorn.Server(settings).run(sockets=[listener])
