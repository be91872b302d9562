from __future__ import annotations

from typing import Any

import pytest

from tidelog.config.jaas import parse_jaas
from tidelog.testing.permissions import allow
from tidelog.testing.users import MECHANISMS, Users, jaas_entry


@pytest.mark.parametrize("users", [{"": "x"}, {"a b": "x"}, {'a"': "x"}, {"alice": ""}])
def test_a_name_or_a_password_that_no_client_could_send_is_refused(users: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="a name has letters"):
        Users(users, None)


def test_acls_may_come_from_a_generator() -> None:
    users = Users({}, (allow("ann", "read", topic=name) for name in ("a", "b")))  # type: ignore[arg-type]
    assert len(users._acls or ()) == 2


def test_one_acl_in_place_of_a_list_is_refused() -> None:
    with pytest.raises(ValueError, match=r"such as acls=\[allow"):
        Users({}, allow("ann", "read", topic="orders"))  # type: ignore[arg-type]


@pytest.mark.parametrize("acls", [7, "x", {"alice": "read"}, [("alice", "read")], [None], [[allow("ann", "read", topic="t")]]])
def test_acls_of_another_shape_are_refused(acls: Any) -> None:
    with pytest.raises(ValueError, match=r"ACLs are a list of what allow\(\) and deny\(\) make"):
        Users({}, acls)


@pytest.mark.parametrize("users", [{"alice": None}, {"alice": b"canary"}, {7: "canary"}, {None: "canary"}, {"alice": 7}])
def test_a_name_or_a_password_that_is_no_text_is_refused(users: Any) -> None:
    with pytest.raises(TypeError, match=r"the name is a \w+ and the password a \w+; both must be text") as refused:
        Users(users, None)
    assert "canary" not in str(refused.value)


def test_without_users_clients_need_no_login() -> None:
    assert Users({}, None).settings(9) == {}
    assert list(Users({}, []).settings(9)) == ["authorizer.class.name"]
    assert Users({"a": "b"}, None).settings(9)["listeners"] == "SASL_PLAINTEXT://127.0.0.1:9"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_java_clients_entry_holds_any_password(mechanism: str) -> None:
    entry = parse_jaas(jaas_entry(mechanism, "alice", 'a"b\\c;d'))
    assert entry.options == {"username": "alice", "password": 'a"b\\c;d'}
