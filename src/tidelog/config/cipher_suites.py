"""``ssl.cipher.suites``: Java's (IANA's) names of cipher suites, and what OpenSSL calls them.

TLS 1.2 suites have other names in OpenSSL. The three of TLS 1.3 are on together or not at all, because Python cannot choose among
them; a list with one or two of them is refused rather than widened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidelog.model.errors import ConfigError

TLS13: Final = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256")
_SIGNALS: Final = frozenset({"TLS_EMPTY_RENEGOTIATION_INFO_SCSV", "TLS_FALLBACK_SCSV"})
"""Java lists these like suites; OpenSSL sends them by itself."""
_KEY_EXCHANGES: Final = {"ECDHE_ECDSA": "ECDHE-ECDSA-", "ECDHE_RSA": "ECDHE-RSA-", "DHE_RSA": "DHE-RSA-", "RSA": ""}
_CIPHERS: Final = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
}
_OTHERS: Final = {
    "ECDHE": frozenset({"AES_256_CBC_SHA256"}),
    "DHE": frozenset({"AES_256_CBC_SHA384"}),
    "RSA": frozenset({"AES_256_CBC_SHA384", "CHACHA20_POLY1305_SHA256"}),
}
"""Combinations that do not exist, by the first word of the key exchange."""


def openssl_name(suite: str) -> str | None:
    """OpenSSL's name of a TLS 1.2 suite; None for a name that is not known here."""
    head, separator, cipher = suite.removeprefix("TLS_").partition("_WITH_")
    missing = _OTHERS.get(head.partition("_")[0], frozenset())
    if not (suite.startswith("TLS_") and separator) or head not in _KEY_EXCHANGES or cipher not in _CIPHERS or cipher in missing:
        return None
    return _KEY_EXCHANGES[head] + _CIPHERS[cipher]


def chosen_suites(option: str, names: Sequence[str], versions: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The versions that remain with these suites, and OpenSSL's names of the TLS 1.2 ones (empty: OpenSSL's own choice).

    ConfigError for an unknown name, for a part of the TLS 1.3 suites, and when no version remains.
    """
    names = [name for name in names if name not in _SIGNALS]
    if not names:
        return tuple(versions), ()
    older: list[str] = []
    for name in names:
        if name in TLS13:
            continue
        found = openssl_name(name)
        if found is None:
            raise ConfigError(
                f"{option} holds {name}, which is not known here. Known are {', '.join(TLS13)}, and for TLS 1.2 names such as "
                "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384."
            )
        older.append(found)
    newer = [name for name in TLS13 if name in names]
    if newer and len(newer) < len(TLS13) and "TLSv1.3" in versions:
        raise ConfigError(
            f"{option} holds {', '.join(newer)}, but the suites of TLS 1.3 can only be switched together: name all of "
            f"{', '.join(TLS13)}, or none, which leaves TLS 1.2."
        )
    useful = {"TLSv1.2": bool(older), "TLSv1.3": bool(newer)}
    remaining = tuple(version for version in versions if useful[version])
    if not remaining:
        raise ConfigError(f"{option} holds no suite of {' or '.join(versions)} (ssl.enabled.protocols).")
    return remaining, tuple(older)
