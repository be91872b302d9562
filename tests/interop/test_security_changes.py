"""Security changes under load: users, ACLs, and from plain text to a secured cluster. The longer form is in ``make security``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.java import JavaSide
from tests.security_changes.acls import SHORT, AclChanges
from tests.security_changes.cluster import LOCKED, SecurableCluster
from tests.security_changes.locking import lock
from tests.security_changes.users import SETTINGS, UserChanges

pytestmark = [pytest.mark.interop, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecurableCluster]:
    with SecurableCluster(tmp_path_factory.mktemp("locked"), LOCKED, more=SETTINGS) as cluster:
        yield cluster


def test_users_come_and_go_and_change_passwords_and_others_notice_nothing(locked: SecurableCluster, java: JavaSide) -> None:
    assert UserChanges(locked, java, print, seed=7).run(rounds=1) == []


def test_rights_come_and_go_and_others_notice_nothing(locked: SecurableCluster, java: JavaSide) -> None:
    assert AclChanges(locked, java, print, seed=7).run(list(SHORT)) == []


def test_a_cluster_in_plain_text_is_secured_by_the_steps_of_the_guide(tmp_path: Path, java: JavaSide) -> None:
    assert lock(tmp_path, java, print) == []
