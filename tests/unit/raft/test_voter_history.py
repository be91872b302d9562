from tests.unit.raft.driver import voters
from tidelog.raft.voter_history import VoterSets


def test_the_latest_set_counts_and_a_cut_takes_it_back() -> None:
    sets = VoterSets(voters(1), 0)
    assert not sets.voters_in_log()
    sets.note_kraft_version(4, 1)
    sets.note_voters(5, voters(1, 2))
    assert (sets.voters.ids, sets.kraft_version, sets.offset) == ((1, 2), 1, 5)
    assert sets.before is not None and sets.before.ids == (1,)
    assert sets.at(5)[0].ids == (1,)
    assert sets.at(6)[0].ids == (1, 2)
    sets.truncate(5)
    assert (sets.voters.ids, sets.kraft_version) == ((1,), 1)
    sets.truncate(0)
    assert sets.kraft_version == 0 and not sets.voters_in_log()


def test_a_snapshot_says_it_anew() -> None:
    sets = VoterSets(voters(1), 0)
    sets.note_voters(5, voters(1, 2))
    sets.reset(99, voters(3), 1)
    assert (sets.voters.ids, sets.offset, sets.before) == ((3,), 99, None)
