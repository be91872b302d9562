"""New certificates for the nodes of a secured cluster, by the same authority, each swapped in one step."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.secure.enforcement import refuse_dry_runs
from tidelog.cli.secure.making import AUTHORITY, AUTHORITY_KEY, write_private
from tidelog.cli.secure.node_settings import KEY_STORE, SETTINGS
from tidelog.config.key_store_formats import certificates_of
from tidelog.model.errors import ConfigError
from tidelog.security.authority import Authority, Identity
from tidelog.security.certificates import parse_certificate
from tidelog.server.runtime import system_now_ms


class Renewed(NamedTuple):
    """A node's new certificate: the node's folder, the name in it, and the end of its validity in ms since 1970."""

    folder: str
    name: str
    not_after_ms: int


def rotate(directory: str, days: int) -> list[Renewed]:
    """Renews the certificate of every node. CommandFailed or ConfigError before any of them has changed."""
    folder = Path(directory)
    authority = Authority.read(Identity(_text(folder / AUTHORITY), _text(folder / AUTHORITY_KEY)))
    stores = sorted(
        (each / KEY_STORE for each in folder.glob("node-*") if (each / SETTINGS).exists()),
        key=lambda path: (len(path.parent.name), path.parent.name),
    )
    if not stores:
        raise CommandFailed(f"{directory} holds no node-*/{KEY_STORE} to renew.")
    refuse_dry_runs(directory)
    now_ms = system_now_ms()
    renewed = []
    for path in stores:
        try:
            renewed.append(authority.renew(_text(path), now_ms, days))
        except ConfigError as problem:
            raise ConfigError(f"{path}: {problem}") from None
    for path, identity in zip(stores, renewed, strict=True):
        replace_private(path, identity.key + identity.certificate)
    return [_described(path, identity) for path, identity in zip(stores, renewed, strict=True)]


def replace_private(path: Path, text: str) -> None:
    """Replaces a file atomically: a reader finds the old or the new text, whole. CommandFailed."""
    new = path.with_name(f"{path.name}.new")
    try:
        new.unlink(missing_ok=True)
        write_private(new, text)
        os.replace(new, path)
    except OSError as error:
        raise CommandFailed(f"{path} cannot be replaced: {error.strerror}") from error


def _described(path: Path, identity: Identity) -> Renewed:
    found = parse_certificate(certificates_of(identity.certificate)[0])
    return Renewed(path.parent.name, found.subject, found.not_after_ms)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except FileNotFoundError:
        raise CommandFailed(f"{path} is not there: tidelog secure makes it.") from None
    except OSError as error:
        raise CommandFailed(f"{path} cannot be read: {error.strerror}") from error
