"""Voter changes (KIP-853): AddRaftVoter, RemoveRaftVoter, UpdateRaftVoter, decided by the leader.

Changes are made one at a time, one voter each, so that any majority of the old set overlaps any majority of the new one. A change
waits until the leader has committed a record of its own epoch and the previous change is committed; then the new set takes effect
with its append, not with its commit. A new voter must have caught up as an observer, and is first asked for its kraft.version
range. The leader may remove itself: it continues until that is committed, without counting itself, and then resigns.

Errors: REQUEST_TIMED_OUT (not now: another change, nothing committed yet, the replica lags), UNSUPPORTED_VERSION (kraft.version
0), DUPLICATE_VOTER, VOTER_NOT_FOUND, INVALID_REQUEST; and those of every request to the leader.
"""

from __future__ import annotations

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import ZERO_UUID, Uuid, uuid_to_text
from tidelog.protocol.messages.add_raft_voter import AddRaftVoterRequest, AddRaftVoterResponse
from tidelog.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tidelog.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest, RemoveRaftVoterResponse
from tidelog.protocol.messages.update_raft_voter import UpdateRaftVoterRequest
from tidelog.raft import messages
from tidelog.raft.effects import Inbound, Node
from tidelog.raft.leader_fetch import not_leading, wake_voters
from tidelog.raft.leader_state import VoterChange
from tidelog.raft.quorum import Quorum
from tidelog.raft.voter_requests import wrong_cluster
from tidelog.raft.voters import ReplicaKey, VoterSet
from tidelog.records.control import ControlType, Endpoint, Voter, voters_value

KRAFT_VERSION_FEATURE = "kraft.version"


def _versions_request() -> ApiVersionsRequest:
    """A request without the client's software is refused (KIP-511)."""
    return ApiVersionsRequest(client_software_name="tidelog", client_software_version="0")


def _not_now(quorum: Quorum) -> str | None:
    """Why the voter set cannot be changed now."""
    state = quorum.leading()
    if state.change is not None:
        return "The leader is still busy with the previous change of the voter set. Try again."
    if state.high_watermark is None:
        return "The leader has not committed anything in its epoch yet. Try again."
    if quorum.log.sets.offset >= state.high_watermark:
        return f"The voter set at offset {quorum.log.sets.offset} is not committed yet. Try again."
    return None


def _refusal(
    quorum: Quorum, epoch: int, cluster_id: str | None, malformed: str | None, what: str
) -> tuple[ErrorCode, str | None]:
    """The checks for every change, in Kafka's order."""
    if wrong_cluster(quorum, cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID, f"This is cluster {quorum.config.cluster_id}, asked was {cluster_id}."
    error = not_leading(quorum, epoch)
    if error is not ErrorCode.NONE:
        return error, None
    if malformed is not None:
        return ErrorCode.INVALID_REQUEST, malformed
    busy = _not_now(quorum)
    if busy is not None:
        return ErrorCode.REQUEST_TIMED_OUT, busy
    if quorum.log.sets.kraft_version < 1:
        return ErrorCode.UNSUPPORTED_VERSION, (
            f"{what} needs kraft.version 1, this cluster has {quorum.log.sets.kraft_version}: its voters stand in "
            "controller.quorum.voters."
        )
    return ErrorCode.NONE, None


def _malformed(quorum: Quorum, key: ReplicaKey, endpoints: tuple[Endpoint, ...] | None) -> str | None:
    if key.id < 0 or key.directory_id == ZERO_UUID:
        return "A voter is named by its id and its directory id."
    if endpoints is not None and _reachable(quorum, endpoints) is None:
        return f"The voter has no endpoint for the listener {quorum.config.listener}."
    return None


def add_voter(quorum: Quorum, inbound: Inbound, request: AddRaftVoterRequest, now_ms: int) -> None:
    """Sent by kafka-metadata-quorum add-controller, and by controllers that join by themselves (v1: without waiting)."""
    endpoints = tuple(Endpoint(each.name, each.host, each.port) for each in request.listeners)
    key = ReplicaKey(request.voter_id, Uuid(request.voter_directory_id))
    malformed = _malformed(quorum, key, endpoints)
    error, message = _refusal(quorum, quorum.epoch, request.cluster_id, malformed, "Adding a voter")
    if error is ErrorCode.NONE and quorum.log.voters.by_id(request.voter_id) is not None:
        error, message = ErrorCode.DUPLICATE_VOTER, f"Node {request.voter_id} is a voter already: {_named(quorum)}."
    if error is not ErrorCode.NONE:
        quorum.out.reply(inbound, AddRaftVoterResponse(error_code=error, error_message=message))
        return
    at = _reachable(quorum, endpoints)
    assert at is not None, endpoints
    voter = Voter(key.id, key.directory_id, endpoints)
    asked = quorum.out.send(Node(key.id, at.host, at.port), _versions_request(), now_ms)
    if not asked:
        message = f"Node {key.id} is not ready for requests. Try again."
        quorum.out.reply(inbound, AddRaftVoterResponse(error_code=ErrorCode.REQUEST_TIMED_OUT, error_message=message))
        return
    deadline_ms = now_ms + quorum.config.answer_timeout_ms
    at_once = not request.ack_when_committed
    change = VoterChange(inbound, AddRaftVoterResponse, deadline_ms, voter, asked, answered_on_append=at_once)
    quorum.leading().set_change(change)


def api_versions_answered(quorum: Quorum, request_id: int, answer: ApiVersionsResponse, now_ms: int) -> None:
    """The new voter has reported its versions: the change is appended, or refused."""
    change = quorum.leading().change
    if change is None or change.request_id != request_id or change.voter is None:
        return
    ranges = {each.name: (each.min_version, each.max_version) for each in answer.supported_features}
    low, high = ranges.get(KRAFT_VERSION_FEATURE, (0, 0))
    key = ReplicaKey(change.voter.voter_id, Uuid(change.voter.directory_id))
    level = quorum.log.sets.kraft_version
    if answer.error_code != ErrorCode.NONE:
        drop_change(quorum, ErrorCode.REQUEST_TIMED_OUT, f"Node {key.id} did not say which versions it supports.")
    elif not low <= level <= high:
        text = f"Node {key.id} supports kraft.version {low} to {high}, this cluster has {level}."
        drop_change(quorum, ErrorCode.INVALID_REQUEST, text)
    elif (known := quorum.leading().observers.get(key)) is None or not known.caught_up(now_ms):
        text = f"Node {key.id} with directory id {uuid_to_text(key.directory_id)} has not caught up with the metadata log."
        drop_change(quorum, ErrorCode.REQUEST_TIMED_OUT, text)
    else:
        voter = Voter(key.id, key.directory_id, change.voter.endpoints, low, high)
        added = quorum.log.voters.adding(voter)
        assert added is not None, key
        quorum.leading().set_change(change._replace(offset=quorum.log.shape.end_offset))
        append_voters(quorum, added)
        if change.answered_on_append:
            _answer_change(quorum, ErrorCode.NONE)


def remove_voter(quorum: Quorum, inbound: Inbound, request: RemoveRaftVoterRequest, now_ms: int) -> None:
    """Sent by kafka-metadata-quorum remove-controller, and by controllers that join with a new disk."""
    key = ReplicaKey(request.voter_id, Uuid(request.voter_directory_id))
    malformed = _malformed(quorum, key, None)
    error, message = _refusal(quorum, quorum.epoch, request.cluster_id, malformed, "Removing a voter")
    removed = quorum.log.voters.removing(key) if error is ErrorCode.NONE else None
    if error is ErrorCode.NONE and removed is None:
        who = f"Node {key.id} with directory id {uuid_to_text(key.directory_id)}"
        error, message = ErrorCode.VOTER_NOT_FOUND, f"{who} is not a voter, or the last one: {_named(quorum)}."
    if removed is None:
        quorum.out.reply(inbound, RemoveRaftVoterResponse(error_code=error, error_message=message))
        return
    change = VoterChange(inbound, RemoveRaftVoterResponse, now_ms + quorum.config.answer_timeout_ms)
    quorum.leading().set_change(change._replace(offset=quorum.log.shape.end_offset))
    append_voters(quorum, removed)


def update_voter(quorum: Quorum, inbound: Inbound, request: UpdateRaftVoterRequest, now_ms: int) -> None:
    """Sent by a voter whose endpoints or versions differ from the voter set.

    Answered when it is in the log. With kraft.version 0 nothing is written: the leader remembers it, see ``kraft_upgrade``.
    """
    versions = request.kraft_version_feature
    low, high = versions.min_supported_version, versions.max_supported_version
    endpoints = tuple(Endpoint(each.name, each.host, each.port) for each in request.listeners)
    key = ReplicaKey(request.voter_id, Uuid(request.voter_directory_id))
    malformed = _malformed(quorum, key, endpoints)
    if not 0 <= low <= high:
        malformed = f"Versions {low} to {high} are no range."
    error, _ = _refusal(quorum, request.current_leader_epoch, request.cluster_id, malformed, "Updating a voter")
    known = quorum.log.voters.find(key)
    if error is ErrorCode.UNSUPPORTED_VERSION and known is not None:
        error = ErrorCode.NONE
        quorum.leading().introduce(Voter(key.id, key.directory_id, endpoints, low, high))
    elif error is ErrorCode.NONE and not low <= quorum.log.sets.kraft_version <= high:
        error = ErrorCode.INVALID_REQUEST
    elif error is ErrorCode.NONE and known is None:
        error = ErrorCode.VOTER_NOT_FOUND
    elif error is ErrorCode.NONE and known != (voter := Voter(key.id, key.directory_id, endpoints, low, high)):
        updated = quorum.log.voters.updating(voter)
        assert updated is not None, key
        append_voters(quorum, updated)
    quorum.out.reply(inbound, messages.update_voter_answer(quorum, inbound, error))


def append_voters(quorum: Quorum, voters: VoterSet) -> int:
    """The new set takes effect here; returns the offset of its record."""
    offset = quorum.log.append_control(quorum.epoch, [(ControlType.KRAFT_VOTERS, voters_value(voters.voters))])
    quorum.leading().set_voters(quorum.log.voters)
    quorum.note(f"voters {voters.ids} at {offset}")
    wake_voters(quorum)
    return offset


def drop_change(quorum: Quorum, error: ErrorCode, message: str) -> None:
    """The current change is dropped, or no longer waited for."""
    _answer_change(quorum, error, message)
    quorum.leading().set_change(None)


def expire_change(quorum: Quorum, now_ms: int) -> None:
    """A change that takes too long is no longer waited for; if it is in the log it may still be committed, and counts."""
    change = quorum.leading().change
    if change is not None and now_ms >= change.deadline_ms:
        if change.offset < 0:
            drop_change(quorum, ErrorCode.REQUEST_TIMED_OUT, "The new voter did not answer in time.")
        else:
            _answer_change(quorum, ErrorCode.REQUEST_TIMED_OUT, "The change was not committed in time; it may still be.")
            later = change._replace(inbound=None, deadline_ms=now_ms + quorum.config.answer_timeout_ms)
            quorum.leading().set_change(later)


def _answer_change(quorum: Quorum, error: ErrorCode, message: str | None = None) -> None:
    """Answers the request that waits for the current change, if there is one."""
    state = quorum.leading()
    change = state.change
    if change is not None and change.inbound is not None:
        quorum.out.reply(change.inbound, change.answer(error_code=error, error_message=message))
        state.set_change(change._replace(inbound=None))


def _reachable(quorum: Quorum, endpoints: tuple[Endpoint, ...]) -> Endpoint | None:
    name = quorum.config.listener
    return next((each for each in endpoints if each.name == name), None)


def _named(quorum: Quorum) -> str:
    return ", ".join(f"{key.id} ({uuid_to_text(key.directory_id)})" for key in quorum.log.voters.keys)
