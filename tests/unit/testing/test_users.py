from __future__ import annotations

import pytest

from tidelog.testing.users import Users


@pytest.mark.parametrize("users", [{"": "x"}, {"a b": "x"}, {'a"': "x"}, {"alice": ""}])
def test_a_name_or_a_password_that_no_client_could_send_is_refused(users: dict[str, str]) -> None:
    with pytest.raises(ValueError, match="a name has letters"):
        Users(users, None)


def test_without_users_clients_need_no_login() -> None:
    assert Users({}, None).settings(9) == {}
    assert list(Users({}, []).settings(9)) == ["authorizer.class.name"]
    assert Users({"a": "b"}, None).settings(9)["listeners"] == "SASL_PLAINTEXT://127.0.0.1:9"
