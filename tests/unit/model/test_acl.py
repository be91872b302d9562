from tidelog.model.acl import AclOperation, ResourceType


def test_the_codes_are_those_of_the_wire() -> None:
    assert (AclOperation.ALL, AclOperation.CLUSTER_ACTION, AclOperation.TWO_PHASE_COMMIT) == (2, 9, 15)
    assert (ResourceType.TOPIC, ResourceType.CLUSTER, ResourceType.USER) == (2, 4, 7)
