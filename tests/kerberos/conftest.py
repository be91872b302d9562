"""One KDC, one JVM and one node for all of ``make kerberos``."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.interop.java import JavaSide
from tests.kerberos.kdc import Kdc
from tests.kerberos.realm import Realm, realm_of


@pytest.fixture(scope="session")
def kdc(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kdc]:
    """A realm that this process and its children use."""
    made = Kdc(tmp_path_factory.mktemp("kdc"))
    before = dict(os.environ)
    os.environ.update(made.environment, JAVA_TOOL_OPTIONS=f"-Djava.security.krb5.conf={made.config}")
    try:
        with made.running():
            yield made
    finally:
        os.environ.clear()
        os.environ.update(before)


@pytest.fixture(scope="session")
def java(kdc: Kdc, tmp_path_factory: pytest.TempPathFactory) -> Iterator[JavaSide]:
    """A JVM that knows the realm."""
    side = JavaSide(tmp_path_factory.mktemp("java") / "java.log")
    yield side
    side.close()


@pytest.fixture(scope="session")
def realm(kdc: Kdc, java: JavaSide, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with realm_of(kdc, java, tmp_path_factory.mktemp("realm")) as started:
        yield started
