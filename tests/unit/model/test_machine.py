from tidelog.model.machine import NOTHING, Outcome, Reply, Token


def test_an_outcome_says_nothing_unless_told() -> None:
    assert Outcome(records=(), sends=(), replies=()) == NOTHING


def test_outcomes_are_values() -> None:
    assert Outcome(replies=(Reply(Token(1), "x"),)) == Outcome(replies=(Reply(Token(1), "x"),))
