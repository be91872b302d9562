"""Names of cipher suites: Java's, and OpenSSL's."""

from __future__ import annotations

import ssl
import subprocess

import pytest

from tidelog.config.cipher_suites import TLS13, chosen_suites, openssl_name
from tidelog.model.errors import ConfigError

BOTH = ("TLSv1.2", "TLSv1.3")
OLDER = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"


def test_the_names_are_those_of_openssl() -> None:
    try:
        listed = subprocess.run(["openssl", "ciphers", "-stdname", "ALL"], check=True, capture_output=True, text=True).stdout
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    pairs = {words[0]: words[2] for words in map(str.split, listed.splitlines()) if words[0] not in TLS13}
    known = {suite: openssl_name(suite) for suite in pairs if openssl_name(suite) is not None}
    assert known == {suite: pairs[suite] for suite in known}
    assert len(known) >= 20


def test_openssl_takes_every_name() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for suite in ("TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256", OLDER, "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384"):
        name = openssl_name(suite)
        assert name is not None
        context.set_ciphers(name)
        assert name in {each["name"] for each in context.get_ciphers()}


def test_the_suites_limit_the_versions() -> None:
    assert chosen_suites("s", [], BOTH) == (BOTH, ())
    assert chosen_suites("s", [OLDER], BOTH) == (("TLSv1.2",), ("ECDHE-RSA-AES128-GCM-SHA256",))
    assert chosen_suites("s", [*TLS13, OLDER, "TLS_EMPTY_RENEGOTIATION_INFO_SCSV"], BOTH)[0] == BOTH
    assert chosen_suites("s", TLS13, BOTH) == (("TLSv1.3",), ())
    assert chosen_suites("s", [TLS13[0], OLDER], ("TLSv1.2",))[0] == ("TLSv1.2",)


@pytest.mark.parametrize(
    ("names", "versions", "said"),
    [
        (["TLS_RSA_WITH_NULL_SHA"], BOTH, "TLS_RSA_WITH_NULL_SHA, which is not known"),
        (["TLS_RSA_WITH_CHACHA20_POLY1305_SHA256"], BOTH, "not known"),
        (["ECDHE-RSA-AES128-GCM-SHA256"], BOTH, "not known"),
        (["TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA256"], BOTH, "not known"),
        ([TLS13[0], OLDER], BOTH, "can only be switched together"),
        ([OLDER], ("TLSv1.3",), "holds no suite of TLSv1.3"),
    ],
)
def test_what_cannot_be_kept_is_refused(names: list[str], versions: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        chosen_suites("ssl.cipher.suites", names, versions)
