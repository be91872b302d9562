"""What a handler gets: the console's state, the user's rights, and the checked values of the request."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from starlette.requests import Request

from tidelog.console.access.rights import EVERYTHING, About, Access, Right
from tidelog.console.access.sessions import Session, Sessions
from tidelog.console.access.users import Users
from tidelog.console.asking.plans import Plan
from tidelog.console.web.addresses import HEADER, Network, client_address
from tidelog.console.web.audit import Audit
from tidelog.console.web.clusters import Cluster
from tidelog.console.web.ending import Ending
from tidelog.console.web.limits import Gate, Pace
from tidelog.console.web.problems import Problem
from tidelog.http.guesses import Guesses

if TYPE_CHECKING:
    from tidelog.console.web.sign_in import SignIn
    from tidelog.console.web.static_files import StaticFiles

COOKIE: Final = "tidelog_console"
PROOFS: Final = 4
MOST_LOGINS: Final = 100
"""With those that wait for their turn: anyone may try."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, times in seconds."""

    page: int = 500
    cut_bytes: int = 16_384
    full_bytes: int = 4 << 20
    tail_rows_per_second: int = 200
    produce_bytes: int = 1 << 20
    search_seconds: int = 120
    search_bytes: int = 1 << 30
    searches: int = 8
    tails: int = 16
    search_bytes_per_second: int = 64 << 20

    def shown(self) -> dict[str, int]:
        """What the browser needs of them."""
        names = ("page", "cut_bytes", "full_bytes", "tail_rows_per_second", "produce_bytes", "search_seconds")
        return {name: getattr(self, name) for name in names}


def wall_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


@dataclass(slots=True)
class State:
    """One console. ``users`` None: it runs without login. ``hosts``: names that a request may be for. ``secure``: the browser
    speaks TLS. ``csrf``: what changes show where there is no login. ``sign_in``: where a provider logs people in."""

    clusters: Mapping[str, Cluster]
    users: Users | None
    hosts: frozenset[str]
    audit: Audit
    csrf: str = field(repr=False)
    files: StaticFiles
    base: str = "/"
    secure: bool = False
    read_only: bool = False
    limits: Limits = field(default_factory=Limits)
    now_ms: Callable[[], int] = wall_ms
    sessions: Sessions = field(default_factory=Sessions)
    guesses: Guesses = field(default_factory=Guesses)
    proxies: tuple[Network, ...] = ()
    sign_in: SignIn | None = None
    ending: Ending = field(default_factory=Ending)
    searches: Gate = field(init=False)
    tails: Gate = field(init=False)
    logins: Gate = field(init=False)
    proofs: asyncio.Semaphore = field(init=False)
    """Passwords are looked at some at a time: each takes 50 ms and 16 MB."""
    pace: Pace = field(init=False)

    def __post_init__(self) -> None:
        self.searches = Gate(self.limits.searches, "searches")
        self.tails = Gate(self.limits.tails, "live tails")
        self.logins = Gate(MOST_LOGINS, "log-ins")
        self.proofs = asyncio.Semaphore(PROOFS)
        self.pace = Pace(self.limits.search_bytes_per_second, time.monotonic)

    def access(self, session: Session | None) -> Access:
        """What a request with this session may do."""
        if self.users is None:
            return Access((EVERYTHING,), read_only=self.read_only)
        return Access() if session is None else self.users.access(session, read_only=self.read_only)

    async def close(self) -> None:
        for cluster in self.clusters.values():
            await cluster.close()


@dataclass(slots=True)
class Context:
    """One request that was allowed."""

    state: State
    request: Request
    access: Access
    session: Session | None
    segments: Mapping[str, str]
    query: Mapping[str, Any]
    body: Mapping[str, Any]

    @property
    def user(self) -> str | None:
        """The user's name; None without login."""
        return None if self.session is None else self.session.user

    @property
    def address(self) -> str:
        """Where the request comes from; behind a proxy that --proxy does not name, that is the proxy."""
        peer = self.request.client.host if self.request.client else ""
        return client_address(peer, self.request.headers.getlist(HEADER), self.state.proxies)

    @property
    def cluster(self) -> Cluster:
        """The cluster of the path. Problem (404) when there is none, or nothing of it may be seen."""
        found = self.state.clusters.get(self.segments["c"])
        if found is None or not self.access.sees(found.id):
            raise Problem(404, "there is no such cluster")
        return found

    @property
    def dry_run(self) -> bool:
        return bool(self.body["dry_run"])

    def sees(self, about: About, name: str = "") -> bool:
        """Whether the user may see that topic or group of the cluster."""
        return self.access.may(Right.VIEW, self.cluster.id, about, name)

    def may(self, about: About, name: str = "") -> dict[str, bool]:
        """The rights on something, as pages show them."""
        return {right.value: self.access.may(right, self.cluster.id, about, name) for right in Right}

    def demand(self, right: Right, about: About, name: str = "") -> None:
        """Problem (403) without the right."""
        if not self.access.may(right, self.cluster.id, about, name):
            what = "the cluster" if about is About.CLUSTER else f"{about.value} {name}"
            raise Problem(403, f"you do not have the right {right.value!r} on {what}")

    def result(self, plan: Plan) -> dict[str, Any]:
        """The preview; or what was done, after which every page asks the cluster again."""
        if self.dry_run:
            return plan.as_json()
        self.cluster.shared.forget()
        return plan.carried_out(plan.failed).as_json()

    def confirmed(self, text: str) -> None:
        """Problem (400) unless a real run carries the text that the preview asked for."""
        if not self.dry_run and self.body["confirm"] != text:
            raise Problem(400, f"type {text} to confirm this")
