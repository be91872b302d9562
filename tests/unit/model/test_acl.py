from tidelog.model.acl import AccessControlEntry, AclOperation, PatternType, PermissionType, ResourceType


def test_the_codes_are_those_of_the_wire() -> None:
    assert (AclOperation.ALL, AclOperation.CLUSTER_ACTION, AclOperation.TWO_PHASE_COMMIT) == (2, 9, 15)
    assert (ResourceType.TOPIC, ResourceType.CLUSTER, ResourceType.USER) == (2, 4, 7)


def test_a_pattern_covers_names() -> None:
    def entry(name: str, pattern: PatternType) -> AccessControlEntry:
        return AccessControlEntry(ResourceType.TOPIC, name, pattern, "User:a", "*", AclOperation.READ, PermissionType.ALLOW)

    assert entry("t", PatternType.LITERAL).covers("t")
    assert not entry("t", PatternType.LITERAL).covers("tt")
    assert entry("t", PatternType.PREFIXED).covers("tt")
    assert entry("*", PatternType.LITERAL).covers("t")
    # A prefix is text: this one is for names that begin with an asterisk.
    assert not entry("*", PatternType.PREFIXED).covers("t")
