from tidelog.coordinator.group.effects import Effects
from tidelog.model.machine import NOTHING, Outcome, Reply, Token


def test_nothing_gathered_is_nothing_wanted() -> None:
    assert Effects().outcome() is NOTHING


def test_records_and_answers_keep_their_order() -> None:
    effects = Effects()
    effects.records += ["a", "b"]
    effects.reply(Token(2), "x")
    effects.reply(Token(1), "y")
    assert effects.outcome() == Outcome(records=("a", "b"), replies=(Reply(Token(2), "x"), Reply(Token(1), "y")))
