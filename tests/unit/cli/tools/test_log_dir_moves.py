"""Moves between log dirs: asked for at the replica's broker, again while it does not have it yet."""

import pytest

from tests.unit.cli.cluster_stand_in import StandIn
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools import log_dir_moves
from tidelog.cli.tools.log_dir_moves import begin, report, state, take_back
from tidelog.cli.tools.reassignments import Placed
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages import alter_replica_log_dirs as altering
from tidelog.protocol.messages import describe_log_dirs as dirs

WANTED = {("a", 0, 1): "/two"}


def answering(*codes: int) -> StandIn:
    left = list(codes)

    def answer(request: altering.AlterReplicaLogDirsRequest) -> altering.AlterReplicaLogDirsResponse:
        part = altering.AlterReplicaLogDirPartitionResult(partition_index=0, error_code=left.pop(0))
        topic = altering.AlterReplicaLogDirTopicResult(topic_name="a", partitions=[part])
        return altering.AlterReplicaLogDirsResponse(results=[topic])

    return StandIn({altering.AlterReplicaLogDirsRequest: answer})


def test_a_broker_that_does_not_have_the_replica_yet_is_asked_again(monkeypatch, capsys):
    monkeypatch.setattr(log_dir_moves, "RETRY_S", 0)
    session = answering(ErrorCode.REPLICA_NOT_AVAILABLE, ErrorCode.NONE)
    begin(session, WANTED, 10_000)
    assert [at for at, _ in session.asked] == [1, 1]
    assert capsys.readouterr().out == "Successfully started moving log directory to /two for replica a-0 with broker 1\n"


def test_a_broker_that_refuses_or_stays_without_it_is_told():
    with pytest.raises(CommandFailed, match="Failed to alter dir for a-0-1: LOG_DIR_NOT_FOUND"):
        begin(answering(ErrorCode.LOG_DIR_NOT_FOUND), WANTED, 10_000)
    with pytest.raises(CommandFailed, match=r"within 0 ms .*: a-0-1"):
        begin(answering(ErrorCode.REPLICA_NOT_AVAILABLE), WANTED, 0)


@pytest.mark.parametrize(
    ("now", "says"),
    [
        (None, "in no live log directory"),
        (Placed("/one", 1, "/two"), "still in progress"),
        (Placed("/one", 1, "/three"), "moving to log directory /three, not to /two"),
        (Placed("/one", 1), "lies in log directory /one and is not moving"),
        (Placed("/two", 1), "completed successfully"),
    ],
)
def test_each_state_has_its_line(now, says):
    assert says in state(("a", 0, 1), "/two", now)


def on_disk(session: StandIn, future: bool) -> StandIn:
    def row(path: str, is_future: bool) -> dirs.DescribeLogDirsResult:
        part = dirs.DescribeLogDirsPartition(partition_index=0, partition_size=1, is_future_key=is_future)
        return dirs.DescribeLogDirsResult(log_dir=path, topics=[dirs.DescribeLogDirsTopic(name="a", partitions=[part])])

    rows = [row("/one", False)] + ([row("/two", True)] if future else [])
    session.answers[dirs.DescribeLogDirsRequest] = dirs.DescribeLogDirsResponse(results=rows)
    return session


def test_a_move_is_taken_back_by_asking_for_where_the_replica_lies(capsys):
    session = on_disk(answering(ErrorCode.NONE), future=True)
    assert report(session, WANTED)
    take_back(session, WANTED)
    ((_, request),) = session.requests(altering.AlterReplicaLogDirsRequest)
    assert request.dirs[0].path == "/one"
    assert "Successfully cancelled moves for: a-0-1" in capsys.readouterr().out
    idle = on_disk(answering(), future=False)
    assert not report(idle, WANTED)
    take_back(idle, WANTED)
    assert "nothing to cancel" in capsys.readouterr().out
