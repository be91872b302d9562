"""Upgrade of kraft.version 0 to 1: a quorum with voters in ``controller.quorum.voters`` becomes one with voters in the log
(KIP-853, `kafka-features upgrade --feature kraft.version=1`).

A controller without a listener (``tidelog start --data``; Kafka does not start one) stays at 0: the log would name a voter
without an address, no other voter could be added to it, and there is no way back.

A static voter set has neither directory ids nor supported versions. Each voter sends them to the leader (UpdateRaftVoter); when
all have, the leader writes the level and the voters in one batch, and both take effect there. There is no downgrade.
"""

from __future__ import annotations

from tidelog.raft.leader_fetch import wake_voters
from tidelog.raft.quorum import Quorum
from tidelog.raft.voters import VoterSet
from tidelog.records.control import ControlType, Voter, kraft_version_value, voters_value

DYNAMIC = 1


def introduced(quorum: Quorum) -> VoterSet | None:
    """The static voters with their directories and endpoints; None until all have reported them."""
    known: dict[int, Voter] = {**quorum.leading().introduced, quorum.me.id: quorum.config.voter}
    ids = quorum.log.voters.ids
    if not quorum.is_voter or any(not (each in known and known[each].endpoints) for each in ids):
        return None
    return VoterSet.of(known[each] for each in ids)


def upgrade_refusal(quorum: Quorum) -> str | None:
    """Why the leader cannot raise kraft.version to 1 now; None when it can, or already has."""
    if quorum.log.sets.kraft_version >= DYNAMIC:
        return None
    state = quorum.leading()
    if state.high_watermark is None:
        return "Invalid upgrade of kraft.version to 1 because the leader has not committed anything in its epoch yet. Try again."
    if not quorum.config.endpoints:
        return (
            f"Invalid upgrade of kraft.version to 1 because controller {quorum.me.id} has no listener at which other voters "
            "could reach it. Start it from a server.properties with process.roles, controller.quorum.voters, "
            "controller.listener.names and a listener of that name, then upgrade again; until then, name only the other features"
        )
    voters = introduced(quorum)
    if voters is None:
        heard = {quorum.me.id, *(each for each, voter in state.introduced.items() if voter.endpoints)}
        silent = ", ".join(str(each) for each in quorum.log.voters.ids if each not in heard) or "the leader itself"
        return f"Invalid upgrade of kraft.version to 1 because not all of the voters support it: nothing is known of {silent}"
    unable = [each for each in voters.voters if not each.min_kraft_version <= DYNAMIC <= each.max_kraft_version]
    if unable:
        named = ", ".join(f"{each.voter_id} ({each.min_kraft_version} to {each.max_kraft_version})" for each in unable)
        return f"Invalid upgrade of kraft.version to 1 because not all of the voters support it: {named}"
    return None


def upgrade(quorum: Quorum) -> None:
    """Appends the level and the voters. Only while ``upgrade_refusal`` is None; does nothing at level 1."""
    if quorum.log.sets.kraft_version >= DYNAMIC:
        return
    assert upgrade_refusal(quorum) is None, upgrade_refusal(quorum)
    voters = introduced(quorum)
    assert voters is not None
    level = (ControlType.KRAFT_VERSION, kraft_version_value(DYNAMIC))
    offset = quorum.log.append_control(quorum.epoch, [level, (ControlType.KRAFT_VOTERS, voters_value(voters.voters))])
    quorum.leading().set_voters(quorum.log.voters)
    quorum.note(f"kraft.version 1, voters {voters.ids} at {offset}")
    wake_voters(quorum)
