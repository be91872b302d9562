"""What a consumer reads, and what it does not accept."""

import pytest

from tidelog.client.producing import Transaction
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import TopicPartition
from tidelog.records.builder import RecordData, build_batch
from tidelog.testing.simulation import Cluster, DamagedBatch, Shape, simulate
from tidelog.testing.simulation.client import TRANSACTION
from tidelog.testing.simulation.reading import fetch

AT = TopicPartition("t", 0)
ONE = Shape(brokers=1)


def test_records_come_from_an_offset_on_and_say_where_they_end() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.create_topic("t")
        await cluster.produce("t", "a", "b", key=b"k")
        page = await fetch(cluster.client(), AT, 1)
        assert [(record.offset, record.key, record.value) for record in page.records] == [(1, b"k", b"b")]
        assert (page.next_offset, page.end) == (2, 2)

    simulate(1, scenario, shape=ONE)


def test_aborted_transactions_are_left_out_when_only_what_is_committed_is_read() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.create_topic("t")
        client = cluster.client()
        for commit in (False, True):
            transaction = Transaction("x", 20_000, implicit=True)
            where = await client.until(lambda: client.coordinator(TRANSACTION, "x"), lambda: False, lambda: None)
            while transaction.began(await client.ask(where, transaction.begin_request())) is not ErrorCode.NONE:
                await client.pause()
            value = b"kept" if commit else b"given up"
            batch = transaction.stamped(AT, build_batch([RecordData(None, value, client.runtime.now_ms())]))
            leader = await client.leader(AT)
            request = transaction.produce_request({AT: bytes(batch)}, 3000)
            request.topic_data[0].topic_id = client.metadata.topics["t"].topic_id
            await client.ask(leader, request)
            while transaction.ended(await client.ask(where, transaction.end_request(commit))) is not ErrorCode.NONE:
                await client.pause()
        await cluster.settle()
        assert [record.value for record in await cluster.read("t", committed=True)] == [b"kept"]
        assert [record.value for record in await cluster.read("t")] == [b"given up", b"kept"]

    simulate(1, scenario, shape=ONE)


def test_a_batch_whose_bit_has_turned_is_told_by_its_checksum_and_by_who_sent_it() -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.create_topic("t")
        await cluster.produce("t", "whole")
        disk = cluster.nodes[1].disk
        path = "/data/t-0/00000000000000000000.log"
        disk.flip(path, disk.stat(path).size - 2, 3)
        with pytest.raises(DamagedBatch, match="node 1: t-0: the batch at offset 0 has a wrong checksum"):
            await fetch(cluster.client(), AT, 0)

    simulate(1, scenario, shape=ONE)
