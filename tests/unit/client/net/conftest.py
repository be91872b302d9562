from __future__ import annotations

import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with key and certificate for the name ``broker``."""
    folder = tmp_path_factory.mktemp("tls")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", "key", "-out", "crt", "-days", "2"]
    try:
        name = ["-subj", "/CN=broker", "-addext", "subjectAltName=DNS:broker"]
        subprocess.run([*command, *name], cwd=folder, check=True, capture_output=True)
    except FileNotFoundError:
        pytest.skip("openssl is not installed")
    both = folder / "both.pem"
    both.write_text((folder / "key").read_text() + (folder / "crt").read_text())
    return both
