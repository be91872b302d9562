"""Bugs planted on purpose into how nodes decide what clients may do; secure runs of the simulated cluster have to find each."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sim.controller_security_bugs import decisions_outlive_acls
from tidelog.broker.apis.records.readable import ReadGate
from tidelog.metadata.image import ScramCredential
from tidelog.replication.fetch import Fetch
from tidelog.replication.fetch_partition import FetchPartition
from tidelog.replication.fetch_sessions import FetchContext
from tidelog.server.serving import sasl_mechanisms
from tidelog.testing.simulation.patching import Patch


def _polls_keep_their_first_decision() -> list[Patch]:
    """A fetch that waits does not ask again."""
    return [(ReadGate, "renew", lambda self: False)]


def _polls_decide_only_what_grew() -> list[Patch]:
    """After a change of the ACLs a fetch that waited asks again for the partitions that have grown: one answer, two versions."""

    def read_again(self: Fetch, changed: Iterable[FetchPartition]) -> None:
        if self.context.is_superseded:
            self.has_news = True
            return
        if self._gate is not None and self._gate.renew():
            self.context.decide_by(self._gate.decider)
        for wanted in changed:
            before = self.reads.get(wanted)
            if before is not None:
                self.bytes_read -= before.size
            self.reads[wanted] = self._read(wanted)
        if self.context.caller is not None:
            self._look_back()

    return [(Fetch, "read_again", read_again)]


def _sessions_stay_quiet() -> list[Patch]:
    """A change of the ACLs makes no partition of a fetch session due."""

    def decide_by(self: FetchContext, decider: object) -> None:
        self._decider = decider

    return [(FetchContext, "decide_by", decide_by)]


def _removed_credentials_log_in() -> list[Patch]:
    """A node remembers the credentials that it has looked up."""
    honest = sasl_mechanisms.users
    known: dict[str, ScramCredential] = {}

    def users(credentials: Callable[[str], ScramCredential | None]) -> Any:
        def remembered(name: str) -> ScramCredential | None:
            found = credentials(name)
            if found is not None:
                known[name] = found
            return known.get(name)

        return honest(remembered)

    return [(sasl_mechanisms, "users", users)]


SECURITY_BUGS: dict[str, Callable[[], list[Patch]]] = {
    "decisions outlive their ACLs": decisions_outlive_acls,
    "long polls keep their first decision": _polls_keep_their_first_decision,
    "long polls decide only what grew": _polls_decide_only_what_grew,
    "fetch sessions stay quiet": _sessions_stay_quiet,
    "removed credentials log in": _removed_credentials_log_in,
}
