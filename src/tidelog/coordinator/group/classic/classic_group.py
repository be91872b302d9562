"""One group of the classic protocol: its state, its members and the protocols they support.

``MOVES`` lists the legal state transitions. This module decides which transitions exist, which protocol a generation uses, and
which member leads. When a transition happens is decided in ``rebalance``, ``membership`` and ``joining``. Generation, members and
assignment are durable: a GroupMetadata record holds them. Waiting tokens and deadlines are soft state and lost in a crash.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from tidelog.model.machine import Token


class GroupState(Enum):
    """The value is the name that Kafka's tools show."""

    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


MOVES: dict[GroupState, frozenset[GroupState]] = {
    GroupState.EMPTY: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.PREPARING_REBALANCE: frozenset({GroupState.COMPLETING_REBALANCE, GroupState.EMPTY, GroupState.DEAD}),
    GroupState.COMPLETING_REBALANCE: frozenset({GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.STABLE: frozenset({GroupState.PREPARING_REBALANCE, GroupState.DEAD}),
    GroupState.DEAD: frozenset(),
}


class Member:
    """One member. ``join_token`` and ``sync_token`` name its parked requests; ``deadline_ms`` is when its session ends."""

    __slots__ = (
        "assignment",
        "client_host",
        "client_id",
        "deadline_ms",
        "instance_id",
        "is_new",
        "join_token",
        "join_version",
        "member_id",
        "protocols",
        "rebalance_timeout_ms",
        "session_timeout_ms",
        "sync_token",
    )

    def __init__(
        self,
        member_id: str,
        *,
        instance_id: str | None,
        client_id: str,
        client_host: str,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        protocols: tuple[tuple[str, bytes], ...],
        assignment: bytes = b"",
    ) -> None:
        self.member_id = member_id
        self.instance_id = instance_id
        self.client_id = client_id
        self.client_host = client_host
        self.rebalance_timeout_ms = rebalance_timeout_ms
        self.session_timeout_ms = session_timeout_ms
        self.protocols = protocols
        self.assignment = assignment
        self.is_new = False
        self.join_token: Token | None = None
        self.join_version = 0
        self.sync_token: Token | None = None
        self.deadline_ms = 0

    def metadata(self, protocol: str) -> bytes:
        """The member's metadata for ``protocol``, which it must support."""
        return next(metadata for name, metadata in self.protocols if name == protocol)

    def subscription(self, protocol: str | None) -> bytes:
        """The member's metadata for ``protocol``, the group's last one. If it no longer lists that protocol, or the group
        never chose one, its metadata for its first choice."""
        return next((metadata for name, metadata in self.protocols if name == protocol), self.protocols[0][1])

    def vote(self, candidates: Iterable[str]) -> str | None:
        """The member's first choice among the candidates."""
        wanted = frozenset(candidates)
        return next((name for name, _ in self.protocols if name in wanted), None)


class ClassicGroup:
    """Members are kept in join order; ``leader`` is one of them unless the group is empty."""

    __slots__ = (
        "_common",
        "generation",
        "group_id",
        "initial_delay_left_ms",
        "join_deadline_ms",
        "leader",
        "members",
        "new_member_joined",
        "pending",
        "pending_sync",
        "protocol",
        "protocol_type",
        "state",
        "state_since_ms",
        "static",
        "story",
        "sync_deadline_ms",
    )

    STORY_LENGTH = 32

    def __init__(self, group_id: str, now_ms: int) -> None:
        self.group_id = group_id
        self.state = GroupState.EMPTY
        self.state_since_ms = now_ms
        self.generation = 0
        self.protocol_type: str | None = None
        self.protocol: str | None = None
        self.leader: str | None = None
        self.members: dict[str, Member] = {}
        self.static: dict[str, str] = {}
        """Instance id -> member id."""
        self.pending: dict[str, int] = {}
        """Member ids handed out with MEMBER_ID_REQUIRED and not used yet -> when they expire."""
        self.pending_sync: dict[str, None] = {}
        """Members of this generation that have not sent SyncGroup yet."""
        self.join_deadline_ms: int | None = None
        self.sync_deadline_ms: int | None = None
        self.initial_delay_left_ms: int | None = None
        """How much longer the delay before a group's first rebalance may be extended; None outside that delay."""
        self.new_member_joined = False
        self.story: list[str] = []
        self._common: set[str] | None = None
        """Protocols that all members support; None when not computed."""

    # -- moves ---------------------------------------------------------------------------------------------------------------

    def move(self, to: GroupState, now_ms: int, why: str) -> None:
        """Makes a legal transition; an illegal one is a bug."""
        assert to in MOVES[self.state], f"{self.group_id}: {self.state} -> {to} ({why}); {self.story}"
        self.story.append(f"{now_ms} {self.state.value}->{to.value} gen {self.generation}: {why}")
        del self.story[: -self.STORY_LENGTH]
        self.state = to
        self.state_since_ms = now_ms

    def next_generation(self, now_ms: int) -> None:
        """Ends the join phase: a group with members waits for its leader's assignment, one without becomes empty."""
        self.generation = 1 if self.generation >= 2_147_483_647 else self.generation + 1
        self.join_deadline_ms = None
        self.initial_delay_left_ms = None
        if self.members:
            self.protocol = self.choose_protocol()
            self.move(GroupState.COMPLETING_REBALANCE, now_ms, f"{len(self.members)} members, protocol {self.protocol}")
        else:
            self.protocol = None
            self.move(GroupState.EMPTY, now_ms, "no members")

    # -- members -------------------------------------------------------------------------------------------------------------

    def add(self, member: Member) -> None:
        """Adds a new member; the first one becomes the leader."""
        assert member.member_id not in self.members
        if self.leader is None:
            self.leader = member.member_id
        if member.instance_id is not None:
            assert member.instance_id not in self.static
            self.static[member.instance_id] = member.member_id
        self.members[member.member_id] = member
        if self._common is not None:
            self._common.intersection_update(name for name, _ in member.protocols)
        self.pending.pop(member.member_id, None)

    def remove(self, member_id: str) -> Member:
        """Removes a member; if it was the leader, another member becomes leader."""
        member = self.members.pop(member_id)
        self._common = None
        self.pending_sync.pop(member_id, None)
        if member.instance_id is not None and self.static.get(member.instance_id) == member_id:
            del self.static[member.instance_id]
        if self.leader == member_id:
            self.leader = next(iter(self.members), None)
        return member

    def replace_static(self, instance_id: str, new_id: str) -> Member:
        """Gives a static member a new id; it keeps its place in the join order."""
        old_id = self.static[instance_id]
        member = self.members[old_id]
        self.members = {new_id if key == old_id else key: value for key, value in self.members.items()}
        member.member_id = new_id
        self.static[instance_id] = new_id
        if self.leader == old_id:
            self.leader = new_id
        if self.pending_sync.pop(old_id, "") is None:
            self.pending_sync[new_id] = None
        return member

    def elect_joined_leader(self) -> bool:
        """Picks a leader that has rejoined in this round. False when no member has rejoined."""
        if self.leader is not None and self.members[self.leader].join_token is not None:
            return True
        joined = next((key for key, member in self.members.items() if member.join_token is not None), None)
        if joined is None:
            return False
        self.leader = joined
        return True

    def not_rejoined(self) -> list[Member]:
        """Members that have not sent JoinGroup in this join phase."""
        return [member for member in self.members.values() if member.join_token is None]

    def everybody_joined(self) -> bool:
        """Whether all members have joined and every id that was handed out has been used."""
        return not self.pending and all(member.join_token is not None for member in self.members.values())

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of any member."""
        return max((member.rebalance_timeout_ms for member in self.members.values()), default=0)

    # -- protocols -----------------------------------------------------------------------------------------------------------

    def candidates(self) -> list[str]:
        """Protocols that all members support, in the first member's order."""
        members = list(self.members.values())
        if not members:
            return []
        others = [frozenset(name for name, _ in member.protocols) for member in members[1:]]
        return [name for name, _ in members[0].protocols if all(name in names for names in others)]

    def supports(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a member with this protocol type and these protocols may join."""
        if not self.members:
            return bool(protocol_type) and any(True for _ in names)
        if self._common is None:
            # Each name is looked at only once: the client decides how many it sends.
            members = iter(self.members.values())
            self._common = {name for name, _ in next(members).protocols}
            for member in members:
                self._common.intersection_update(name for name, _ in member.protocols)
        return protocol_type == self.protocol_type and any(name in self._common for name in names)

    def change_protocols(self, member: Member, protocols: tuple[tuple[str, bytes], ...]) -> None:
        """Replaces the protocols that a member supports."""
        if protocols != member.protocols:
            member.protocols = protocols
            self._common = None

    def choose_protocol(self) -> str:
        """The candidate with the most votes; on a tie, the one that got its first vote first."""
        candidates = self.candidates()
        assert candidates, f"{self.group_id}: no protocol that all members support"
        votes: dict[str, int] = {}
        for member in self.members.values():
            choice = member.vote(candidates)
            assert choice is not None
            votes[choice] = votes.get(choice, 0) + 1
        return max(votes, key=lambda name: votes[name])

    # -- invariants ----------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Asserts the invariants."""
        assert self.leader is None or self.leader in self.members, self.story
        assert (self.leader is None) == (not self.members), self.story
        assert all(self.members[key].instance_id == instance for instance, key in self.static.items()), self.story
        assert all(key == member.member_id for key, member in self.members.items()), self.story
        assert all(key in self.members for key in self.pending_sync), self.story
        assert self._common is None or self._common == set(self.candidates()) or not self.members, self.story
        assert not (self.pending.keys() & self.members.keys()), self.story
        assert (self.join_deadline_ms is not None) == (self.state is GroupState.PREPARING_REBALANCE), self.story
        if self.state in {GroupState.EMPTY, GroupState.DEAD}:
            assert not self.members, self.story
        if self.state in {GroupState.STABLE, GroupState.COMPLETING_REBALANCE}:
            assert self.protocol is not None and self.members, self.story
        if self.state is not GroupState.PREPARING_REBALANCE:
            assert all(member.join_token is None for member in self.members.values()), self.story
        if self.state is not GroupState.COMPLETING_REBALANCE:
            assert all(member.sync_token is None for member in self.members.values()), self.story
