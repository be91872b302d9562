from tests.unit.raft.driver import CLUSTER, Driver, at, disk, fetch_request, voters
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ZERO_UUID
from tidelog.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from tidelog.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, SupportedFeatureKey
from tidelog.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from tidelog.protocol.messages.update_raft_voter import KRaftVersionFeature, UpdateRaftVoterRequest
from tidelog.protocol.messages.update_raft_voter import Listener as UpdateListener
from tidelog.raft.effects import AppendControl
from tidelog.raft.election import Role


def leader(**options: object) -> Driver:
    node = Driver(**options)  # type: ignore[arg-type]
    node.elect()
    node.commit()
    return node


def add(node_id: int, *, wait: bool = True, cluster: str = CLUSTER) -> AddRaftVoterRequest:
    where = at(node_id)
    return AddRaftVoterRequest(cluster, 1000, node_id, disk(node_id), [Listener(where.name, where.host, where.port)], wait)


def remove(node_id: int) -> RemoveRaftVoterRequest:
    return RemoveRaftVoterRequest(CLUSTER, node_id, disk(node_id))


def versions(low: int = 0, high: int = 1) -> ApiVersionsResponse:
    return ApiVersionsResponse(supported_features=[SupportedFeatureKey("kraft.version", low, high)])


def catch_up(node: Driver, replica: int) -> None:
    end = node.quorum.log.shape.end
    node.ask(fetch_request(replica, node.machine.epoch, end.offset, end.epoch, max_wait_ms=0))


def test_a_voter_that_has_caught_up_is_asked_for_its_versions_and_added() -> None:
    node = leader()
    catch_up(node, 4)
    assert node.ask(add(4)) is None
    token = node.tokens
    busy = node.ask(remove(3))
    assert (busy.error_code, "previous change" in busy.error_message) == (ErrorCode.REQUEST_TIMED_OUT, True)
    node.answer(node.sends(ApiVersionsRequest)[4], versions())
    assert node.machine.voters.ids == (1, 2, 3, 4), "from the append on"
    assert node.answer_to(token) is None, "but the answer waits for the commit"
    node.sync()
    catch_up(node, 2)
    assert node.answer_to(token) is None, "two of four are no majority"
    catch_up(node, 4)
    assert node.answer_to(token).error_code == 0


def test_who_joins_by_itself_does_not_wait_for_the_commit() -> None:
    node = leader()
    catch_up(node, 4)
    node.ask(add(4, wait=False))
    node.answer(node.sends(ApiVersionsRequest)[4], versions())
    assert node.answer_to(node.tokens).error_code == 0


def test_who_lags_or_knows_other_versions_or_does_not_answer_is_not_added() -> None:
    node = leader()
    node.ask(add(4))
    node.answer(node.sends(ApiVersionsRequest)[4], versions())
    assert "not caught up" in node.answer_to(node.tokens).error_message
    catch_up(node, 4)
    node.ask(add(4))
    node.answer(node.sends(ApiVersionsRequest)[4], versions(0, 0))
    assert node.answer_to(node.tokens).error_code == ErrorCode.INVALID_REQUEST
    node.ask(add(4))
    node.pass_time(2000)
    assert node.answer_to(node.tokens).error_code == ErrorCode.REQUEST_TIMED_OUT
    node.ask(add(4))
    node.did(node.machine.failed(node.sends(ApiVersionsRequest)[4].request_id, node.now, refused=True))
    assert node.answer_to(node.tokens).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert node.machine.voters.ids == (1, 2, 3)


def test_changes_that_cannot_be_are_refused() -> None:
    node = leader()
    assert node.ask(add(2)).error_code == ErrorCode.DUPLICATE_VOTER
    assert node.ask(remove(9)).error_code == ErrorCode.VOTER_NOT_FOUND
    assert node.ask(add(4, cluster="x")).error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    assert node.ask(AddRaftVoterRequest(CLUSTER, 0, 4, disk(4), [])).error_code == ErrorCode.INVALID_REQUEST
    assert node.ask(RemoveRaftVoterRequest(CLUSTER, 2, ZERO_UUID)).error_code == ErrorCode.INVALID_REQUEST
    follower = Driver()
    follower.follow()
    assert follower.ask(add(4)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    static = leader(members=voters(1, 2, 3, dynamic=False), level=0)
    assert static.ask(remove(2)).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_nothing_is_changed_before_the_epoch_has_committed_something() -> None:
    node = Driver()
    node.elect()
    assert node.ask(remove(2)).error_code == ErrorCode.REQUEST_TIMED_OUT


def test_a_leader_that_removes_itself_resigns_when_that_is_committed() -> None:
    node = leader()
    assert node.ask(remove(1)) is None
    token = node.tokens
    assert node.machine.is_leader
    node.sync()
    catch_up(node, 2)
    assert node.machine.is_leader, "it does not count itself any more"
    catch_up(node, 3)
    assert node.answer_to(token).error_code == 0
    assert node.machine.role is Role.RESIGNED


def test_a_voter_says_where_it_listens_now() -> None:
    node = leader()

    def update(node_id: int, high: int = 1) -> UpdateRaftVoterRequest:
        listeners = [UpdateListener("CONTROLLER", "new", 1)]
        return UpdateRaftVoterRequest(
            CLUSTER, node.machine.epoch, node_id, disk(node_id), listeners, KRaftVersionFeature(0, high)
        )

    assert node.ask(update(9)).error_code == ErrorCode.VOTER_NOT_FOUND
    assert node.ask(update(2, high=0)).error_code == ErrorCode.INVALID_REQUEST
    answer = node.ask(update(2))
    assert (answer.error_code, answer.current_leader.leader_id, answer.current_leader.port) == (0, 1, at(1).port)
    endpoint = node.machine.voters.endpoint_of(2, "CONTROLLER")
    assert endpoint is not None and endpoint.host == "new"
    node.commit()
    appended = len(node.of(AppendControl))
    assert node.ask(update(2)).error_code == 0
    assert len(node.of(AppendControl)) == appended, "nothing new, nothing written"
