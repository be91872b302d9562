"""Changes of a broker's dynamic settings, answered as Apache Kafka 4.3.1 answered them (golden/config/dynamic.jsonl)."""

from __future__ import annotations

from dataclasses import replace

from tests.dynamic_configs import NODE, ON_PURPOSE, Case, cases, matches, recorded
from tests.unit.broker.node_world import NodeWorld, run
from tidelog.broker.apis.topics.alter_configs import incremental_alter_configs
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages import incremental_alter_configs as messages


def answered(world: NodeWorld, case: Case) -> tuple[str, str]:
    """The name of the error and its message."""
    configs = [
        messages.AlterableConfig(name=each.name, config_operation=each.operation, value=each.value) for each in case.changes
    ]
    resource = messages.AlterConfigsResource(resource_type=4, resource_name=case.scope, configs=configs)
    request = messages.IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)
    (result,) = run(incremental_alter_configs(world.context(1), request)).responses
    return ErrorCode(result.error_code).name, result.error_message or ""


def with_elr() -> NodeWorld:
    """A node as the recorded one: brokers have no min.insync.replicas of their own (KIP-966)."""
    world = NodeWorld(NODE)
    features = {**world.broker.image.features, "eligible.leader.replicas.version": 1}
    world.broker.image = replace(world.broker.image, features=features)
    world.controller.take_over(world.broker.image)
    return world


def test_every_change_has_apache_kafkas_answer() -> None:
    world, theirs = with_elr(), recorded()
    different = []
    for case in cases():
        code, message = answered(world, case)
        wanted = theirs[case.key]
        if (code != wanted.code or not all(name in message for name in wanted.named)) and not any(
            matches(case, pattern) for pattern in ON_PURPOSE
        ):
            different.append(f"{case.key}: Apache Kafka {wanted}, tidelog {code} {message}")
    assert not different, f"{len(different)} differ: " + "\n".join(different[:20])


def test_no_difference_is_listed_without_need() -> None:
    world, theirs = with_elr(), recorded()
    for pattern in ON_PURPOSE:
        named = [case for case in cases() if matches(case, pattern)]
        assert any(answered(world, case)[0] != theirs[case.key].code for case in named), pattern
