from tidelog.controller.topic_names import collides_with, name_problem


def test_names_as_long_as_they_may_be_of_all_legal_characters_are_good() -> None:
    assert name_problem("aZ09._-" + "x" * 242) is None


def test_names_collide_when_they_differ_only_in_dot_and_underscore() -> None:
    assert collides_with("a.b_c", ["x", "a_b.c"]) == "a_b.c"
    assert collides_with("a.b", ["a.b", "ab", "a-b"]) is None
    assert collides_with("plain", ["plain_", "pl_in"]) is None
