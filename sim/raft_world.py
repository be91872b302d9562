"""A simulated metadata quorum: replicas, the network between them, clients, administrators, and faults; all from one seed.

Time is virtual and in ms. The network drops, delays, doubles and reorders messages and can be cut one way or both; replicas
crash, pause, restart, and run on clocks of their own speed; voters are added and removed. Then everything heals, and the quorum
has to come back: one leader, the same log everywhere, new records committed. The same seed gives the same run, whatever
``PYTHONHASHSEED`` is.
"""

from __future__ import annotations

import heapq
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from sim.raft_checkers import Checkers, Violation
from sim.raft_disk import Disk
from sim.raft_node import SimVoter
from sim.raft_rot import Outcome, flip_a_bit, is_alone
from tidelog.model.ids import Uuid
from tidelog.model.machine import Token
from tidelog.protocol.messages.add_raft_voter import AddRaftVoterRequest, Listener
from tidelog.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse, SupportedFeatureKey
from tidelog.protocol.messages.remove_raft_voter import RemoveRaftVoterRequest
from tidelog.raft.effects import Send
from tidelog.raft.kraft_upgrade import upgrade_refusal
from tidelog.raft.raft_config import RaftConfig
from tidelog.raft.raft_log import QuorumFault
from tidelog.raft.voters import ReplicaKey, VoterSet
from tidelog.records.control import Endpoint, Voter

CLUSTER = "sim"
LISTENER = "CONTROLLER"
STEPS_LIMIT = 400_000
FAULTS = ("crash", "crash", "pause", "cut", "one way", "isolate", "heal", "stop", "skew", "stop all", "log lost", "rot", "rot")


@dataclass(frozen=True, slots=True)
class Plan:
    """How hard a seed is: drawn from the seed itself."""

    voters: int
    spares: int
    dynamic: bool
    chaos_ms: int
    drop: float
    double: float
    slow: float
    fault_every_ms: int
    wire: bool

    @staticmethod
    def draw(rng: random.Random) -> Plan:
        dynamic = rng.random() < 0.7
        return Plan(
            voters=rng.choice((1, 3, 3, 3, 5)),
            spares=rng.choice((0, 1, 2)) if dynamic else 0,
            dynamic=dynamic,
            chaos_ms=rng.choice((6_000, 10_000, 16_000)),
            drop=rng.choice((0.0, 0.0, 0.02, 0.1)),
            double=rng.choice((0.0, 0.02)),
            slow=rng.choice((0.0, 0.02, 0.1)),
            fault_every_ms=rng.choice((300, 700, 1500)),
            wire=rng.random() < 0.1,
        )


@dataclass(slots=True)
class _Waiting:
    """Who waits for an answer; ``request`` is what was asked."""

    voter: SimVoter | None
    life: int
    request_id: int
    request: Any
    then: Callable[[Any], None] | None = None


@dataclass(slots=True)
class World:
    """See the module. ``bugs``: what is broken on purpose."""

    seed: int
    bugs: frozenset[str] = frozenset()
    rng: random.Random = field(init=False)
    plan: Plan = field(init=False)
    now: int = 0
    steps: int = 0
    voters: dict[int, SimVoter] = field(default_factory=dict)
    checkers: Checkers = field(default_factory=Checkers)
    counts: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    healed: bool = False
    upgrade_ms: int | None = None
    """From when on a static quorum is to become a dynamic one (kraft.version 1)."""
    _events: list[tuple[int, int, Callable[[], None]]] = field(default_factory=list)
    _sequence: int = 0
    _waiting: dict[int, _Waiting] = field(default_factory=dict)
    _tokens: int = 0
    _cut: dict[tuple[int, int], None] = field(default_factory=dict)
    _values: int = 0
    _rot_of_one: random.Random = field(init=False)
    """When a bit flips in the log of an only voter, which is rare among the faults."""
    _shrinking: random.Random | None = None
    """In some seeds: when one more voter is removed, down to one."""

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)
        self.plan = plan = Plan.draw(self.rng)
        upgrade = random.Random(f"upgrade {self.seed}")
        self._rot_of_one = random.Random(f"rot of one {self.seed}")
        shrinking = random.Random(f"shrinking {self.seed}")
        if plan.dynamic and shrinking.random() < 0.15:
            self._shrinking = shrinking
        if not plan.dynamic and upgrade.random() < 0.5:
            self.upgrade_ms = upgrade.randint(0, plan.chaos_ms)
        keys = [self._key(node_id) for node_id in range(1, plan.voters + plan.spares + 1)]
        members = [Voter(key.id, key.directory_id if plan.dynamic else bytes(16), (_endpoint(key.id),)) for key in keys]
        first = VoterSet.of(members[: plan.voters])
        for key in keys:
            known = first if key.id <= plan.voters else VoterSet(())
            self._add(key, Disk(known, 1 if plan.dynamic and known.voters else 0))

    @staticmethod
    def _key(node_id: int) -> ReplicaKey:
        return ReplicaKey(node_id, Uuid(node_id.to_bytes(2, "big") * 8))

    def _add(self, key: ReplicaKey, disk: Disk) -> None:
        rng = self.rng
        everybody = range(1, self.plan.voters + self.plan.spares + 1)
        config = RaftConfig(
            key,
            CLUSTER,
            (_endpoint(key.id),),
            bootstrap=tuple((f"n{each}", 9093) for each in everybody) if self.plan.dynamic else (),
            auto_join=rng.random() < 0.3,
        )
        clock = (rng.choice((1.0, 1.0, 0.97, 1.03)), rng.choice((0, 0, 1_000_000, -3_600_000)) + 10_000_000)
        self.voters[key.id] = SimVoter(self, config, disk, clock)

    # Time

    def after(self, delay_ms: int, what: Callable[[], None]) -> None:
        self._sequence += 1
        heapq.heappush(self._events, (self.now + delay_ms, self._sequence, what))

    def _step(self) -> None:
        self.now, _, what = heapq.heappop(self._events)
        self.steps += 1
        what()

    def count(self, what: str) -> None:
        self.counts[what] += 1

    def disk_delay(self) -> int:
        return self.rng.randint(0, 5) if self.rng.random() < 0.95 else self.rng.randint(20, 400)

    # Messages

    def _delay(self) -> int:
        if not self.healed and self.rng.random() < self.plan.slow:
            return self.rng.randint(100, 1500)
        return self.rng.randint(1, 8)

    def _lost(self, source: int, target: int) -> bool:
        return (source, target) in self._cut or (not self.healed and self.rng.random() < self.plan.drop)

    def send(self, source: SimVoter, effect: Send) -> None:
        """From one replica to another; ids below -1 are places."""
        target = self.voters.get(effect.to.id if effect.to.id >= 0 else int(effect.to.host[1:]))
        life = source.life
        if target is None:
            return
        if target.id == source.id:
            # A bootstrap server that is this replica itself.
            self.after(1, lambda: self._failed(source, life, effect.request_id, False))
            return
        times = 2 if not self.healed and self.rng.random() < self.plan.double else 1
        for _ in range(times):
            if not self._lost(source.id, target.id):
                self.after(self._delay(), lambda: self._arrive(source, life, target, effect))

    def _failed(self, source: SimVoter, life: int, request_id: int, refused: bool) -> None:
        if source.life == life:
            source.give(lambda: source.machine.failed(request_id, source.now, refused=refused))

    def _arrive(self, source: SimVoter, life: int, target: SimVoter, effect: Send) -> None:
        if not target.alive:
            if not self._lost(target.id, source.id):
                self.after(self._delay(), lambda: self._failed(source, life, effect.request_id, True))
            return
        request = effect.request
        if isinstance(request, ApiVersionsRequest):
            features = [SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)]
            answer = ApiVersionsResponse(supported_features=features)
            self.after(self._delay(), lambda: self._back(source, life, effect.request_id, answer))
            return
        token = self._token(_Waiting(source, life, effect.request_id, request))
        if self.plan.wire:
            request = type(request).decode(request.encode(request.MAX_VERSION), request.MAX_VERSION)
        self._ask(target, token, request)

    def _ask(self, target: SimVoter, token: Token, request: Any) -> None:
        key, version = request.API_KEY, request.MAX_VERSION
        target.give(lambda: target.machine.request(token, key, version, LISTENER, request, target.now))

    def _token(self, waiting: _Waiting) -> Token:
        self._tokens += 1
        self._waiting[self._tokens] = waiting
        return Token(self._tokens)

    def asked(self, token: Token) -> Any | None:
        """The request behind a token."""
        waiting = self._waiting.get(token)
        return None if waiting is None else waiting.request

    def answer(self, source: SimVoter, token: Token, response: Any) -> None:
        waiting = self._waiting.pop(token, None)
        if waiting is None:
            raise Violation(f"voter {source.id} answers a request twice: {response}")
        if waiting.then is not None:
            waiting.then(response)
            return
        assert waiting.voter is not None
        asker, life, request_id = waiting.voter, waiting.life, waiting.request_id
        if self.plan.wire:
            version = waiting.request.MAX_VERSION
            response = type(response).decode(response.encode(version), version)
        if not self._lost(source.id, asker.id):
            self.after(self._delay(), lambda: self._back(asker, life, request_id, response))

    def _back(self, asker: SimVoter, life: int, request_id: int, response: Any) -> None:
        if asker.life == life:
            asker.give(lambda: asker.machine.answer(request_id, response, asker.now))

    # The course of a run

    def run(self) -> None:
        """Chaos, then healing. Violation, with the seed and the stories, when a promise is broken."""
        try:
            for voter in self.voters.values():
                self.after(self.rng.randint(0, 300), lambda voter=voter: self._up(voter))  # type: ignore[misc]
            self._client()
            self._chaos()
            self._until(lambda: self.now >= self.plan.chaos_ms)
            self._heal()
            if not self._until(self._well, self.now + 60_000):
                raise Violation("nothing moves any more, although everything is healed")
            self.checkers.final([each for each in self.voters.values() if each.alive])
        except (AssertionError, QuorumFault) as problem:
            raise Violation(self._report(problem)) from problem

    def _until(self, enough: Callable[[], bool], limit_ms: int = 1 << 60) -> bool:
        while not enough():
            if self.now >= limit_ms or self.steps > STEPS_LIMIT:
                return False
            self._step()
        return True

    def _report(self, problem: Exception) -> str:
        stories = [
            f"  {voter.id}{'' if voter.alive else ' (down)'}: {'; '.join(voter.machine.quorum.story)}"
            for voter in self.voters.values()
            if hasattr(voter, "machine")
        ]
        return "\n".join([f"seed {self.seed} at {self.now} ms, {self.plan}: {type(problem).__name__} {problem}", *stories])

    def _up(self, voter: SimVoter) -> None:
        if not voter.alive:
            voter.start()

    def _leaders(self) -> list[SimVoter]:
        return [each for each in self.voters.values() if each.alive and not each.paused and each.machine.is_leader]

    def _client(self) -> None:
        self._values += 1
        for leader in self._leaders():
            if self.rng.random() < 0.8:
                leader.append(self._values.to_bytes(8, "big"))
        if self.plan.dynamic and self.rng.random() < 0.05:
            self._administer(self.rng.choice(list(self.voters.values())))
        if self._shrinking is not None and self._shrinking.random() < 0.1:
            self._remove_one(self._shrinking)
        if self.upgrade_ms is not None and self.now >= self.upgrade_ms:
            self._upgrade()
        alone = [each for each in self._leaders() if each.machine.voters.keys == (each.key,)]
        if alone and not self.healed and self._rot_of_one.random() < 0.06:
            self._rot(alone[0])
        self.after(self.rng.randint(20, 300), self._client)

    def _upgrade(self) -> None:
        """Somebody raises kraft.version at whoever says that it leads, until it is told that it is done."""
        for leader in self._leaders():
            if leader.machine.kraft_version == 0 and upgrade_refusal(leader.machine.quorum) is None:
                leader.give(lambda leader=leader: leader.machine.upgrade_kraft_version(leader.now))  # type: ignore[misc]
                self.count("static quorum made dynamic")

    def _remove_one(self, rng: random.Random) -> None:
        """The set shrinks by one of its voters."""
        voters = {key for leader in self._leaders() for key in leader.machine.voters.keys}
        known = [each for each in self.voters.values() if each.key in voters]
        if len(known) > 1:
            self._administer(rng.choice(known))

    def _administer(self, subject: SimVoter) -> None:
        """An administrator adds or removes a voter, at a node that says that it leads."""
        leaders = self._leaders()
        if not leaders:
            return
        target = self.rng.choice(leaders)
        known = target.machine.voters.find(subject.key) is not None
        request: Any
        if known:
            request = RemoveRaftVoterRequest(CLUSTER, subject.id, subject.key.directory_id)
        else:
            at = _endpoint(subject.id)
            listeners = [Listener(at.name, at.host, at.port)]
            request = AddRaftVoterRequest(CLUSTER, 2000, subject.id, subject.key.directory_id, listeners)
        what = "voter removed" if known else "voter added"

        def then(answer: Any) -> None:
            if answer.error_code == 0:
                self.count(what)

        self._ask(target, self._token(_Waiting(None, 0, 0, request, then)), request)

    # Faults

    def _chaos(self) -> None:
        if self.healed:
            return
        self._fault()
        self.after(self.rng.randint(self.plan.fault_every_ms // 2, self.plan.fault_every_ms * 2), self._chaos)

    def _fault(self) -> None:
        rng = self.rng
        voter = rng.choice(list(self.voters.values()))
        if rng.random() < 0.4:
            voter = rng.choice(self._leaders() or [voter])
        kind = rng.choice(FAULTS)
        if kind not in ("log lost", "rot"):
            self.count(kind)
        if kind == "crash" and voter.alive:
            self._down(voter, rng.choice((1, 50, 500, 3000)))
        elif kind == "pause" and voter.alive and not voter.paused:
            voter.pause()
            self.after(rng.choice((30, 400, 2500, 5000)), voter.resume)
        elif kind in ("cut", "one way"):
            other = rng.choice(list(self.voters.values()))
            self._cut[(voter.id, other.id)] = None
            if kind == "cut":
                self._cut[(other.id, voter.id)] = None
        elif kind == "isolate":
            for other in self.voters.values():
                self._cut[(voter.id, other.id)] = self._cut[(other.id, voter.id)] = None
        elif kind == "heal":
            self._cut.clear()
        elif kind == "stop" and voter.alive and not voter.paused:
            voter.give(lambda: voter.machine.shut_down(voter.now, 1000))
            self.after(rng.choice((20, 300, 1000)), lambda: self._down(voter, 200))
        elif kind == "skew":
            voter.clock = (rng.choice((0.9, 1.0, 1.1)), voter.clock[1] + int(self.now * voter.clock[0]))
            voter.clock = (voter.clock[0], voter.clock[1] - int(self.now * voter.clock[0]))
        elif kind == "log lost":
            self._lose_log(voter)
        elif kind == "rot":
            self._rot(voter)
        elif kind == "stop all" and rng.random() < 0.3:
            for each in self.voters.values():
                self._down(each, rng.randint(1, 400))

    def _lose_log(self, voter: SimVoter) -> None:
        """One voter of a static quorum comes back without its log, with its vote. That is survived as long as all others have
        what is committed."""
        if (
            self.plan.dynamic
            or self.upgrade_ms is not None
            or self.plan.voters < 3
            or self.checkers.data_lost
            or not self.checkers.committed
        ):
            return
        last = self.checkers.committed[max(self.checkers.committed)]
        others = [each for each in self.voters.values() if each is not voter]
        if any(each.disk.lost_end > each.disk.log_end for each in others):
            return
        if all(each.disk.holds(last.base_offset, last.epoch) for each in others):
            self.checkers.data_lost = True
            self.count("log lost")
            self._down(voter, 100)
            voter.disk.lose_log()

    def _rot(self, voter: SimVoter) -> None:
        """A bit of what one voter had synced flips while it is down. Others that have all that is committed may stop then,
        and come back. The voter is the only one, or every voter set that some log names has three at least: of two, one that
        is damaged may have to wait for records that were never committed (docs/adr/0023)."""
        disk = voter.disk
        if not voter.alive or self.checkers.data_lost or not self.checkers.committed or len(disk.safe) < 2 or disk.state is None:
            return
        last = self.checkers.committed[max(self.checkers.committed)]
        others = [each for each in self.voters.values() if each is not voter]
        known = [each.disk.voter_sets().voters for each in self.voters.values()]
        voters = disk.voter_sets().voters
        holders = [each for each in others if voters.find(each.key) and each.disk.holds(last.base_offset, last.epoch)]
        alone = is_alone(disk, voter.config)
        if not alone and (
            not holders
            or any(0 < len(each.voters) < 3 for each in known)
            or any(each.disk.lost_end > each.disk.log_end for each in others)
        ):
            return
        self.count("rot")
        self._down(voter, 100)
        # With its power it may have lost the record that left it alone: then it is one of two.
        damaged = disk.log and (not alone or is_alone(disk, voter.config))
        outcome = flip_a_bit(disk, voter.config, self.rng) if damaged else Outcome.WHOLE
        if outcome is Outcome.LOST:
            self.count("damaged records fetched again")
            if voter.machine.kraft_version:
                self.count("damaged records of a dynamic quorum fetched again")
        elif outcome is Outcome.REFUSED:
            self.count("refused to start")
        for each in holders if self.rng.random() < 0.7 else ():
            self._down(each, 4000)

    def _down(self, voter: SimVoter, for_ms: int) -> None:
        if voter.alive:
            voter.crash()
            self.after(for_ms, lambda: self._up(voter))

    def _heal(self) -> None:
        self.healed = True
        self._cut.clear()
        for voter in self.voters.values():
            voter.resume()
            self._up(voter)

    def _well(self) -> bool:
        """One leader that commits what it is given, and everybody has it."""
        leaders = self._leaders()
        if len(leaders) != 1 or any(not each.alive or each.paused for each in self.voters.values()):
            return False
        leader = leaders[0]
        mark = leader.high_watermark
        same = all(each.high_watermark == mark and not each.queue for each in self.voters.values())
        return same and mark == leader.disk.end and not leader.pending and leader.machine.quorum.state.high_watermark is not None  # type: ignore[union-attr]


def _endpoint(node_id: int) -> Endpoint:
    return Endpoint(LISTENER, f"n{node_id}", 9093)
