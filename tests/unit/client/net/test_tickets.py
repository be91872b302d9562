"""Tickets come from threads: waits that end, errors as clients know them, one thread at a time for each cache."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tidelog.client.failures import NoConnection, NotAuthenticated
from tidelog.client.kerberos import Kerberos, NoTicket
from tidelog.client.net.tickets import Tickets
from tidelog.client.sasl import Initiator
from tidelog.model.errors import ConfigError

LIMIT_S = 60.0


def tickets(begin: Callable[[str, str], Any], keytab: str = "/keytab") -> Tickets:
    def ticket(kerberos: Kerberos, host: str, memory: str) -> Initiator:
        made: Initiator = begin(host, memory)
        return made

    return Tickets(Kerberos("kafka", "ann@R", keytab), ticket)


def test_a_ticket_is_made_in_another_thread_with_a_cache_for_its_host() -> None:
    seen: list[tuple[str, str, bool]] = []

    def begin(host: str, memory: str) -> str:
        seen.append((host, memory, threading.current_thread().daemon))
        return f"ticket for {host}"

    made = tickets(begin)
    assert [made.wait(host, LIMIT_S) for host in "aba"] == ["ticket for a", "ticket for b", "ticket for a"]
    assert [(host, daemon) for host, _, daemon in seen] == [("a", True), ("b", True), ("a", True)]
    assert seen[0][1] == seen[2][1] != seen[1][1]
    tickets(begin, "/other").wait("a", LIMIT_S)
    assert seen[3][1] != seen[0][1]


@pytest.mark.parametrize(("unreachable", "kind"), [(True, NoConnection), (False, NotAuthenticated)])
def test_no_ticket_is_a_failure_of_the_connection_only_if_no_kdc_answers(unreachable: bool, kind: type[Exception]) -> None:
    def begin(host: str, memory: str) -> None:
        raise NoTicket("no ticket", unreachable=unreachable)

    with pytest.raises(kind, match="no ticket"):
        tickets(begin).wait("a", LIMIT_S)


def test_a_wait_ends_and_does_not_hold_up_another_host_and_a_thread_for_the_same_cache_waits() -> None:
    let_go, running = threading.Event(), []

    def begin(host: str, memory: str) -> str:
        if host == "slow":
            running.append(host)
            assert len(running) == 1
            let_go.wait(LIMIT_S)
            running.pop()
        return host

    made = tickets(begin, "/slow")
    with pytest.raises(NoConnection, match="no Kerberos ticket for kafka@slow within 0 s: no KDC answers"):
        made.wait("slow", 0)
    second = made.fetch("slow")
    assert not second.cancel()
    assert made.wait("fast", LIMIT_S) == "fast"
    let_go.set()
    assert second.result(LIMIT_S) == "slow"


def test_while_a_kdc_is_silent_one_try_is_under_way_however_many_callers_give_up() -> None:
    let_go, begun = threading.Event(), []

    def begin(host: str, memory: str) -> str:
        begun.append(host)
        let_go.wait(LIMIT_S)
        return host

    before = set(threading.enumerate())
    clients = [tickets(begin, "/silent") for _ in range(2)]
    for each in clients * 5:
        with pytest.raises(NoConnection, match="no Kerberos ticket for kafka@b within 0 s: no KDC answers"):
            each.wait("b", 0)
    assert len(set(threading.enumerate()) - before) == 1
    later = threading.Thread(target=lambda: begun.append(clients[1].wait("b", LIMIT_S) + " came"))
    later.start()
    let_go.set()
    later.join(LIMIT_S)
    assert begun == ["b", "b", "b came"]


def test_a_thread_that_cannot_be_started_keeps_no_other_caller_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    made = tickets(lambda host, memory: host, "/full")
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(RuntimeError, match="can't start"):
            made.wait("b", LIMIT_S)
    assert made.wait("b", LIMIT_S) == "b"


def test_a_client_without_the_library_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gssapi", None)
    monkeypatch.delitem(sys.modules, "tidelog.client.net.kerberos", raising=False)
    with pytest.raises(ConfigError, match=r"pip install 'tidelog\[kerberos\]'.* apt-get install libkrb5-dev"):
        Tickets(Kerberos("kafka", use_cache=True))
