from __future__ import annotations

import pytest

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.acl_choice import Pattern, Rule, entries, filters, operation_of, patterns, principal_of, title, wanted
from tidelog.model.acl import AclOperation as Op
from tidelog.model.acl import PatternType, PermissionType, ResourceType
from tidelog.model.acl_filter import AclFilter

ALICE = (("User:alice",), ())
NOBODY: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
TOPIC = Pattern(ResourceType.TOPIC, "t", PatternType.LITERAL)
GROUP = Pattern(ResourceType.GROUP, "g", PatternType.LITERAL)
ID = Pattern(ResourceType.TRANSACTIONAL_ID, "x", PatternType.LITERAL)
CLUSTER = Pattern(ResourceType.CLUSTER, "kafka-cluster", PatternType.LITERAL)


@pytest.mark.parametrize("word", ["DescribeConfigs", "DESCRIBE_CONFIGS", "describe-configs", "describeconfigs"])
def test_an_operation_is_written_in_any_of_its_forms(word: str) -> None:
    assert operation_of(word) is Op.DESCRIBE_CONFIGS
    assert title(Op.DESCRIBE_CONFIGS) == "DescribeConfigs"


@pytest.mark.parametrize("word", ["Reed", "any", "unknown", ""])
def test_a_word_that_is_no_operation_is_refused_with_those_that_are(word: str) -> None:
    with pytest.raises(CommandFailed, match="IdempotentWrite"):
        operation_of(word)


@pytest.mark.parametrize("text", ["alice", ":alice", "User:"])
def test_a_principal_has_a_type_and_a_name(text: str) -> None:
    with pytest.raises(CommandFailed, match="User:"):
        principal_of(text)
    assert principal_of("User:CN=a,OU=b") == "User:CN=a,OU=b"


def test_the_cluster_is_a_literal_pattern_only() -> None:
    names = {ResourceType.TOPIC: ("a", " b ")}
    literal = patterns(names, True, PatternType.LITERAL)
    assert [each.name for each in literal] == ["a", "b", "kafka-cluster"]
    assert [each.name for each in patterns(names, True, PatternType.MATCH)] == ["a", "b"]


def test_principals_hosts_and_operations_are_combined_for_each_permission() -> None:
    found = wanted(
        [TOPIC],
        [Op.READ, Op.WRITE],
        (("User:a", "User:b"), ("10.0.0.1",)),
        (("User:c",), ()),
        producer=False,
        idempotent=False,
        consumer=False,
    )
    assert len(found[TOPIC]) == 6
    assert Rule("User:b", "10.0.0.1", Op.WRITE, PermissionType.ALLOW) in found[TOPIC]
    assert Rule("User:c", "*", Op.READ, PermissionType.DENY) in found[TOPIC]
    assert len(list(entries(found))) == 6


def test_a_producer_and_a_consumer_get_what_they_need_where_they_need_it() -> None:
    def operations(
        *chosen: Pattern, producer: bool = False, idempotent: bool = False, consumer: bool = False
    ) -> dict[Pattern, set[Op]]:
        found = wanted(chosen, [Op.ALL], ALICE, NOBODY, producer=producer, idempotent=idempotent, consumer=consumer)
        return {pattern: {rule.operation for rule in rules} for pattern, rules in found.items()}

    assert operations(TOPIC, ID, producer=True) == {TOPIC: {Op.WRITE, Op.DESCRIBE, Op.CREATE}, ID: {Op.WRITE, Op.DESCRIBE}}
    assert operations(TOPIC, CLUSTER, producer=True, idempotent=True)[CLUSTER] == {Op.IDEMPOTENT_WRITE}
    assert operations(TOPIC, GROUP, consumer=True) == {TOPIC: {Op.READ, Op.DESCRIBE}, GROUP: {Op.READ}}
    both = operations(TOPIC, GROUP, producer=True, consumer=True)
    assert both == {TOPIC: {Op.WRITE, Op.DESCRIBE, Op.CREATE, Op.READ}, GROUP: {Op.READ}}


def test_an_operation_that_a_resource_does_not_have_is_refused() -> None:
    with pytest.raises(CommandFailed, match="group has these operations: All, Read, Delete"):
        wanted([GROUP], [Op.WRITE], ALICE, NOBODY, producer=False, idempotent=False, consumer=False)


def test_without_rules_a_filter_finds_all_of_a_pattern() -> None:
    assert filters(TOPIC, ()) == [AclFilter(ResourceType.TOPIC, "t", PatternType.LITERAL)]
    rule = Rule("User:a", "*", Op.READ, PermissionType.DENY)
    assert filters(TOPIC, [rule]) == [AclFilter(ResourceType.TOPIC, "t", PatternType.LITERAL, *rule)]
