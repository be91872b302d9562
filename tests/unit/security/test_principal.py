from __future__ import annotations

import pytest

from tidelog.security.principal import (
    ANONYMOUS,
    MAX_GROUP_CHARACTERS,
    MOST_GROUPS,
    KafkaPrincipal,
    group_principals,
    with_groups,
)

ALICE = KafkaPrincipal("User", "alice")


def test_a_principal_is_written_as_in_acls() -> None:
    assert str(KafkaPrincipal("User", "CN=a,OU=b")) == "User:CN=a,OU=b"


def test_a_user_is_the_same_user_in_other_groups() -> None:
    staff = with_groups(ALICE, group_principals(["staff", "on call", "staff"]))
    assert staff.groups == {"Group:staff", "Group:on call"}
    assert (staff, hash(staff), str(staff)) == (ALICE, hash(ALICE), "User:alice")
    assert staff != KafkaPrincipal("User", "bob")
    assert with_groups(ALICE, frozenset()) is ALICE
    assert ANONYMOUS.groups == frozenset()


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        ([""], "not the name"),
        ([" "], "not the name"),
        (["*"], "not the name"),
        (["a\ud800"], "not the name"),
        (["a" * (MAX_GROUP_CHARACTERS + 1)], "characters"),
        ([str(number) for number in range(MOST_GROUPS + 1)], "are the most"),
    ],
)
def test_groups_that_do_not_fit_are_refused_as_a_whole(names: list[str], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        group_principals(names)
    assert len(group_principals(str(number) for number in range(MOST_GROUPS))) == MOST_GROUPS
