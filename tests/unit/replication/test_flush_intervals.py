from __future__ import annotations

from sim.workload import append, batch
from tests.unit.replication.followed import followed, produce
from tests.unit.replication.world import NOW_MS
from tests.unit.storage.managed_logs import TOPIC, manager
from tests.unit.storage.managed_logs import partition as of
from tidelog.replication.flush_intervals import needs_flush, next_flush, overdue
from tidelog.storage.log_config import LogConfig
from tidelog.testing.simulation.disk import SimDisk


def test_a_flush_that_somebody_demands_takes_along_what_came_while_one_was_running() -> None:
    world, partition = followed()
    produce(partition, 2)
    partition.demand_flush(2)
    assert needs_flush(partition) and next_flush(partition) is None, "one is running"
    produce(partition, 1)
    partition.demand_flush(3)
    assert world.run_jobs() == 2
    assert partition.log is not None
    assert partition.log.recovery_point == 3 and not needs_flush(partition)


def test_a_flush_of_a_partition_that_was_deleted_meanwhile_means_nothing() -> None:
    world, partition = followed()
    produce(partition, 2)
    job = next_flush(partition)
    assert job is not None
    job.run()
    world.delete("t")
    partition.finish_flush(job, NOW_MS)
    assert next_flush(partition) is None


def test_logs_are_due_for_a_flush_after_flush_ms() -> None:
    logs = manager(SimDisk(), "/a", config=LogConfig(flush_ms=1000))
    log = logs.get_or_create(of(0), TOPIC, NOW_MS)
    log.flush(NOW_MS)
    assert overdue(logs.logs(), NOW_MS + 5000) == []
    append(log, batch())
    assert overdue(logs.logs(), NOW_MS + 999) == []
    assert overdue(logs.logs(), NOW_MS + 1000) == [log]
