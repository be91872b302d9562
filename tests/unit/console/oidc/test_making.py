from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.oidc_provider import CLIENT, OidcProvider
from tidelog.console.oidc.making import looked_at, made
from tidelog.console.oidc.settings import OidcSettings
from tidelog.model.errors import ConfigError


def settings(issuer: str = "https://a.example", **changes: Any) -> OidcSettings:
    return OidcSettings(**{"issuer": issuer, "client_id": CLIENT, "everyone": ("viewer",), **changes})


def test_files_that_cannot_be_used_are_refused_by_name(tmp_path: Path) -> None:
    for name, text in (("empty", ""), ("lines", "a\nb"), ("long", "x" * 5000), ("pem", "no certificate")):
        (tmp_path / name).write_text(text)
    for name in ("none", "empty", "lines", "long"):
        with pytest.raises(ConfigError, match=f"client_secret_file .*{name}"):
            made(settings(secret_file=str(tmp_path / name)), lambda: 0)
    for name in ("none", "pem"):
        with pytest.raises(ConfigError, match=f"authority_file .*{name}"):
            made(settings(authority_file=str(tmp_path / name)), lambda: 0)
    (tmp_path / "secret").write_text(" a secret \n")
    assert made(settings(secret_file=str(tmp_path / "secret")), lambda: 0)._secret == "a secret"


def test_a_provider_is_looked_at_before_the_start() -> None:
    with OidcProvider({}) as provider:
        assert looked_at(settings(provider.issuer)) is None
        with pytest.raises(ConfigError, match="is issuer right"):
            looked_at(settings(provider.issuer + "/realm"))
        provider.metadata = {"issuer": "https://evil.example"}
        with pytest.raises(ConfigError, match="calls itself"):
            looked_at(settings(provider.issuer))
    assert "does not answer" in str(looked_at(settings(provider.issuer)))
