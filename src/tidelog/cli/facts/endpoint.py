"""Reads /facts of a node over HTTP, with the TLS and the login that its HTTP listener asks for."""

from __future__ import annotations

import base64
import json
import ssl
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

from tidelog.cli.refusal import CommandFailed
from tidelog.metrics.facts import SCHEMA

DEFAULT: Final = "http://localhost:9644"
TIMEOUT_S: Final = 10.0
LARGEST_PAGE: Final = 16 * 1024 * 1024
"""A page is much smaller; an endpoint that is none of a node may send anything."""

Page = dict[str, Any]


class Access(NamedTuple):
    """What the endpoints ask of a reader; None for nothing."""

    token_file: str | None = None
    user_file: str | None = None
    """A file with ``name:password``."""
    ca_file: str | None = None
    """PEM; None for the authorities of the system."""
    cert_file: str | None = None
    """PEM with the reader's own certificate and its key."""


def url_of(endpoint: str) -> str:
    """The address of the page, from a URL, or from ``host:port``. CommandFailed for another text."""
    text = endpoint if "://" in endpoint else f"http://{endpoint}"
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CommandFailed(f"--endpoint {endpoint}: it must be host:port, or a URL such as https://one.example:9644")
    return f"{parts.scheme}://{parts.netloc}/facts"


class Reader:
    """Reads pages. Several threads may use one."""

    def __init__(self, access: Access) -> None:
        """CommandFailed for a file that cannot be used."""
        self._headers = {} if (header := _authorization(access)) is None else {"Authorization": header}
        self._context: ssl.SSLContext | None = None
        try:
            self._context = ssl.create_default_context(cafile=access.ca_file)
            if access.cert_file is not None:
                self._context.load_cert_chain(access.cert_file)
        except (OSError, ssl.SSLError) as problem:
            raise CommandFailed(f"{access.cert_file or access.ca_file} cannot be used: {problem}") from None

    def read(self, endpoint: str) -> list[Page]:
        """The page of a node, or those of all processes that share an address. CommandFailed says what to change."""
        return self._read(url_of(endpoint))

    def share_record(self, endpoint: str, group: str, topic: str, partition: int, offset: int) -> list[Page]:
        """What a node knows of a record of a share group, or the processes that share an address. CommandFailed as ``read``, and
        where the reader may not describe the group and the topic."""
        query = urlencode({"group": group, "topic": topic, "partition": partition, "offset": offset})
        return self._read(f"{url_of(endpoint)}/share-record?{query}")

    def metrics(self, endpoint: str) -> str:
        """The page of metrics of a node. CommandFailed as ``read``."""
        url = url_of(endpoint).removesuffix("/facts") + "/metrics"
        body = self._body(url)
        if len(body) > LARGEST_PAGE:
            raise CommandFailed(f"{url} has more than {LARGEST_PAGE} bytes.")
        return body.decode("utf-8", "replace")

    def _read(self, url: str) -> list[Page]:
        return _pages(url, self._body(url))

    def _body(self, url: str) -> bytes:
        """At most one byte more than the largest page."""
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=self._context), _NoRedirect()
        )
        try:
            with opener.open(urllib.request.Request(url, headers=self._headers), timeout=TIMEOUT_S) as answer:
                body: bytes = answer.read(LARGEST_PAGE + 1)
        except urllib.error.HTTPError as problem:
            raise CommandFailed(_refused(url, problem.code, problem.read(1000).decode("utf-8", "replace").strip())) from None
        except (OSError, ValueError) as problem:
            raise CommandFailed(_unreachable(url, getattr(problem, "reason", problem))) from None
        return body


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A node never redirects, and a login is for no other host."""

    def redirect_request(self, *args: Any, **named: Any) -> None:
        return None


def _pages(url: str, body: bytes) -> list[Page]:
    try:
        page = json.loads(body) if len(body) <= LARGEST_PAGE else None
    except ValueError:
        page = None
    if not isinstance(page, dict) or "schema" not in page:
        raise CommandFailed(f"{url} is no page of a tidelog node.")
    if page["schema"] != SCHEMA:
        raise CommandFailed(
            f"{url} has schema {page['schema']} of the facts, and this tidelog reads {SCHEMA}: use the node's version."
        )
    return list(page.get("nodes", [page]))


def _authorization(access: Access) -> str | None:
    if access.token_file is not None:
        return f"Bearer {_line(access.token_file)}"
    if access.user_file is not None:
        return "Basic " + base64.b64encode(_line(access.user_file).encode()).decode()
    return None


def _line(path: str) -> str:
    """The first line that is neither blank nor a comment."""
    try:
        lines = [
            line for line in Path(path).read_text(encoding="utf-8").splitlines() if line.strip() and not line.startswith("#")
        ]
    except (OSError, UnicodeDecodeError) as problem:
        raise CommandFailed(f"{path} cannot be read: {getattr(problem, 'strerror', None) or 'it is not text in UTF-8'}") from None
    if not lines:
        raise CommandFailed(f"{path} holds no credential.")
    return lines[0].strip()


def _unreachable(url: str, reason: object) -> str:
    if isinstance(reason, ssl.SSLCertVerificationError):
        return f"{url}: the certificate is not trusted ({reason.verify_message}). Name its authority: --ca-file FILE"
    if isinstance(reason, ssl.SSLError):
        hint = "Does the node ask for a certificate (--cert-file FILE), or speak plain http?"
        return f"{url}: TLS failed ({reason.reason or reason}). {hint}"
    text = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
    return (
        f"{url} cannot be read: {text}. The node serves it at its setting tidelog.http.listener, 127.0.0.1:9644 unless set; an "
        "empty value turns it off. The node's log says where: metrics at ..."
    )


def _refused(url: str, status: int, text: str) -> str:
    if status == 401:
        return f"{url} needs a login: --token-file FILE or --user-file FILE, with one that the node accepts"
    if status == 404:
        return f"{url} is not served: the node is of a version before the facts, or the address is of something else"
    return f"{url} answered {status}: {text[:200]}"
