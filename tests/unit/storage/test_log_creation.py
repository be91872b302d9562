from sim.workload import NOW_MS, PARTITION, TOPIC_ID, append, batch, load, new_log
from tidelog.storage import checkpoints
from tidelog.storage.log_config import LogConfig
from tidelog.storage.log_creation import create_log
from tidelog.testing.simulation.disk import SimDisk


def test_a_new_log_has_its_topic_id_on_the_disk_before_any_data() -> None:
    disk = SimDisk()
    log = new_log(disk)
    assert checkpoints.read_partition_metadata(disk, log.dir) == TOPIC_ID
    assert (log.log_start_offset, log.log_end_offset, log.high_watermark, log.last_stable_offset) == (0, 0, 0, 0)
    log.check()


def test_a_log_may_begin_anywhere() -> None:
    disk = SimDisk()
    log = create_log(disk, "/data/orders-0", PARTITION, TOPIC_ID, LogConfig(), NOW_MS, start_offset=500)
    assert append(log, batch()).first_offset == 500
    log.close()
    assert load(disk, clean=True).log_end_offset == 501
