"""The built front: files of the package, read once, compressed once. Names with a hash in them are kept by browsers."""

from __future__ import annotations

import gzip
import mimetypes
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

from starlette.responses import JSONResponse, Response

from tidelog.console.web.problems import Problem

INDEX: Final = "index.html"
BASE: Final = '<base href="/">'
_HASHED: Final = re.compile(r"assets/.+-[A-Za-z0-9]{8,}\.[a-z0-9]+")
_TYPES: Final = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".html": "text/html; charset=utf-8",
    ".woff2": "font/woff2",
    ".map": "application/json",
}
_MISSING: Final = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>tidelog console</title></head><body>
<h1>The console's pages are not built</h1><p>This copy of tidelog has the API of the console and not its pages. In a checkout of
the source, <code>make front</code> builds them (it needs Node); wheels have them.</p></body></html>"""


@dataclass(frozen=True, slots=True)
class _File:
    body: bytes
    zipped: bytes
    kind: str


class StaticFiles:
    """The files below a folder, by their path with slashes."""

    def __init__(self, folder: Traversable | None = None, base: str = "/") -> None:
        """``base``: the path that the console is served under, with a slash at both ends."""
        self._files: dict[str, _File] = {}
        root = files("tidelog.console").joinpath("static") if folder is None else folder
        if root.is_dir():
            self._load(root, "", base)

    @property
    def names(self) -> frozenset[str]:
        return frozenset(self._files)

    def response(self, path: str, *, accepts_gzip: bool) -> Response:
        """A file, or the page for every other path: the front finds its own way from there. 404 for a missing asset, and below
        ``api``, where a program asks."""
        found = self._files.get(path)
        if found is None and (path == "api" or path.startswith("api/")):
            return JSONResponse(Problem(404, "there is no such path: the API is below api/v1").as_json(), 404)
        if found is None and (path.startswith("assets/") or INDEX not in self._files):
            if path.startswith("assets/"):
                return Response("there is no such file", 404, media_type="text/plain")
            return Response(_MISSING, 200 if path in ("", INDEX) else 404, media_type="text/html")
        if found is None:
            path, found = INDEX, self._files[INDEX]
        headers = {
            "Cache-Control": "public, max-age=31536000, immutable" if _HASHED.fullmatch(path) else "no-store",
            "Vary": "Accept-Encoding",
        }
        body = found.body
        if accepts_gzip and len(found.zipped) < len(found.body):
            body = found.zipped
            headers["Content-Encoding"] = "gzip"
        return Response(body, 200, headers, found.kind)

    def _load(self, folder: Traversable, prefix: str, base: str) -> None:
        for each in folder.iterdir():
            name = f"{prefix}{each.name}"
            if each.is_dir():
                self._load(each, f"{name}/", base)
            elif not each.name.startswith("."):
                body = each.read_bytes()
                if name == INDEX:
                    body = body.replace(BASE.encode(), f'<base href="{base}">'.encode())
                self._files[name] = _File(body, gzip.compress(body, 9, mtime=0), kind_of(each.name))


def kind_of(name: str) -> str:
    """The media type of a file."""
    for ending, kind in _TYPES.items():
        if name.endswith(ending):
            return kind
    return mimetypes.guess_type(name)[0] or "application/octet-stream"


def csp() -> Mapping[str, str]:
    """The headers of every answer: nothing from elsewhere, nothing inline, no frame, no guessing of types."""
    return {
        "Content-Security-Policy": (
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
            "connect-src 'self'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
        ),
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        "Referrer-Policy": "no-referrer",
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    }
