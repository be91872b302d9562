"""CreateTopics and DeleteTopics."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from tidelog.config.topic_warnings import warnings
from tidelog.controller.partition_rules import default_directories
from tidelog.controller.replica_placement import InvalidReplicationFactor, place, usable_brokers
from tidelog.controller.result import MAX_RECORDS_PER_REQUEST, NO_QUOTA, ControllerResult, Decision, Quota
from tidelog.controller.topic_names import collides_with, name_problem
from tidelog.metadata.image import TOPIC_RESOURCE, ClusterImage, PartitionImage
from tidelog.metadata.records import MetadataRecord
from tidelog.metadata.snapshot import partition_record
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import METADATA_TOPIC, ZERO_UUID, Uuid, random_uuid
from tidelog.protocol.messages.config_record import ConfigRecord
from tidelog.protocol.messages.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from tidelog.protocol.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DeleteTopicState,
)
from tidelog.protocol.messages.remove_topic_record import RemoveTopicRecord
from tidelog.protocol.messages.topic_record import TopicRecord

log = logging.getLogger(__name__)

DEFAULT = -1
"""In a request: use the broker's default number of partitions or replicas."""


class Refused(Exception):
    """One topic of a request is refused; the others go ahead."""

    def __init__(self, code: ErrorCode, message: str | None) -> None:
        super().__init__(message or code.name)
        self.code = code
        self.message = message


def create_topics(decision: Decision, request: CreateTopicsRequest, quota: Quota = NO_QUOTA) -> ControllerResult:
    """Creates each topic by itself: a topic that cannot be created is answered with its error, the others are created (unless
    validate_only).

    Errors per topic: INVALID_TOPIC_EXCEPTION (name, or a collision of '.' and '_'), TOPIC_ALREADY_EXISTS, INVALID_PARTITIONS,
    INVALID_REPLICATION_FACTOR, INVALID_REPLICA_ASSIGNMENT, INVALID_CONFIG, INVALID_REQUEST (twice in the request, counts together
    with a manual assignment), POLICY_VIOLATION (too many partitions in one request), THROTTLING_QUOTA_EXCEEDED.
    """
    if _partitions_asked(decision, request) > MAX_RECORDS_PER_REQUEST:
        return ControllerResult(_all_refused(request, "Excessively large number of partitions per request."))
    named = Counter(topic.name for topic in request.topics)
    results: list[CreatableTopicResult] = []
    records: list[MetadataRecord] = []
    taken: dict[str, None] = dict.fromkeys(decision.image.topics.by_name)
    for topic in request.topics:
        if named[topic.name] > 1:
            if not any(result.name == topic.name for result in results):
                results.append(_refusal(topic.name, ErrorCode.INVALID_REQUEST, "Duplicate topic name."))
            continue
        try:
            result, created = _create_topic(decision, topic, taken, quota)
        except Refused as refused:
            results.append(_refusal(topic.name, refused.code, refused.message))
            continue
        results.append(result)
        records += created
        taken[topic.name] = None
    if len(records) > MAX_RECORDS_PER_REQUEST:
        return ControllerResult(
            _all_refused(request, f"The request would write more than {MAX_RECORDS_PER_REQUEST} metadata records: split it.")
        )
    response = CreateTopicsResponse(topics=results)
    if request.validate_only:
        return ControllerResult(response)
    _warn(results)
    return ControllerResult.of(response, records)


def _warn(results: Sequence[CreatableTopicResult]) -> None:
    """Warns about topics that are created, as in Kafka, but where acks=all promises less than expected or nothing can be
    written."""
    for result in results:
        if result.error_code == ErrorCode.NONE:
            for text in warnings(result.replication_factor, {row.name: row.value for row in result.configs or ()}):
                log.warning("topic %s: %s", result.name, text)


def _refusal(name: str, code: ErrorCode, message: str | None) -> CreatableTopicResult:
    return CreatableTopicResult(
        name=name,
        topic_id=ZERO_UUID,
        error_code=code,
        error_message=message,
        num_partitions=-1,
        replication_factor=-1,
        configs=[],
    )


def _partitions_asked(decision: Decision, request: CreateTopicsRequest) -> int:
    default = decision.settings.num_partitions
    return sum(
        len(t.assignments) or (default if t.num_partitions == DEFAULT else max(t.num_partitions, 0)) for t in request.topics
    )


def _all_refused(request: CreateTopicsRequest, message: str) -> CreateTopicsResponse:
    names = dict.fromkeys(topic.name for topic in request.topics)
    return CreateTopicsResponse(topics=[_refusal(name, ErrorCode.POLICY_VIOLATION, message) for name in names])


def _create_topic(
    decision: Decision, topic: CreatableTopic, taken: dict[str, None], quota: Quota
) -> tuple[CreatableTopicResult, list[MetadataRecord]]:
    _check_name(topic.name, taken)
    settings = _settings(decision, topic)
    partitions = _manual_partitions(decision.image, topic.assignments) if topic.assignments else None
    if partitions is not None:
        if topic.replication_factor != DEFAULT or topic.num_partitions != DEFAULT:
            which = "replication factor" if topic.replication_factor != DEFAULT else "numPartitions"
            message = f"A manual partition assignment was specified, but {which} was not set to -1."
            raise Refused(ErrorCode.INVALID_REQUEST, message)
        replication_factor = len(partitions[0].replicas)
    else:
        replication_factor = _replication_factor(decision, topic)
        partitions = _placed_partitions(decision, _partition_count(decision, topic), replication_factor)
    take(quota, len(partitions))
    topic_id = _new_id(decision)
    records: list[MetadataRecord] = [TopicRecord(name=topic.name, topic_id=topic_id)]
    records += [
        ConfigRecord(resource_type=TOPIC_RESOURCE, resource_name=topic.name, name=name, value=value)
        for name, value in settings.items()
    ]
    version = decision.image.metadata_version
    records += [partition_record(topic_id, number, partition, version) for number, partition in enumerate(partitions)]
    result = CreatableTopicResult(
        name=topic.name,
        topic_id=topic_id,
        error_message=None,
        num_partitions=len(partitions),
        replication_factor=replication_factor,
        configs=decision.rules.topic_rows(settings, decision.image),
    )
    return result, records


def take(quota: Quota, partitions: int) -> None:
    """THROTTLING_QUOTA_EXCEEDED when the client's mutation quota is used up."""
    if not quota.take(partitions):
        raise Refused(
            ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The client is over its controller_mutation_rate: retry after the throttle time."
        )


def _new_id(decision: Decision) -> Uuid:
    """A topic id that is not in use: random ids do not collide, but a simulation may start with the same seed twice."""
    topic_id = random_uuid(decision.rng)
    while topic_id in decision.image.topics.by_id:
        topic_id = random_uuid(decision.rng)
    return topic_id


def _check_name(name: str, taken: dict[str, None]) -> None:
    problem = name_problem(name)
    if problem is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, problem)
    if name == METADATA_TOPIC:
        raise Refused(ErrorCode.INVALID_REQUEST, f"Creation of internal topic {METADATA_TOPIC} is prohibited.")
    if name in taken:
        raise Refused(ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{name}' already exists.")
    other = collides_with(name, taken)
    if other is not None:
        raise Refused(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic '{name}' collides with existing topic: {other}")


def _settings(decision: Decision, topic: CreatableTopic) -> dict[str, str]:
    """The configs of the request, in its order; the later of two with one name counts. A null value is refused."""
    without_value = [config.name for config in topic.configs if config.value is None]
    if without_value:
        raise Refused(ErrorCode.INVALID_CONFIG, f"Null value not supported for topic configs: {','.join(without_value)}")
    settings = {config.name: config.value for config in topic.configs if config.value is not None}
    problem = decision.rules.problem(TOPIC_RESOURCE, topic.name, settings)
    if problem is not None:
        raise Refused(*problem)
    return settings


def _replication_factor(decision: Decision, topic: CreatableTopic) -> int:
    asked = topic.replication_factor
    if asked == 0 or asked < DEFAULT:
        message = "Replication factor must be larger than 0, or -1 to use the default value."
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, message)
    return decision.settings.default_replication_factor if asked == DEFAULT else asked


def _partition_count(decision: Decision, topic: CreatableTopic) -> int:
    asked = topic.num_partitions
    if asked == 0 or asked < DEFAULT:
        message = "Number of partitions was set to an invalid non-positive value."
        raise Refused(ErrorCode.INVALID_PARTITIONS, message)
    return decision.settings.num_partitions if asked == DEFAULT else asked


def _placed_partitions(decision: Decision, count: int, replication_factor: int) -> list[PartitionImage]:
    try:
        assignments = place(usable_brokers(decision.image.brokers.values()), count, replication_factor, decision.rng)
    except InvalidReplicationFactor as error:
        message = f"Each partition needs {replication_factor} replica(s): {error}"
        raise Refused(ErrorCode.INVALID_REPLICATION_FACTOR, message) from error
    return [new_partition(decision.image, replicas) for replicas in assignments]


def new_partition(image: ClusterImage, replicas: tuple[int, ...]) -> PartitionImage:
    """A new partition: the live replicas are in sync, and the first of them leads."""
    isr = tuple(replica for replica in replicas if image.brokers[replica].active)
    return PartitionImage(
        replicas=replicas,
        isr=isr,
        leader=isr[0] if isr else -1,
        leader_epoch=0,
        partition_epoch=0,
        directories=default_directories(image, replicas),
    )


def _manual_partitions(image: ClusterImage, assignments: Sequence[CreatableReplicaAssignment]) -> list[PartitionImage]:
    by_number: dict[int, PartitionImage] = {}
    replication_factor: int | None = None
    for assignment in assignments:
        number = assignment.partition_index
        if number in by_number:
            message = f"Partition {number} has more than one list of replicas: keep one."
            raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        by_number[number] = manual_partition(image, number, assignment.broker_ids, replication_factor)
        replication_factor = len(assignment.broker_ids)
    if sorted(by_number) != list(range(len(by_number))):
        message = "partitions should be a consecutive 0-based integer sequence"
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    return [by_number[number] for number in range(len(by_number))]


def check_manual_assignment(image: ClusterImage, broker_ids: Sequence[int], replication_factor: int | None) -> None:
    """INVALID_REPLICA_ASSIGNMENT unless each replica is on another registered broker and all partitions have the same number
    of replicas."""
    wrong = ErrorCode.INVALID_REPLICA_ASSIGNMENT
    if not broker_ids:
        raise Refused(wrong, "A partition in the manual assignment has no replicas: list at least one broker.")
    seen: set[int] = set()
    for broker_id in broker_ids:
        if broker_id in seen:
            message = f"The manual partition assignment includes the broker {broker_id} more than once."
            raise Refused(wrong, message)
        if broker_id not in image.brokers:
            message = f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
            raise Refused(wrong, message)
        seen.add(broker_id)
    if replication_factor is not None and len(broker_ids) != replication_factor:
        message = (
            f"The manual partition assignment includes a partition with {len(broker_ids)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )
        raise Refused(wrong, message)


def manual_partition(
    image: ClusterImage, number: int, broker_ids: Sequence[int], replication_factor: int | None
) -> PartitionImage:
    """A partition with the requested replicas. INVALID_REPLICA_ASSIGNMENT when that is impossible."""
    check_manual_assignment(image, broker_ids, replication_factor)
    partition = new_partition(image, tuple(broker_ids))
    if not partition.isr:
        message = f"Partition {number} would have no leader: every broker in its manual assignment is fenced or shutting down."
        raise Refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
    return partition


@dataclass(slots=True)
class _Deletion:
    """One topic of a DeleteTopics request and its result so far."""

    name: str | None
    topic_id: Uuid = ZERO_UUID
    code: ErrorCode = ErrorCode.NONE
    message: str | None = None

    def refuse(self, code: ErrorCode, message: str | None) -> _Deletion:
        self.code, self.message = code, message
        return self


def delete_topics(decision: Decision, request: DeleteTopicsRequest, quota: Quota = NO_QUOTA) -> ControllerResult:
    """Deletes topics by name or by id. Per topic: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_REQUEST (both,
    neither, or twice), THROTTLING_QUOTA_EXCEEDED.

    A topic named twice, or once by name and once by id, is answered once and not deleted. KafkaError TOPIC_DELETION_DISABLED for
    the whole request when ``delete.topic.enable`` is false.
    """
    if not decision.settings.delete_topic_enable:
        raise KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "Topics cannot be deleted here: delete.topic.enable is false.")
    asked = [*request.topics, *(DeleteTopicState(name=name) for name in request.topic_names)]
    times = Counter((state.name, state.topic_id) for state in asked)
    deletions: dict[tuple[str | None, bytes], _Deletion] = {}
    for state in asked:
        found = _resolve(decision.image, state, times[state.name, state.topic_id])
        other = deletions.get((found.name, found.topic_id)) if found.code is ErrorCode.NONE else None
        if other is not None:
            other.refuse(ErrorCode.INVALID_REQUEST, "The request names this topic twice, by name and by id: keep one.")
        key = (found.name, found.topic_id) if found.code is ErrorCode.NONE else (state.name, state.topic_id)
        deletions.setdefault(key, found)
    for each in deletions.values():
        if each.code is ErrorCode.NONE:
            try:
                take(quota, len(decision.image.topics.by_id[each.topic_id].partitions))
            except Refused as refused:
                each.refuse(refused.code, refused.message)
    results = [
        DeletableTopicResult(name=each.name, topic_id=each.topic_id, error_code=each.code, error_message=each.message)
        for each in deletions.values()
    ]
    records = [RemoveTopicRecord(topic_id=each.topic_id) for each in deletions.values() if each.code is ErrorCode.NONE]
    return ControllerResult.of(DeleteTopicsResponse(responses=results), records)


def _resolve(image: ClusterImage, state: DeleteTopicState, times: int) -> _Deletion:
    found = _Deletion(state.name, Uuid(state.topic_id))
    by_id = state.topic_id != ZERO_UUID
    if by_id and state.name is not None:
        return found.refuse(ErrorCode.INVALID_REQUEST, "The topic is named by name and by id: give one.")
    if not by_id and state.name is None:
        return found.refuse(ErrorCode.INVALID_REQUEST, "The topic has neither a name nor an id: give one.")
    if times > 1:
        return found.refuse(ErrorCode.INVALID_REQUEST, "Duplicate topic id." if by_id else "Duplicate topic name.")
    topic = image.topics.by_id.get(found.topic_id) if by_id else image.topics.by_name.get(state.name or "")
    if topic is not None:
        return _Deletion(topic.name, topic.id)
    if by_id:
        return found.refuse(ErrorCode.UNKNOWN_TOPIC_ID, "No topic has this id.")
    return found.refuse(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
