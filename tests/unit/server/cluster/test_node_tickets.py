"""Tickets of a node: waits that end and say why, and one thread at a time for each host."""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tidelog.client.failures import NotAuthenticated
from tidelog.client.kerberos import Kerberos, NoTicket
from tidelog.client.net.tickets import Tickets
from tidelog.client.sasl import Initiator
from tidelog.model.errors import ConfigError
from tidelog.server.cluster.node_tickets import NodeTickets

OWN = Kerberos("kafka", "kafka/n1@R", "/keytab")
LIMIT_S = 60.0


def tickets(begin: Callable[[str], Any], limit_s: float = LIMIT_S) -> NodeTickets:
    def ticket(kerberos: Kerberos, host: str, memory: str) -> Initiator:
        made: Initiator = begin(host)
        return made

    return NodeTickets(OWN, ticket, limit_s)


def test_a_ticket_comes_or_the_reason_why_not() -> None:
    def begin(host: str) -> str:
        if host != "n2":
            raise NoTicket(f"no ticket for {host}", unreachable=True)
        return "ticket"

    async def main() -> None:
        made = tickets(begin)
        assert [await each for each in (made.ticket("n2"), made.ticket("n2"))] == ["ticket", "ticket"]
        with pytest.raises(NotAuthenticated, match="no ticket for n3"):
            await made.ticket("n3")

    asyncio.run(main())


def test_a_thread_that_cannot_be_started_does_not_keep_the_hosts_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(_: Tickets, host: str) -> Any:
        raise RuntimeError("can't start new thread")

    async def main() -> None:
        made = tickets(lambda host: "ticket")
        with monkeypatch.context() as patched:
            patched.setattr(Tickets, "fetch", no_thread)
            with pytest.raises(NotAuthenticated, match="can't start new thread"):
                await made.ticket("n2")
        assert await made.ticket("n2") == "ticket"

    asyncio.run(main())


def test_a_login_that_waits_for_a_kdc_gives_up_holds_up_no_other_host_and_tells_the_reason_when_it_comes(
    caplog: pytest.LogCaptureFixture,
) -> None:
    let_go, running = threading.Event(), []

    def begin(host: str) -> str:
        if host == "n2":
            running.append(host)
            let_go.wait(LIMIT_S)
            raise NoTicket("Cannot contact any KDC")
        return host

    async def main() -> None:
        made = tickets(begin, 0.01)
        for _ in range(2):
            with pytest.raises(NotAuthenticated, match="no Kerberos ticket for kafka@n2 within 0 s: no KDC answers"):
                await made.ticket("n2")
        made._limit_s = LIMIT_S
        assert await made.ticket("n3") == "n3"
        let_go.set()
        with pytest.raises(NotAuthenticated, match="Cannot contact any KDC"):
            await made.ticket("n2")

    with caplog.at_level(logging.ERROR):
        asyncio.run(main())
    assert running == ["n2", "n2"], "the login that gave up while it waited for its turn has fetched nothing"
    assert caplog.text.count("was given up has a reason now: Cannot contact any KDC") == 1


def test_a_ticket_that_comes_when_the_loop_is_closed_is_let_go(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go, fetched = threading.Event(), []

    def begin(host: str) -> str:
        let_go.wait(LIMIT_S)
        return host

    fetch = Tickets.fetch

    def kept(tickets: Tickets, host: str) -> Any:
        fetched.append(fetch(tickets, host))
        return fetched[-1]

    async def main() -> None:
        with pytest.raises(NotAuthenticated, match="no KDC answers"):
            await tickets(begin, 0.01).ticket("n2")

    monkeypatch.setattr(Tickets, "fetch", kept)
    asyncio.run(main())
    let_go.set()
    assert fetched[0].result(LIMIT_S) == "n2"
    assert caplog.text == ""


def test_a_node_without_the_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    monkeypatch.delitem(sys.modules, "tidelog.client.net.kerberos", raising=False)
    with pytest.raises(ConfigError, match=r"pip install 'tidelog\[kerberos\]'"):
        NodeTickets(OWN)
