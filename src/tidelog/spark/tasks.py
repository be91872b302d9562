"""The tasks of a batch: what lies between two offsets, cut as the options say, each with the leader that has it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.model.ids import EARLIEST_TIMESTAMP, ZERO_UUID, TopicPartition, uuid_from_text
from tidelog.spark.cluster import Cluster
from tidelog.spark.options import SourceOptions
from tidelog.spark.planning import OffsetRange, SourceOffset, next_ranges, split, unseen
from tidelog.spark.reader import ReadTask, report_loss


def cut(cluster: Cluster, options: SourceOptions, ranges: tuple[OffsetRange, ...], ids: Mapping[str, bytes]) -> list[ReadTask]:
    """The ranges as tasks."""
    pieces = split(ranges, options.min_partitions, options.max_records_per_partition)
    return [
        ReadTask(piece.at, piece.start, piece.end, ids.get(piece.at.topic, ZERO_UUID), cluster.hint(piece.at)) for piece in pieces
    ]


def between(cluster: Cluster, options: SourceOptions, begin: SourceOffset, stop: SourceOffset) -> list[ReadTask]:
    """The tasks of a batch; the same ones when it runs again after a crash. DataLost for records that are gone, or a line in the
    log for each loss where the user accepts that."""
    if begin == stop:
        return []
    if any(cluster.metadata.leader(at.topic, at.partition) is None for at in stop.positions):
        cluster.topics(tuple(sorted({at.topic for at in stop.positions})))
    ranges, loss = next_ranges(begin, stop, earliest(cluster, unseen(begin, stop)))
    report_loss(loss.sentences, options.fail_on_data_loss)
    return cut(cluster, options, ranges, {topic: uuid_from_text(text) for topic, text in stop.ids.items()})


def earliest(cluster: Cluster, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
    """Where partitions begin."""
    wanted = dict.fromkeys(sorted(partitions), EARLIEST_TIMESTAMP)
    return cluster.offsets(wanted) if wanted else {}
