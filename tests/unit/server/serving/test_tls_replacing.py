"""Which stores may take the place of others."""

from __future__ import annotations

import os
import ssl
from itertools import pairwise
from pathlib import Path

import pytest

from tests.certificates import Authority, Issued
from tests.unit.server.serving.tls_pairs import AUTHORITY, NODE, client_context, given, listener, stored
from tidelog.config.listener_tls import tls_settings
from tidelog.model.errors import ConfigError
from tidelog.server.serving.tls_replacing import Loaded, check_replacement, load, shake_hands, signature


def loaded(node: Issued = NODE, authorities: str = AUTHORITY.pem, **more: str) -> Loaded:
    texts = {
        "ssl.keystore.key": node.key,
        "ssl.keystore.certificate.chain": node.chain,
        "ssl.truststore.certificates": authorities,
    }
    return load(tls_settings({**given(**more), **texts}, "OUTSIDE", "SSL"))[0]


def test_a_renewed_certificate_may_replace_the_old_one_and_have_more_names() -> None:
    renewed = AUTHORITY.issue("node", "127.0.0.1", "localhost", "another.example")
    check_replacement(loaded(), loaded(renewed), between_nodes=True)


@pytest.mark.parametrize(
    ("node", "more", "said"),
    [
        (AUTHORITY.issue("other", "localhost", "127.0.0.1"), {}, r"that of CN=other, and the old one that of CN=node"),
        (AUTHORITY.issue("node", "localhost"), {}, "lacks subject alternative names"),
        (NODE, {"client_auth": "required"}, "only key stores and trust stores change"),
    ],
)
def test_what_changes_more_than_a_certificate_is_refused(node: Issued, more: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_replacement(loaded(), loaded(node, **more), between_nodes=False)


def test_settings_may_allow_other_names() -> None:
    allowed = {"allow_dn_changes": "true", "allow_san_changes": "true"}
    check_replacement(loaded(**allowed), loaded(AUTHORITY.issue("other"), **allowed), between_nodes=False)


def test_a_store_neither_appears_nor_vanishes() -> None:
    without = load(tls_settings({n: t for n, t in given().items() if "truststore" not in n}, "OUTSIDE", "SSL"))[0]
    with pytest.raises(ConfigError, match="truststore cannot be removed"):
        check_replacement(loaded(), without, between_nodes=False)
    with pytest.raises(ConfigError, match="truststore cannot be added"):
        check_replacement(without, loaded(), between_nodes=False)


@pytest.mark.parametrize("auth", ["none", "required"])
def test_between_nodes_the_old_and_the_new_must_trust_each_other(auth: str) -> None:
    other = Authority("another")
    stranger = other.issue("node", "localhost", "127.0.0.1")
    before = loaded(client_auth=auth)
    check_replacement(before, loaded(stranger, other.pem, client_auth=auth), between_nodes=False)
    with pytest.raises(ConfigError, match="would not trust each other"):
        check_replacement(before, loaded(stranger, other.pem, client_auth=auth), between_nodes=True)
    both = AUTHORITY.pem + other.pem
    steps = [before, loaded(NODE, both, client_auth=auth), loaded(stranger, both, client_auth=auth)]
    for old, new in pairwise(steps):
        check_replacement(old, new, between_nodes=True)


def test_a_key_that_does_not_fit_is_refused() -> None:
    mixed = loaded()
    wrong = mixed._replace(stores=loaded(AUTHORITY.issue("node")).stores._replace(authorities=AUTHORITY.pem))
    pair = wrong.stores.pair
    assert pair is not None
    broken = type(pair)(NODE.chain, pair.key)
    with pytest.raises(ConfigError, match="cannot be used"):
        check_replacement(mixed, wrong._replace(stores=wrong.stores._replace(pair=broken)), between_nodes=False)


def test_a_signature_changes_with_the_file_and_with_a_link_to_it(tmp_path: Path) -> None:
    first, second = stored(tmp_path, "1.pem", NODE.both), stored(tmp_path, "2.pem", NODE.both)
    link = tmp_path / "node.pem"
    link.symlink_to(first)
    settings = tls_settings({"ssl.keystore.type": "PEM", "ssl.keystore.location": str(link)}, "OUTSIDE", "SSL")
    seen = [signature(settings)]
    swapped = tmp_path / "swapped"
    swapped.symlink_to(second)
    os.replace(swapped, link)  # as Kubernetes swaps a secret
    seen.append(signature(settings))
    second.write_text(NODE.both + "\n")
    seen.append(signature(settings))
    link.unlink()
    seen.append(signature(settings))
    assert len(set(seen)) == 4


def test_a_handshake_in_memory_fails_as_on_a_socket() -> None:
    trusting, doubting = client_context(), client_context(trusts=False)
    for context in (trusting, doubting):
        context.check_hostname = False
    shake_hands(listener().context, trusting)
    with pytest.raises(ssl.SSLError):
        shake_hands(listener().context, doubting)
    with pytest.raises(ssl.SSLError):
        shake_hands(listener(client_auth="required").context, trusting)
