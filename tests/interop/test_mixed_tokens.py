"""A broker of tidelog and one of Apache Kafka that log in to each other, and to their controller, with short-lived tokens of one
identity provider, under load. ``TIDELOG_LONG=1`` (``make security``): sessions that end with their tokens take their time."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from tests.interop.test_mixed_cluster import MixedCluster
from tests.security_changes.access import Access
from tests.security_changes.account import Account
from tests.security_changes.clients import Reader, Writer
from tests.security_changes.cluster import everything
from tests.security_changes.crowd import Crowd
from tests.security_changes.tokens import SHORT_S, TIMES, TOPIC, TokenListeners
from tidelog.model.errors import ErrorCode

pytestmark = [
    pytest.mark.interop,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not os.environ.get("TIDELOG_LONG"), reason="sessions that end with their tokens belong to make security"),
]

OURS, THEIRS = 1, 2
ALLOWED_URLS = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


class TokenMixedCluster(MixedCluster):
    """Two brokers and one controller, all listeners among them SASL_SSL with OAUTHBEARER."""

    def __init__(self, directory: Path, apache: tuple[int, ...]) -> None:
        self.login = TokenListeners(directory, (OURS, THEIRS), (101,))
        super().__init__(directory, 2, apache, controllers=1)

    def settings(self, node_id: int) -> dict[str, str]:
        settings = self.login.settings(node_id, super().settings(node_id))
        # Apache Kafka's own default ends no session with its token.
        return settings | {"connections.max.reauth.ms": "15000", "offsets.topic.replication.factor": "2"}

    def command(self, node_id: int, properties: Path) -> list[str]:
        java, *rest = super().command(node_id, properties)
        if node_id not in self.apache:
            return [java, *rest]
        issuer = self.login.issuer
        return [java, f"-D{ALLOWED_URLS}={issuer.token_url},{issuer.keys_url}", *rest]


@pytest.mark.parametrize("apache", [(THEIRS,), (THEIRS, 101)], ids=["our controller", "Apache's controller"])
def test_nodes_of_both_kinds_log_in_to_each_other_with_tokens(tmp_path: Path, apache: tuple[int, ...]) -> None:
    cluster = TokenMixedCluster(tmp_path, apache)
    issuer, both = cluster.login.issuer, {OURS, THEIRS}
    ours = [each for each in cluster.ids if each not in apache]
    account = Account()
    access = Access(",".join(cluster.address(each) for each in cluster.brokers))

    def in_sync() -> bool:
        return [each[1] for each in cluster.partitions(OURS, TOPIC)] == [both] * 3

    with issuer, cluster, Crowd(account, None) as crowd:
        cluster.until(lambda: cluster.alive(OURS) == both, "both are unfenced")
        assert cluster.create(OURS, TOPIC, [OURS, THEIRS], [THEIRS, OURS], [OURS, THEIRS]) == ErrorCode.NONE
        for kind in (Writer, Reader):
            crowd.add(kind(kind.__name__.lower(), account, access, TOPIC))
        account.go_on(crowd.names)
        granted = dict(issuer.granted)
        clients = [f"node-{each}" for each in cluster.brokers]  # A controller that is alone logs in to no other node.
        account.until(lambda: all(issuer.granted[each] >= granted.get(each, 0) + 2 for each in clients), "new tokens")
        principal = f"User:node-{THEIRS}"
        account.until(lambda: cluster.login.later_logins(*ours)[principal] >= TIMES, "later logins of Apache Kafka's broker")
        account.go_on(crowd.names)
        for each in ours:
            for harm in ("did not authenticate again", "cannot log in"):
                assert harm not in cluster.log(each)
        issuer.down()
        time.sleep(SHORT_S)
        issuer.up()
        account.go_on(crowd.names)
        for node_id in (THEIRS, OURS):
            cluster.until(in_sync, "both are in sync")
            cluster.kill(node_id)
            account.go_on(crowd.names, more=10)
            cluster.start(node_id)
        cluster.until(in_sync, "both are in sync again")
        account.go_on(crowd.names)
        groups = crowd.finish()
        assert account.verdict(everything(access, TOPIC), groups) == []
