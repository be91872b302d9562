"""Makes the folder of a secured cluster: certificates, settings, formatted log dirs, files for the administrator's clients.

All of it is written beside the folder and moved there at the end, so that a failure leaves nothing half made.
"""

from __future__ import annotations

import os
import random
import re
import secrets
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tidelog.cli.cluster.local_layout import HOST, LocalCluster, LocalNode, save
from tidelog.cli.cluster.local_nodes import new_id
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.secure.client_files import (
    JAVA,
    LIBRDKAFKA,
    PYTHON,
    Login,
    java_file,
    librdkafka_file,
    properties_text,
    python_file,
)
from tidelog.cli.secure.node_settings import (
    DATA,
    KEY_STORE,
    MECHANISM,
    SETTINGS,
    TRUST_STORE,
    SecuredNode,
    plan_nodes,
    settings_of,
)
from tidelog.metadata.snapshot import scram_record
from tidelog.model.ids import Uuid, uuid_from_text
from tidelog.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from tidelog.raft.format import FormatRequest, feature_levels, format_dirs
from tidelog.raft.voters import VoterSet
from tidelog.records.control import Endpoint, Voter
from tidelog.security.authority import Authority
from tidelog.security.scram import MIN_ITERATIONS, ScramMechanism, credential_of, salted_password
from tidelog.server.disk import DiskFileSystem
from tidelog.server.runtime import system_now_ms

AUTHORITY, AUTHORITY_KEY = "authority/authority.pem", "authority/authority.key"
AUTHORITY_DAYS = 3650
PASSWORD_BYTES, SALT_BYTES = 24, 24
_USER = re.compile(r"[A-Za-z0-9._-]+")


def make(
    directory: str, count: int, hosts: Sequence[str], port: int, admin: str, days: int
) -> tuple[tuple[SecuredNode, ...], Login]:
    """Makes the folder. CommandFailed when it is there already, ConfigError when a certificate cannot be made."""
    if not _USER.fullmatch(admin):
        raise CommandFailed(f"--admin {admin!r} may hold letters, digits, dots, hyphens and underscores only.")
    final = Path(directory).resolve()
    _check_free(final)
    nodes = plan_nodes(count, hosts, port, [new_id() for _ in range(count)])
    now_ms = system_now_ms()
    cluster_id = new_id()
    authority = Authority.made(f"tidelog {cluster_id}", now_ms, AUTHORITY_DAYS)
    bootstrap = ",".join(node.address for node in nodes)
    login = Login(bootstrap, admin, secrets.token_urlsafe(PASSWORD_BYTES), authority.certificate)
    try:
        final.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{final.name}-", dir=final.parent))
    except OSError as error:
        raise CommandFailed(f"{directory} cannot be made: {error.strerror}") from error
    try:
        _write_authority(made, authority)
        user = _scram(login)
        for node in nodes:
            identity = authority.issue(node.common_name, node.names, now_ms, days)
            folder = made / node.folder
            # The log dir in it holds what passwords are verified by, and in time the topics' records.
            folder.mkdir(mode=0o700)
            write_private(folder / KEY_STORE, identity.key + identity.certificate)
            (folder / TRUST_STORE).write_text(authority.certificate)
            settings = settings_of(node, nodes, admin, str(final / node.folder))
            (folder / SETTINGS).write_text(properties_text(settings), encoding="utf-8")
            _format(folder / DATA, node, nodes, cluster_id, user)
        write_private(made / JAVA, java_file(login))
        write_private(made / LIBRDKAFKA, librdkafka_file(login, str(final / AUTHORITY)))
        write_private(made / PYTHON, python_file(login))
        if all(node.host == HOST for node in nodes):
            save(str(made), _local(nodes, cluster_id, str(final / JAVA)))
        made.chmod(0o755)
        # Replaces an empty folder, and fails for one that was filled meanwhile.
        os.rename(made, final)
    except OSError as error:
        raise CommandFailed(f"{directory} cannot be made: {error.strerror}") from error
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return nodes, login


def _local(nodes: Sequence[SecuredNode], cluster_id: str, client_file: str) -> LocalCluster:
    """What ``tidelog cluster`` runs."""
    local = tuple(LocalNode(node.id, node.port, node.voter, node.voter, None, node.directory_id) for node in nodes)
    return LocalCluster(cluster_id, nodes[0].port, (), {}, local, client_file)


def write_private(path: Path, text: str) -> None:
    """Writes a new file that only its owner can read. OSError, also when it exists."""
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(number, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(number)


def _check_free(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise CommandFailed(
            f"{folder} is there already, and stays as it is. Name a new folder; tidelog secure rotate renews the certificates "
            "of one that was made before."
        )


def _write_authority(folder: Path, authority: Authority) -> None:
    identity = authority.identity
    (folder / AUTHORITY).parent.mkdir(mode=0o700)
    (folder / AUTHORITY).write_text(identity.certificate)
    write_private(folder / AUTHORITY_KEY, identity.key)


def _scram(login: Login) -> UserScramCredentialRecord:
    mechanism = next(each for each in ScramMechanism if each.title == MECHANISM)
    salt = secrets.token_bytes(SALT_BYTES)
    salted = salted_password(mechanism, login.password, salt, MIN_ITERATIONS)
    return scram_record(login.user, mechanism, credential_of(mechanism, salted, salt, MIN_ITERATIONS))


def _format(
    data: Path, node: SecuredNode, nodes: Sequence[SecuredNode], cluster_id: str, user: UserScramCredentialRecord
) -> None:
    voters = VoterSet.of(
        Voter(each.id, Uuid(uuid_from_text(each.directory_id)), (Endpoint("CONTROLLER", each.host, each.controller_port),))
        for each in nodes
        if each.voter
    )
    request = FormatRequest(
        [str(data)],
        node.id,
        cluster_id,
        levels=feature_levels(()),
        initial_voters=voters if node.voter else None,
        scram=[user],
    )
    format_dirs(DiskFileSystem(), request, rng=random.SystemRandom(), now_ms=system_now_ms())
