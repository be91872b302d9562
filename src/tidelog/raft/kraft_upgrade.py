"""A quorum whose voters stand in ``controller.quorum.voters`` becomes one whose voters stand in the log: kraft.version 0 to 1
(KIP-853, `kafka-features upgrade --feature kraft.version=1`).

A static set knows neither directory ids nor what its voters support. Each voter tells the leader (UpdateRaftVoter); when all
have, the leader writes the level and the voters in one batch, and both count from there on. There is no way back.
"""

from __future__ import annotations

from tidelog.raft.quorum import Quorum
from tidelog.raft.serving import wake_voters
from tidelog.raft.voters import VoterSet
from tidelog.records.control import ControlType, Voter, kraft_version_value, voters_value

DYNAMIC = 1


def introduced(quorum: Quorum) -> VoterSet | None:
    """The static voters with their directories and endpoints; None while the leader has not heard of all of them."""
    known: dict[int, Voter] = {**quorum.leading().introduced, quorum.me.id: quorum.config.voter}
    ids = quorum.log.voters.ids
    if not quorum.is_voter or any(not (each in known and known[each].endpoints) for each in ids):
        return None
    return VoterSet.of(known[each] for each in ids)


def upgrade_refusal(quorum: Quorum) -> str | None:
    """Why the leader cannot raise kraft.version to 1 now; None when it can, or when it is there."""
    if quorum.log.sets.kraft_version >= DYNAMIC:
        return None
    state = quorum.leading()
    if state.high_watermark is None:
        return "Invalid upgrade of kraft.version to 1 because the leader has not committed anything in its epoch yet. Try again."
    voters = introduced(quorum)
    if voters is None:
        heard = {*state.introduced, quorum.me.id}
        silent = ", ".join(str(each) for each in quorum.log.voters.ids if each not in heard) or "the leader itself"
        return f"Invalid upgrade of kraft.version to 1 because not all of the voters support it: nothing is known of {silent}"
    unable = [each for each in voters.voters if not each.min_kraft_version <= DYNAMIC <= each.max_kraft_version]
    if unable:
        named = ", ".join(f"{each.voter_id} ({each.min_kraft_version} to {each.max_kraft_version})" for each in unable)
        return f"Invalid upgrade of kraft.version to 1 because not all of the voters support it: {named}"
    return None


def upgrade(quorum: Quorum) -> None:
    """The level and the voters go to the log. Only while ``upgrade_refusal`` has nothing to say; nothing at level 1."""
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
