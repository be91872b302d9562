from __future__ import annotations

import json
from typing import Any

import pytest

from tidelog.broker.audit.targets import LONGEST, MOST, targets
from tidelog.broker.table import API_TABLE
from tidelog.model.acl import AclOperation, PatternType, PermissionType, ResourceType
from tidelog.protocol.messages.add_raft_voter import AddRaftVoterRequest
from tidelog.protocol.messages.alter_client_quotas import AlterClientQuotasRequest, OpData, RequestEntityData, RequestEntryData
from tidelog.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest, ReassignableTopic
from tidelog.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tidelog.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tidelog.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from tidelog.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from tidelog.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from tidelog.protocol.messages.fetch import FetchRequest
from tidelog.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from tidelog.protocol.messages.unregister_broker import UnregisterBrokerRequest
from tidelog.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest

CREATION = AclCreation(
    ResourceType.TOPIC, "or", PatternType.PREFIXED, "User:bob", "10.0.0.1", AclOperation.READ, PermissionType.DENY
)
FILTER = DeleteAclsFilter(ResourceType.GROUP, None, PatternType.ANY, None, None, AclOperation.ANY, 77)
SECRET = b"the-salted-password-or-salt"
UPSERTION = ScramCredentialUpsertion(name="ann", mechanism=2, iterations=4096, salt=SECRET, salted_password=SECRET)


CASES: list[tuple[Any, list[str]]] = [
    (CreateAclsRequest(creations=[CREATION]), ["DENY User:bob READ TOPIC:PREFIXED:or from 10.0.0.1"]),
    (DeleteAclsRequest(filters=[FILTER]), ["77 any ANY GROUP:ANY:any from any"]),
    (
        AlterUserScramCredentialsRequest(deletions=[ScramCredentialDeletion("bob", 1)], upsertions=[UPSERTION]),
        ["bob SCRAM-SHA-256 deleted", "ann SCRAM-SHA-512"],
    ),
    (
        AlterClientQuotasRequest(
            entries=[
                RequestEntryData([RequestEntityData("user", "ann"), RequestEntityData("client-id", None)], [OpData("rate", 7.0)])
            ]
        ),
        ["user=ann,client-id=<default> rate"],
    ),
    (AlterPartitionReassignmentsRequest(topics=[ReassignableTopic("t")]), ["t"]),
    (ElectLeadersRequest(topic_partitions=[TopicPartitions("t", [0])]), ["t"]),
    (ElectLeadersRequest(topic_partitions=None), []),
    (AlterReplicaLogDirsRequest(dirs=[AlterReplicaLogDir("/d", [AlterReplicaLogDirTopic("t", [0])])]), ["t"]),
    (UpdateFeaturesRequest(feature_updates=[FeatureUpdateKey("metadata.version", 30)]), ["metadata.version"]),
    (UnregisterBrokerRequest(broker_id=4), ["broker 4"]),
    (AddRaftVoterRequest(voter_id=5), ["voter 5"]),
    (RemoveRaftVoterRequest(voter_id=5), ["voter 5"]),
    (FetchRequest(), []),
    (("retention.ms", "cleanup.policy"), ["retention.ms", "cleanup.policy"]),
    (None, []),
]


@pytest.mark.parametrize(("request_", "named"), CASES)
def test_a_request_is_about_the_names_in_it(request_: Any, named: list[str]) -> None:
    assert targets(request_) == named


def test_no_secret_is_among_them() -> None:
    assert SECRET.decode() not in json.dumps(targets(AlterUserScramCredentialsRequest(upsertions=[UPSERTION])))


def test_they_are_bounded_in_number_and_length() -> None:
    long = AclCreation(ResourceType.TOPIC, "x" * 10_000, PatternType.LITERAL, "User:a", "*", AclOperation.READ, 3)
    found = targets(CreateAclsRequest(creations=[long] * (MOST + 1)))
    assert len(found) == MOST + 1
    assert found[-1] == "and more"
    assert all(len(each) <= LONGEST for each in found)
    assert len(targets(CreateAclsRequest(creations=[long] * MOST))) == MOST


def test_every_change_of_the_cluster_names_what_it_is_about() -> None:
    changes = [
        row.key
        for row in API_TABLE
        if row.needs.on_cluster in (AclOperation.ALTER, AclOperation.ALTER_CONFIGS) and row.broker is not None
    ]
    assert len(changes) >= 10
    assert set(changes) <= {getattr(request, "API_KEY", None) for request, named in CASES if named}
