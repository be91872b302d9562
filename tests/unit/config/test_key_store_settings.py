"""Which settings of stores go together."""

from __future__ import annotations

import pytest

from tidelog.config.key_store_settings import StoreSettings, key_store, trust_store
from tidelog.config.listener_sasl import ListenerOptions
from tidelog.model.errors import ConfigError

OWN = "listener.name.outside.ssl."
PEM = {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/node.pem"}


def of(given: dict[str, str]) -> ListenerOptions:
    return ListenerOptions(given, "OUTSIDE")


def test_a_pem_file_and_texts_need_no_password() -> None:
    assert key_store(of(PEM)) == StoreSettings("ssl.keystore.location", "/node.pem")
    found = key_store(of({"ssl.keystore.type": "PEM", "ssl.keystore.key": "canary", "ssl.keystore.certificate.chain": "chain"}))
    assert found == StoreSettings("ssl.keystore.key", None, None, None, "chain", "canary")
    assert "canary" not in repr(found)
    trusted = trust_store(of({"ssl.truststore.type": "PEM", "ssl.truststore.certificates": "texts"}))
    assert trusted == StoreSettings("ssl.truststore.certificates", None, None, None, "texts")


def test_without_settings_there_is_no_store() -> None:
    assert key_store(of({})) is None
    assert trust_store(of({})) is None


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"ssl.keystore.location": "/f"}, "ssl.keystore.password is not set"),
        ({"ssl.keystore.password": "canary"}, "ssl.keystore.password is set, but ssl.keystore.location is not"),
        ({**PEM, "ssl.keystore.password": "canary"}, "PEM has no password"),
        ({**PEM, "ssl.truststore.password": "canary"}, "ssl.truststore.password is set, but ssl.truststore.location is not"),
        ({"ssl.keystore.key": "canary", "ssl.keystore.certificate.chain": "c"}, "Set ssl.keystore.type=PEM"),
        ({"ssl.keystore.type": "PEM", "ssl.keystore.key": "canary"}, "belong together"),
        ({**PEM, "ssl.keystore.key": "canary", "ssl.keystore.certificate.chain": "c"}, "Remove one of them"),
        (
            {
                "ssl.keystore.type": "PEM",
                "ssl.keystore.key": "c",
                "ssl.keystore.certificate.chain": "c",
                f"{OWN}keystore.password": "p",
            },
            "PEM has no password",
        ),
    ],
)
def test_a_mistake_says_what_to_change(given: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError) as refused:
        (key_store(of(given)), trust_store(of(given)))
    assert problem in str(refused.value)
    assert "canary" not in str(refused.value)
