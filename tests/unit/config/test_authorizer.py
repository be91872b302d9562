from __future__ import annotations

import pytest

from tidelog.config.authorizer import STANDARD_AUTHORIZER, AuthorizerSettings, authorizer_settings, super_users_warning
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError

ON = {"authorizer.class.name": STANDARD_AUTHORIZER}


@pytest.mark.parametrize("given", [{}, {"authorizer.class.name": " "}, {"super.users": "nonsense"}])
def test_a_node_without_an_authorizer_has_no_settings_of_one(given: dict[str, str]) -> None:
    assert authorizer_settings(given) is None


def test_by_default_nothing_is_allowed() -> None:
    assert authorizer_settings(ON) == AuthorizerSettings((), False)


def test_super_users_are_separated_by_semicolons_because_names_hold_commas() -> None:
    given = ON | {"super.users": "User:CN=a,OU=b; User:root ;;User:a:b;User:root", "allow.everyone.if.no.acl.found": " TRUE"}
    assert authorizer_settings(given) == AuthorizerSettings((("User", "CN=a,OU=b"), ("User", "root"), ("User", "a:b")), True)


def test_users_with_commas_between_them_are_one_user_and_named_as_such() -> None:
    assert super_users_warning({"super.users": "User:a;User:CN=b,OU=c"}) == ""
    assert super_users_warning({"super.users": "User:a, User:CN=b,OU=c"}).endswith("semicolons: User:a;User:CN=b,OU=c")
    warnings = BrokerConfig.from_properties(ON | {"node.id": "1", "super.users": "User:a,User:b"}).warnings
    assert [each for each in warnings if "User:a;User:b" in each]


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("authorizer.class.name", "kafka.security.authorizer.AclAuthorizer", STANDARD_AUTHORIZER),
        ("super.users", "User:a;root", "User:root"),
        ("super.users", ":root", "User:root"),
        ("allow.everyone.if.no.acl.found", "yes", "true or false"),
    ],
)
def test_what_is_misspelled_is_refused_with_what_would_do(name: str, text: str, named: str) -> None:
    with pytest.raises(ConfigError) as refused:
        authorizer_settings(ON | {name: text})
    assert str(refused.value).startswith(name)
    assert named in str(refused.value)
