from __future__ import annotations

import json
from typing import Any

import pytest

from tidelog.console.access.rights import About, Right
from tidelog.console.access.sessions import Session, Sessions
from tidelog.console.access.users import Users
from tidelog.http.passwords import hashed
from tidelog.model.errors import ConfigError

HASH = hashed("secret", b"0123456789abcdef")


def session(name: str, roles: frozenset[str] | None = None) -> Session:
    return Sessions().begin("token", name, "csrf", 0, roles=roles)


def file(**changes: Any) -> str:
    found: dict[str, Any] = {
        "users": {"ann": {"password": HASH, "roles": ["viewers"]}},
        "roles": {"viewers": [{"rights": ["view"], "topics": ["*"]}]},
        "masks": [{"topics": ["customers"], "paths": ["value.mail"]}],
    }
    return json.dumps({**found, **changes})


def test_users_have_the_rights_of_their_roles() -> None:
    users = Users(file(), "users.json")
    ann = users.find("ann")
    assert ann is not None
    assert HASH not in repr(ann)
    access = users.access(session("ann"), read_only=False)
    assert access.may(Right.VIEW, "main", About.TOPIC, "orders")
    assert not access.may(Right.PAYLOAD, "main", About.TOPIC, "orders")
    assert access.hidden("main", "customers", "value") == (("mail",),)
    assert users.find("bob") is None
    assert users.access(session("bob"), read_only=False).rights() == []


def test_the_roles_of_a_providers_login_count_whatever_the_file_has_under_that_name() -> None:
    users = Users(file(), "users.json")
    assert users.access(session("ann", frozenset()), read_only=False).rights() == []
    assert users.access(session("zoe", frozenset({"viewers"})), read_only=False).rights() == [Right.VIEW]
    assert users.oidc is None


def test_a_provider_may_log_in_everyone() -> None:
    oidc = {"issuer": "https://a.example", "client_id": "c", "everyone": ["viewers"]}
    users = Users(file(users={}, oidc=oidc), "users.json")
    assert users.oidc is not None
    assert not users.have_passwords


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("{", "not JSON"),
        ("[]", "JSON object"),
        (file(users={}), "no users"),
        (file(user={}), "'user' is unknown"),
        (file(users={"ann": {"password": "secret", "roles": []}}), "user ann"),
        (file(users={"ann": {"roles": []}}), "no password"),
        (file(users={"ann": {"password": HASH, "roles": ["admins"]}}), "no role admins"),
        (file(roles={"viewers": []}), "list of grants"),
        (file(roles={"viewers": [{"rights": ["veiw"]}]}), "rights are view, payload, change"),
        (file(roles={"viewers": [{"rights": []}]}), "gives no rights"),
        (file(roles={"viewers": [{"rights": ["view"], "topic": ["*"]}]}), "'topic' is unknown"),
        (file(roles={"viewers": [{"rights": ["view"], "topics": "*"}]}), "list of texts"),
        (file(roles={"viewers": [{"rights": ["view"], "cluster": "yes"}]}), "true or false"),
        (file(masks={}), "masks must be a list"),
        (file(oidc={"issuer": "https://a.example"}), "users.json, oidc: client_id"),
        (file(masks=[{"topics": ["c"], "paths": ["mail"]}]), "must begin with key, value or headers"),
        (file(masks=[{"topics": ["c"], "paths": ["value..x"]}]), "must begin with"),
        (file(masks=[{"topics": ["c"], "paths": ["value"], "except_roles": ["x"]}]), "no role x"),
        (file(masks=[{"paths": ["value"]}]), "topics must be"),
    ],
)
def test_a_file_with_a_mistake_is_refused_with_its_place(text: str, part: str) -> None:
    with pytest.raises(ConfigError) as found:
        Users(text, "users.json")
    assert "users.json" in str(found.value)
    assert part in str(found.value)
