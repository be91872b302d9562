"""tidelog's own clients log in with tickets of a real KDC (``make kerberos``): blocking sockets, asyncio, a command-line tool;
and what they say when there is no ticket."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.interop.nodes import environment
from tests.kerberos.kdc import REALM, kinit
from tests.kerberos.realm import MODULE, REAUTH_MS, Realm, by_keytab, client_settings
from tidelog.client import AdminClient
from tidelog.client.admin import topics
from tidelog.client.failures import NoConnection, NotAuthenticated
from tidelog.client.net.blocking import BlockingClient
from tidelog.client.settings import parse_admin_settings

LIMIT_S = 60


def names(settings: dict[str, str], bootstrap: str) -> list[str]:
    """The topics that a client on blocking sockets sees."""
    with BlockingClient(parse_admin_settings(settings, bootstrap)) as client:
        return [topic.name or "" for topic in client.run(topics.topics(None))]


def tool(folder: Path, settings: dict[str, str], bootstrap: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """``tidelog topics --list`` with these settings in a file."""
    file = folder / "client.properties"
    file.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    command = ["topics", "--list", "--bootstrap-server", bootstrap, "--command-config", str(file)]
    return subprocess.run(
        [sys.executable, "-m", "tidelog.cli.main", *command],
        env={**environment(), **variables},
        capture_output=True,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )


def test_clients_log_in_by_a_keytab(realm: Realm, tmp_path: Path) -> None:
    realm.node.create("own", 1)
    settings = client_settings(by_keytab("ann", realm.keytabs["ann"]))
    assert "own" in names(settings, realm.long)

    async def main() -> list[str]:
        async with AdminClient(realm.long, settings) as admin:
            await admin.topics.create("made-by-ann")
            return await admin.topics.names()

    assert {"own", "made-by-ann"} <= set(asyncio.run(asyncio.wait_for(main(), LIMIT_S)))
    done = tool(tmp_path, settings, realm.long)
    assert done.returncode == 0, done.stderr
    assert "made-by-ann" in done.stdout.split()


def test_librdkafkas_names_are_as_good(realm: Realm) -> None:
    settings = client_settings("")
    del settings["sasl.jaas.config"]
    own = {"sasl.kerberos.keytab": str(realm.keytabs["ann"]), "sasl.kerberos.principal": f"ann@{REALM}"}
    assert isinstance(names(settings | own, realm.long), list)


def test_clients_log_in_from_a_ticket_cache(realm: Realm) -> None:
    cache = realm.become("ann")
    default = client_settings(f"{MODULE} required useTicketCache=true;")
    assert isinstance(names(default, realm.long), list)
    os.environ["KRB5CCNAME"] = "/nowhere"
    named = client_settings(f'{MODULE} required useTicketCache=true ticketCache="{cache}" principal="ann@{REALM}";')
    assert isinstance(names(named, realm.long), list)
    with pytest.raises(NotAuthenticated, match=r"no Kerberos ticket for kafka@localhost: .*/nowhere"):
        names(default, realm.long)


def test_a_keytab_stands_in_for_an_expired_ticket_of_the_cache(realm: Realm, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    kinit(realm.kdc, "ann", realm.keytabs["ann"], cache, "-l", "1s")
    time.sleep(2)
    entry = f'{MODULE} required useTicketCache=true ticketCache="{cache}" principal="ann@{REALM}"'
    with pytest.raises(NotAuthenticated, match=r"no Kerberos ticket for kafka@localhost: .*expired"):
        names(client_settings(f"{entry};"), realm.long)
    both = client_settings(f'{entry} useKeyTab=true keyTab="{realm.keytabs["ann"]}";')
    assert isinstance(names(both, realm.long), list)
    assert subprocess.run(["/usr/bin/klist", "-s", "-c", str(cache)], check=False).returncode == 1, "the cache has a ticket"


def test_the_acls_decide_by_the_ticket_and_a_principal_without_a_user_is_refused(realm: Realm) -> None:
    realm.node.create("hidden", 1)
    assert "hidden" not in names(client_settings(by_keytab("bob", realm.keytabs["bob"])), realm.long)
    with pytest.raises(NotAuthenticated, match=rf"refuses user 'eve@{REALM}' \(GSSAPI\): .*no user name on this node"):
        names(client_settings(by_keytab("eve", realm.keytabs["eve"])), realm.long)


def test_sessions_are_renewed_on_their_connection(realm: Realm) -> None:
    """Of both drivers at once, over three lives of a session, and of a principal whose ticket ends meanwhile."""
    settings = client_settings(by_keytab("ann", realm.keytabs["ann"]))
    brief = client_settings(by_keytab("brief", realm.keytabs["brief"]))
    before = realm.node.log_file.read_text()

    async def main() -> None:
        end = time.monotonic() + 18
        async with AdminClient(realm.short, settings) as ann, AdminClient(realm.long, brief) as guest:
            while time.monotonic() < end:
                in_thread = asyncio.to_thread(blocking.run, topics.topics(None))
                await asyncio.gather(ann.topics.names(), guest.topics.names(), in_thread)
                await asyncio.sleep(0.2)

    with BlockingClient(parse_admin_settings(settings, realm.short)) as blocking:
        asyncio.run(asyncio.wait_for(main(), LIMIT_S))
    assert REAUTH_MS < 18_000 / 3
    said = realm.node.log_file.read_text().removeprefix(before)
    assert "did not authenticate again" not in said
    assert "the session is over" not in said


def test_what_is_wrong_with_a_keytab_or_a_principal_is_said(realm: Realm, tmp_path: Path) -> None:
    kdc = realm.kdc
    old = tmp_path / "old.keytab"
    shutil.copy(kdc.add("rekeyed"), old)
    kdc.extract("rekeyed", tmp_path / "new.keytab")
    gone, over = kdc.add("gone"), kdc.add("over")
    kdc.remove("gone")
    kdc.change("over", "-expire", "yesterday")
    for user, keytab, said in (
        ("ann", tmp_path / "none", rf"the keytab .*/none cannot be used for ann@{REALM}: .*not found"),
        ("ann", realm.keytabs["bob"], rf"the keytab .* cannot be used for ann@{REALM}: No key table entry found"),
        ("rekeyed", old, "The key in the keytab is not the one that the KDC has"),
        ("gone", gone, rf"gone@{REALM}' not found in Kerberos database"),
        ("over", over, "expired"),
    ):
        with pytest.raises(NotAuthenticated, match=rf"no Kerberos ticket for kafka@localhost: .*({said})") as raised:
            names(client_settings(by_keytab(user, keytab)), realm.long)
        print(raised.value)


def test_a_name_that_no_principal_holds_is_said_with_what_it_should_be(realm: Realm, tmp_path: Path) -> None:
    settings = client_settings(by_keytab("ann", realm.keytabs["ann"]))
    done = tool(tmp_path, settings, f"127.0.0.1:{realm.port}")
    assert done.returncode == 1
    assert "no Kerberos ticket for kafka@127.0.0.1: " in done.stderr
    assert "A broker's principal holds the host name that clients connect to" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_kdc_that_is_not_there_or_does_not_answer(realm: Realm, tmp_path: Path) -> None:
    settings = client_settings(by_keytab("ann", realm.keytabs["ann"])) | {"socket.connection.setup.timeout.ms": "3000"}
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        file = tmp_path / "krb5.conf"
        file.write_text(realm.kdc.config.read_text().replace(f"127.0.0.1:{realm.kdc.port}", f"127.0.0.1:{port}"))
        done = tool(tmp_path, settings, realm.long, KRB5_CONFIG=str(file))
        assert done.returncode == 1
        assert "no Kerberos ticket for kafka@localhost within 2 s: no KDC answers" in done.stderr
    done = tool(tmp_path, settings, realm.long, KRB5_CONFIG=str(file))
    assert done.returncode == 1
    assert f"Cannot contact any KDC for realm '{REALM}'" in done.stderr


def test_a_missing_kdc_is_no_refusal(realm: Realm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later attempt may find one."""
    file = tmp_path / "krb5.conf"
    file.write_text(realm.kdc.config.read_text().replace(f"127.0.0.1:{realm.kdc.port}", "127.0.0.1:1"))
    keytab = shutil.copy(realm.keytabs["ann"], tmp_path / "another.keytab")  # its tickets are in no cache of this process
    settings = client_settings(by_keytab("ann", Path(keytab))) | {"default.api.timeout.ms": "1000"}
    with monkeypatch.context() as patched:
        patched.setenv("KRB5_CONFIG", str(file))
        with pytest.raises(NoConnection, match="Cannot contact any KDC"):
            names(settings, realm.long)
    assert isinstance(names(settings, realm.long), list)
