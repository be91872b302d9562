from __future__ import annotations

from tests.unit.server.controllers import Controllers
from tidelog.raft import quorum_state
from tidelog.raft.effects import ForgetLoss, Persist, Truncate
from tidelog.raft.log_shape import NOTHING_LOST, LogEnd
from tidelog.raft.mark_files import read_lost_end, write_lost_end
from tidelog.server.cluster.raft_files import RaftFiles


def test_the_vote_is_on_disk_before_anything_is_decided(one: Controllers) -> None:
    async def main() -> None:
        await one.start()
        await one.set("1")
        runner = one.nodes[1].runner
        state = quorum_state.load(runner.member.log.fs, runner.member.log.dir)
        assert state is not None and (state.leader_id, state.leader_epoch) == (1, runner.member.machine.epoch)

    one.run(main)


def test_what_changes_written_bytes_waits_for_a_running_sync_and_a_vote_does_not(one: Controllers) -> None:
    async def main() -> None:
        await one.start()
        await one.set("1")
        runner = one.nodes[1].runner
        files = RaftFiles(runner.member, one.runtime)
        state = quorum_state.load(runner.member.log.fs, runner.member.log.dir)
        assert state is not None
        persist = files.apply(Persist(state))
        cut = files.apply(Truncate(runner.member.log.end_offset, 7))
        assert persist is not None and not persist.after_sync
        assert cut is not None and cut.after_sync
        before = runner.member.generation
        assert (cut.then(None), runner.member.generation) == ([], 7)
        runner.member.generation = before

    one.run(main)


def test_a_loss_is_forgotten_on_the_disk(one: Controllers) -> None:
    async def main() -> None:
        await one.start()
        log = one.nodes[1].runner.member.log
        write_lost_end(log.fs, log.dir, LogEnd(3, 10))
        forget = RaftFiles(one.nodes[1].runner.member, one.runtime).apply(ForgetLoss())
        assert forget is not None and read_lost_end(log.fs, log.dir) == LogEnd(3, 10)
        assert (forget.run(), forget.then(None), read_lost_end(log.fs, log.dir)) == (None, [], NOTHING_LOST)

    one.run(main)
