"""What Apache Kafka 4.3.1 answered in one long conversation about transactions, tidelog answers too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.broker.apis import producing_conversation
from tests.unit.broker.apis.live import Talk
from tests.unit.broker.apis.transaction_conversation import conversation
from tidelog.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tidelog.testing import Broker

GOLDEN = Path(__file__).parents[3] / "golden" / "transactions"
SETTINGS = {
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": 50,
    "transaction.state.log.num.partitions": 3,
    "offsets.topic.num.partitions": 3,
}


SYNCED = {"log.flush.interval.messages": 1}
"""Every record waits for the disk, so nothing is safe at once: answers and markers wait for it."""


@pytest.mark.parametrize(("level", "more"), [(2, {}), (0, {}), (2, SYNCED)], ids=["level 2", "level 0", "every record synced"])
def test_a_conversation_goes_as_with_apache_kafka(level: int, more: dict[str, int]) -> None:
    with Broker(config={**SETTINGS, **more}) as broker:
        if level != 2:
            talk = Talk(broker.port)
            update = FeatureUpdateKey(feature="transaction.version", max_version_level=level, upgrade_type=2)
            assert talk.ask(UpdateFeaturesRequest(feature_updates=[update]), 1).error_code == 0
            talk.close()
        assert conversation(broker.port, level) == (GOLDEN / f"level-{level}.txt").read_text().splitlines()


def test_a_conversation_with_partitions_and_groups_goes_as_with_apache_kafka() -> None:
    with Broker(config=SETTINGS) as broker:
        assert producing_conversation.conversation(broker.port) == (GOLDEN / "producing.txt").read_text().splitlines()
