from __future__ import annotations

from tidelog.cli.tools.message_json import as_json, definitions, message_json
from tidelog.protocol.messages.partition_record import PartitionRecord
from tidelog.protocol.messages.quorum_state_data import QuorumStateData, Voter
from tidelog.protocol.messages.register_broker_record import RegisterBrokerRecord


def test_the_definitions_ship_with_the_package() -> None:
    assert {"ProduceRequest", "RegisterBrokerRecord", "OffsetCommitKey", "QuorumStateData"} <= definitions().keys()


def test_names_are_those_of_the_schema_and_ids_are_base64() -> None:
    record = PartitionRecord(partition_id=3, topic_id=bytes(15) + b"\1", replicas=[1, 2], isr=[1], leader=1)
    shown = as_json(record, "PartitionRecord", 0)
    assert shown["partitionId"] == 3
    assert shown["topicId"] == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert shown["replicas"] == [1, 2]
    assert "directories" not in shown


def test_tagged_fields_at_their_default_are_left_out() -> None:
    record = RegisterBrokerRecord(broker_id=1)
    assert "logDirs" not in as_json(record, "RegisterBrokerRecord", 4)
    record.log_dirs = [bytes(16)]
    assert as_json(record, "RegisterBrokerRecord", 4)["logDirs"] == ["AAAAAAAAAAAAAAAAAAAAAA"]
    assert "logDirs" not in as_json(record, "RegisterBrokerRecord", 2)


def test_structures_nest_and_the_line_has_no_blanks() -> None:
    state = QuorumStateData(leader_id=1, leader_epoch=2, current_voters=[Voter(voter_id=1)])
    assert '"currentVoters":[{"voterId":1}]' in message_json(state, "QuorumStateData", 0)
