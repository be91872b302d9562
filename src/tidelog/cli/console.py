"""``tidelog console``: a web console for any Kafka cluster, in a process of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote

import click

from tidelog.cli import refusal
from tidelog.cli.connection_options import FILE, bootstrap_option, command_config_option
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.side_process import CONSOLE, WITH_STDIN, end_with_stdin
from tidelog.model.errors import ConfigError

if TYPE_CHECKING:
    from tidelog.console.web.starting import ClusterOption, Options

MAIN = "main"
SALT_BYTES = 16
REGISTRY_URL = "schema.registry.url"


@click.command("console", context_settings={"help_option_names": ["-h", "--help"]})
@bootstrap_option
@command_config_option
@click.option("--cluster", "clusters", multiple=True, metavar="NAME=HOST:PORT,...", help="A further cluster. May be repeated.")
@click.option("--cluster-config", "configs", multiple=True, metavar="NAME=FILE", help="Settings of its client.")
@click.option(
    "--schema-registry",
    metavar="URL",
    help=f"Where schemas of Avro, Protobuf and JSON are; {REGISTRY_URL} in --command-config, too.",
)
@click.option("--listen", default="127.0.0.1:8080", show_default=True, metavar="HOST:PORT", help="Where the console listens.")
@click.option("--public-url", metavar="URL", help="Where browsers find it, if not at --listen: behind a proxy, or by its name.")
@click.option("--base-path", default="/", metavar="/PATH", help="The path that it is served under.")
@click.option("--users", type=FILE, help="People, roles and masks, as JSON. Without it there is no login, on loopback only.")
@click.option("--read-only", is_flag=True, help="Refuse every change, whatever a role allows.")
@click.option("--tls-certificate", type=FILE, help="Serve HTTPS with this certificate chain (PEM).")
@click.option("--tls-key", type=FILE, help="The certificate's private key (PEM).")
@click.option("--audit-file", type=click.Path(dir_okay=False), help="Append a line for each login, change and look at records.")
@click.option(
    "--proxy", "proxies", multiple=True, metavar="ADDRESS", help="A proxy, or a network of them, whose X-Forwarded-For counts."
)
@click.option("--hash-password", is_flag=True, help="Ask for a password, print what the users' file holds of it, and end.")
@click.option(WITH_STDIN, "with_stdin", is_flag=True, hidden=True, help="End when stdin is closed.")
def command(
    bootstrap_server: str | None,
    command_config: str | None,
    clusters: tuple[str, ...],
    configs: tuple[str, ...],
    schema_registry: str | None,
    listen: str,
    public_url: str | None,
    base_path: str,
    users: str | None,
    read_only: bool,
    tls_certificate: str | None,
    tls_key: str | None,
    audit_file: str | None,
    proxies: tuple[str, ...],
    hash_password: bool,
    with_stdin: bool,
) -> None:
    """Serve a web console: topics, records, groups and why they are stuck, of any Kafka cluster.

    Without --users it listens on this machine only, and everyone on it may do what the console's own user may do.
    """
    with refusal.one_line("tidelog console: "):
        if hash_password:
            _print_hash()
            return
        _check_extra()
        from tidelog.console.web.starting import Options

        serve(
            Options(
                clusters_of(bootstrap_server, command_config, clusters, configs, schema_registry),
                listen,
                public_url,
                base_path,
                None if users is None else (refusal.text_of(users), users),
                read_only,
                tls_certificate,
                tls_key,
                audit_file,
                proxies,
            ),
            with_stdin=with_stdin,
        )


def serve(options: Options, *, with_stdin: bool = False) -> None:
    """Serve until the process is asked to end, or ``with_stdin`` until stdin is closed. ConfigError before that."""
    from tidelog.console.web.starting import bound, checked, server, url_of, warnings

    host, port = checked(options)
    running = server(options)
    for warning in warnings(options):
        click.echo(f"tidelog console: {warning}", err=True)
    with bound(host, port) as socket:
        if with_stdin:
            threading.Thread(target=end_with_stdin, args=(partial(setattr, running, "should_exit", True),), daemon=True).start()
        click.echo(f"tidelog console is ready at {url_of(options, socket.getsockname()[1])}")
        try:
            running.run(sockets=[socket])
        except KeyboardInterrupt:
            click.echo("")


def clusters_of(
    bootstrap: str | None,
    config: str | None,
    further: tuple[str, ...] = (),
    configs: tuple[str, ...] = (),
    registry: str | None = None,
) -> list[ClusterOption]:
    """The clusters of the flags; the one of --bootstrap-server is called main. CommandFailed, ConfigError."""
    from tidelog.console.web.starting import ClusterOption

    files = dict(_pair("--cluster-config", each) for each in configs)
    servers = {MAIN: bootstrap} if bootstrap else {}
    for each in further:
        name, value = _pair("--cluster", each)
        if name in servers:
            raise CommandFailed(f"--cluster {name} is given twice")
        servers[name] = value
    if config is not None:
        files[MAIN] = config
    unknown = sorted(set(files) - set(servers))
    if unknown:
        raise CommandFailed(f"there are settings for {unknown[0]}, and no such cluster; give --bootstrap-server or --cluster")
    found = []
    for name, value in servers.items():
        settings = _settings(files.get(name))
        found.append(
            ClusterOption(name, value, settings, files.get(name), registry_of(settings, registry if name == MAIN else None))
        )
    return found


def registry_of(settings: Mapping[str, str], given: str | None) -> str | None:
    """The address of the schema registry, with the login that the settings have under Confluent's names."""
    url = given or settings.get(REGISTRY_URL)
    login = settings.get("schema.registry.basic.auth.user.info") or settings.get("basic.auth.user.info")
    if url is None or login is None:
        return url
    scheme, sign, rest = url.partition("://")
    user, _, password = login.partition(":")
    return f"{scheme}{sign}{quote(user, safe='')}:{quote(password, safe='')}@{rest}"


def _settings(path: str | None) -> Mapping[str, str]:
    """The settings in a client's file, references of providers replaced. ConfigError names the file."""
    if path is None:
        return {}
    from tidelog.cli import settings_files
    from tidelog.config.properties import parse

    try:
        return settings_files.client_settings(parse(refusal.text_of(path))).settings
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _pair(flag: str, text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not (name and sign and value):
        raise CommandFailed(f"{flag} {text}: write it as NAME=VALUE")
    return name, value


def _print_hash() -> None:
    from tidelog.http.passwords import hashed

    click.echo(hashed(click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True), os.urandom(SALT_BYTES)))


def _check_extra() -> None:
    """CommandFailed without the packages of the extra."""
    problem = CONSOLE.missing()
    if problem is not None:
        raise CommandFailed(problem)
