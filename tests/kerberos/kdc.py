"""A KDC of MIT Kerberos in a directory, on loopback (Debian: krb5-kdc, krb5-admin-server, krb5-user)."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from tests.interop.nodes import free_ports

REALM = "TIDELOG.TEST"
START_LIMIT_S = 20
SBIN = "/usr/sbin"


class Kdc:
    """A realm with its database. Clients and services find it by ``environment``."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.port = free_ports(1)[0]
        self.config = home / "krb5.conf"
        self.config.write_text(
            f"[libdefaults]\ndefault_realm = {REALM}\ndns_lookup_kdc = false\ndns_lookup_realm = false\nrdns = false\n"
            "dns_canonicalize_hostname = false\nclockskew = 5\nudp_preference_limit = 1\n"
            f"[realms]\n{REALM} = {{\n kdc = 127.0.0.1:{self.port}\n}}\n[domain_realm]\nlocalhost = {REALM}\n"
            f"[logging]\nkdc = FILE:{home}/kdc.log\n"
        )
        (home / "kdc.conf").write_text(
            f"[kdcdefaults]\nkdc_listen = 127.0.0.1:{self.port}\nkdc_tcp_listen = 127.0.0.1:{self.port}\n"
            f"[realms]\n{REALM} = {{\n database_name = {home}/principal\n key_stash_file = {home}/stash\n"
            f" acl_file = {home}/acl\n max_life = 1h\n supported_enctypes = aes256-cts:normal\n}}\n"
        )
        self.environment = {"KRB5_CONFIG": str(self.config), "KRB5_KDC_PROFILE": str(home / "kdc.conf")}
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", "master")

    def _run(self, program: str, *args: str) -> str:
        done = subprocess.run(
            [f"{SBIN}/{program}", *args], env={**os.environ, **self.environment}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    def add(self, principal: str, max_life: str = "1h") -> Path:
        """A new principal, and the path of a keytab with its key."""
        keytab = self.home / f"{principal.replace('/', '_')}.keytab"
        self._run("kadmin.local", "addprinc", "-randkey", "-maxlife", max_life, principal)
        self.extract(principal, keytab)
        return keytab

    def change(self, principal: str, *flags: str) -> None:
        """Changes what the KDC knows of a principal, such as ``-expire yesterday``."""
        self._run("kadmin.local", "modprinc", *flags, principal)

    def remove(self, principal: str) -> None:
        """The KDC does not know this principal any more."""
        self._run("kadmin.local", "delprinc", "-force", principal)

    def extract(self, principal: str, keytab: Path) -> None:
        """Gives the principal a new key, and adds that to a keytab."""
        self._run("kadmin.local", "ktadd", "-k", str(keytab), principal)
        keytab.chmod(0o600)

    @contextlib.contextmanager
    def running(self) -> Iterator[Kdc]:
        """Serves tickets meanwhile."""
        with (self.home / "out.log").open("wb") as out:
            process = subprocess.Popen(
                [f"{SBIN}/krb5kdc", "-n", "-r", REALM, "-P", str(self.home / "pid")],
                env={**os.environ, **self.environment},
                stdout=out,
                stderr=out,
            )
            try:
                self._await(process)
                yield self
            finally:
                process.terminate()
                process.wait(10)

    def _await(self, process: subprocess.Popen[bytes]) -> None:
        deadline = time.monotonic() + START_LIMIT_S
        log = self.home / "kdc.log"
        while not (log.exists() and "commencing operation" in log.read_text()):
            assert process.poll() is None, (self.home / "out.log").read_text()
            assert time.monotonic() < deadline, "the KDC does not start"
            time.sleep(0.05)


def kinit(kdc: Kdc, principal: str, keytab: Path, cache: Path, *flags: str) -> None:
    """A ticket for the client libraries that only read a cache."""
    done = subprocess.run(
        ["/usr/bin/kinit", *flags, "-k", "-t", str(keytab), "-c", str(cache), principal],
        env={**os.environ, **kdc.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
