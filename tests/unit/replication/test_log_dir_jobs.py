from __future__ import annotations

from tests.unit.replication.world import NOW_MS, World, batch


def test_checkpoints_hold_the_high_watermarks() -> None:
    world = World()
    world.create("t")
    world.partition("t").append(batch(b"a", b"b"), NOW_MS, 1)
    world.manager.dir_jobs.checkpoint()
    world.run_jobs()
    assert world.disk.files["/data0/replication-offset-checkpoint"] == b"0\n1\nt 0 2\n"


def test_a_checkpoint_that_cannot_be_written_takes_its_dir_offline() -> None:
    world = World()
    world.create("t")
    world.manager.dir_jobs.checkpoint()
    world.disk.broken.append(("/data0", "sync"))
    world.run_jobs()
    assert world.partition("t").log is None
