"""The end of a partition, from its leader: what the lag of a share group is measured against."""

from __future__ import annotations

from tidelog.broker.node import BrokerContext
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import NO_BROKER
from tidelog.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic

PURPOSE, TIMEOUT_MS, LATEST = "share lag", 10_000, -1


async def latest_offset(ctx: BrokerContext, topic: str, index: int) -> int | None:
    """The offset behind the last record that consumers see; None when the leader cannot be asked."""
    image = ctx.image.topics.partition(topic, index)
    if image is None or image.leader == NO_BROKER:
        return None
    if image.leader == ctx.node.node_id:
        partition = ctx.node.replicas.by_name(topic, index)
        log = None if isinstance(partition, ErrorCode) else partition.log
        return None if log is None else log.high_watermark
    asked = ListOffsetsPartition(partition_index=index, timestamp=LATEST)
    request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=[asked])])
    try:
        response = await ctx.node.others.ask(image.leader, PURPOSE, request, TIMEOUT_MS)
    except KafkaError:
        return None
    found = [each for one in response.topics for each in one.partitions]
    return found[0].offset if len(found) == 1 and not found[0].error_code else None
