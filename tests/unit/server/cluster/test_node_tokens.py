"""The token of a node's logins: when it is fetched, and what happens while there is no new one."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from tests.unit.client.net.token_endpoint import Endpoint
from tests.unit.server.loops import run, until
from tidelog.client.failures import NoConnection, NotAuthenticated
from tidelog.client.oauth import Grant, OAuth
from tidelog.client.settings import Tls
from tidelog.model.errors import ConfigError
from tidelog.server.cluster import node_tokens
from tidelog.server.cluster.node_tokens import NodeTokens
from tidelog.server.cluster.token_source import Renewal, TokenSource
from tidelog.server.runtime import BLOCKING_THREADS, LoopRuntime, new_event_loop

HOUR_S = 3600.0


def source(oauth: OAuth | None = None, share: float = 0.8, tls: Tls | None = None) -> TokenSource:
    """``share`` 0.0: each token is replaced at once."""
    found = oauth or OAuth(url="https://login.example.com/token", client_id="node", client_secret="canary")
    return TokenSource(found, Renewal(share, 0.0, 0.0, 0.0), tls, None, None, 1, 4)


class Issuer:
    """Gives these grants in order, the last one for ever; an exception is a fetch that fails."""

    def __init__(self, *grants: Grant | Exception) -> None:
        self.grants = list(grants)
        self.asked = 0

    def __call__(self, asked: TokenSource) -> Grant:
        self.asked += 1
        grant = self.grants.pop(0) if len(self.grants) > 1 else self.grants[0]
        if isinstance(grant, Exception):
            raise grant
        return grant


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_tokens, "LEAST_BETWEEN_S", 0.0)
    monkeypatch.setattr(node_tokens, "LEAST_USED_S", 0.0)


async def token_at_last(tokens: NodeTokens) -> str:
    """What a channel sees, which connects again and again."""
    while True:
        try:
            return await tokens.token()
        except ConnectionError:
            await asyncio.sleep(0.001)


def test_nothing_is_fetched_before_a_login_and_all_logins_share_one_token(runtime: LoopRuntime) -> None:
    issuer = Issuer(Grant("first", HOUR_S), Grant("second", HOUR_S))
    tokens = NodeTokens("NODES", source(), runtime, issuer)

    async def main() -> None:
        assert issuer.asked == 0
        assert await asyncio.gather(*(tokens.token() for _ in range(5))) == ["first"] * 5
        assert await tokens.token() == "first"

    run(runtime, main)
    assert issuer.asked == 1


def test_a_token_is_replaced_before_it_expires(runtime: LoopRuntime) -> None:
    issuer = Issuer(*(Grant(f"t{number}", HOUR_S) for number in range(5)))
    tokens = NodeTokens("NODES", source(share=0.0), runtime, issuer)

    async def main() -> None:
        assert (await tokens.token()).startswith("t")
        await until(lambda: issuer.asked > 5)
        assert await tokens.token() == "t4"

    run(runtime, main)


def test_without_a_token_a_login_fails_with_the_reason_and_the_node_keeps_trying(
    runtime: LoopRuntime, caplog: pytest.LogCaptureFixture
) -> None:
    down = [NoConnection("no token from https://login.example.com/token: Connection refused")] * 3
    issuer = Issuer(*down, NotAuthenticated("it answers 401"), Grant("first", HOUR_S))
    tokens = NodeTokens("NODES", source(), runtime, issuer)

    async def main() -> None:
        with pytest.raises(ConnectionError, match=r"has no token to log in with: .*Connection refused") as raised:
            await tokens.token()
        assert not isinstance(raised.value, ConnectionRefusedError)  # that would say that no process listens there
        assert await token_at_last(tokens) == "first"

    with caplog.at_level(logging.INFO):
        run(runtime, main)
    assert issuer.asked == 5
    assert caplog.text.count("gets no token for listener NODES, it cannot log in there; it keeps trying:") == 2
    assert caplog.text.count("has a token for listener NODES again") == 1
    assert "canary" not in caplog.text


def test_a_token_counts_while_the_next_one_cannot_be_fetched(runtime: LoopRuntime, caplog: pytest.LogCaptureFixture) -> None:
    issuer = Issuer(Grant("first", HOUR_S), NoConnection("down"))
    tokens = NodeTokens("NODES", source(share=0.0), runtime, issuer)

    async def main() -> None:
        assert await tokens.token() == "first"
        await until(lambda: issuer.asked > 4)
        assert await tokens.token() == "first"

    run(runtime, main)
    assert caplog.text.count("the last one holds for 3") == 1


def test_the_end_of_the_last_token_is_told_at_once(runtime: LoopRuntime, caplog: pytest.LogCaptureFixture) -> None:
    tokens = NodeTokens("NODES", source(share=0.0), runtime, Issuer(Grant("first", HOUR_S), NoConnection("down")))

    async def main() -> None:
        assert await tokens.token() == "first"
        await until(lambda: "the last one holds for 3" in caplog.text)
        tokens._ends_s = 0.0  # an hour later
        await until(lambda: "it cannot log in there; it keeps trying: down" in caplog.text)

    run(runtime, main)
    assert caplog.text.count("gets no token") == 2


def test_a_fault_of_a_fetch_is_not_the_last_one(runtime: LoopRuntime, caplog: pytest.LogCaptureFixture) -> None:
    issuer = Issuer(RuntimeError("can't start new thread"), OverflowError(), Grant("first", HOUR_S))
    tokens = NodeTokens("NODES", source(), runtime, issuer)

    async def main() -> None:
        with pytest.raises(ConnectionError, match="can't start new thread"):
            await tokens.token()
        assert await token_at_last(tokens) == "first"

    run(runtime, main)
    assert issuer.asked == 3


def test_an_endpoint_that_hangs_holds_none_of_the_threads_that_sync_and_read_logs(runtime: LoopRuntime) -> None:
    asked, release = threading.Event(), threading.Event()

    def hang(source: TokenSource) -> Grant:
        asked.set()
        release.wait()
        return Grant("late", HOUR_S)

    tokens = NodeTokens("NODES", source(), runtime, hang)
    together = threading.Barrier(BLOCKING_THREADS)

    async def main() -> None:
        waiting = asyncio.ensure_future(tokens.token())
        await until(asked.is_set)
        await asyncio.gather(*(runtime.run_blocking(lambda: together.wait(10)) for _ in range(BLOCKING_THREADS)))
        release.set()
        assert await waiting == "late"

    try:
        run(runtime, main)
    finally:
        release.set()


def test_a_stop_does_not_wait_for_an_endpoint_that_hangs() -> None:
    asked, release = threading.Event(), threading.Event()
    runtime = LoopRuntime(new_event_loop())

    def hang(source: TokenSource) -> Grant:
        asked.set()
        release.wait()
        return Grant("late", HOUR_S)

    async def main() -> None:
        waiting = asyncio.ensure_future(NodeTokens("NODES", source(), runtime, hang).token())
        await until(asked.is_set)
        await runtime.close()
        waiting.cancel()

    try:
        run(runtime, main)
        runtime.loop.close()
    finally:
        release.set()


def test_when_a_token_is_replaced_may_change_while_the_node_runs(runtime: LoopRuntime, caplog: pytest.LogCaptureFixture) -> None:
    issuer = Issuer(*(Grant(f"t{number}", HOUR_S) for number in range(5)))
    found: list[Renewal | ConfigError] = [Renewal(0.0, 0.0, 0.0, 0.0), ConfigError("is 7, but must be from 0.5 to 1.0")]

    def renewal() -> Renewal:
        first = found.pop(0)
        if isinstance(first, ConfigError):
            raise first
        return first

    tokens = NodeTokens("NODES", source(), runtime, issuer, renewal)

    async def main() -> None:
        await tokens.token()
        await until(lambda: not found)
        assert await tokens.token() == "t1"

    run(runtime, main)
    assert issuer.asked == 2
    assert "a dynamic setting of tokens for listener NODES does not count: is 7" in caplog.text


def test_an_expired_token_is_not_sent(runtime: LoopRuntime) -> None:
    issuer = Issuer(Grant("first", 0.05), NoConnection("down"))
    tokens = NodeTokens("NODES", source(share=0.0), runtime, issuer)

    async def main() -> None:
        said = ""
        while "down" not in said:
            try:
                assert await tokens.token() == "first"
            except ConnectionError as error:
                said = str(error)
            await asyncio.sleep(0.001)

    run(runtime, main)


def test_a_refused_token_is_replaced(runtime: LoopRuntime) -> None:
    issuer = Issuer(Grant("first", HOUR_S), Grant("second", HOUR_S))
    tokens = NodeTokens("NODES", source(), runtime, issuer)

    async def main() -> None:
        tokens.refused(await tokens.token())
        while await tokens.token() == "first":  # noqa: ASYNC110
            await asyncio.sleep(0.001)
        tokens.refused("first")
        assert await tokens.token() == "second"

    run(runtime, main)
    assert issuer.asked == 2


@pytest.mark.parametrize(
    ("grant", "said"),
    [
        (Grant("opaque", None), "does not say when it expires"),
        (Grant("opaque", 0.0), "has expired already"),
        (Grant("opaque", -5.0), "has expired already"),
    ],
)
def test_a_token_that_holds_for_no_time_is_none(runtime: LoopRuntime, grant: Grant, said: str) -> None:
    tokens = NodeTokens("NODES", source(), runtime, Issuer(grant))

    async def main() -> None:
        with pytest.raises(ConnectionError, match=said):
            await tokens.token()

    run(runtime, main)


def jwt(life_s: float) -> str:
    claims = urlsafe_b64encode(b'{"exp": %d}' % (time.time() + life_s)).decode().rstrip("=")
    return f"e30.{claims}.c2ln"


def test_the_shorter_of_the_lives_counts(runtime: LoopRuntime) -> None:
    tokens = NodeTokens("NODES", source(), runtime, Issuer(Grant(jwt(-60), HOUR_S)))

    async def main() -> None:
        with pytest.raises(ConnectionError, match="has expired already"):
            await tokens.token()

    run(runtime, main)


def test_a_file_is_read_again_for_each_token(runtime: LoopRuntime, tmp_path: Path) -> None:
    file, old, new = tmp_path / "token", jwt(HOUR_S), jwt(2 * HOUR_S)
    file.write_text(old)
    tokens = NodeTokens("NODES", source(OAuth(file=str(file))), runtime)

    async def main() -> None:
        assert await tokens.token() == old
        file.write_text(new)
        tokens.refused(old)
        while await tokens.token() != new:  # noqa: ASYNC110
            await asyncio.sleep(0.001)

    run(runtime, main)


def test_the_endpoint_is_asked_over_tls_with_the_authorities_of_the_login_module(runtime: LoopRuntime, tmp_path: Path) -> None:
    endpoint = Endpoint(tmp_path)
    endpoint.body = b'{"access_token": "a.b.c", "expires_in": 60}'
    oauth = endpoint.oauth(authorities=None)
    trusting = NodeTokens("NODES", source(oauth, tls=Tls(ca_file=str(endpoint.authorities))), runtime)
    doubting = NodeTokens("NODES", source(oauth), runtime)

    async def main() -> None:
        assert await trusting.token() == "a.b.c"
        with pytest.raises(ConnectionError, match="is not trusted"):
            await doubting.token()

    try:
        run(runtime, main)
    finally:
        endpoint.server.shutdown()
        endpoint.server.server_close()
    assert len(endpoint.asked) == 1


def test_authorities_that_cannot_be_read_stop_the_start(runtime: LoopRuntime) -> None:
    with pytest.raises(ConfigError, match=r"missing\.pem"):
        NodeTokens("NODES", source(tls=Tls(ca_file="missing.pem")), runtime)
