"""``tidelog registry``: a schema registry with Confluent's REST API over the topic ``_schemas`` of any Kafka cluster."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import sys
import threading
from functools import partial

import click

from tidelog.cli import refusal
from tidelog.cli.connection_options import FILE, bootstrap_option, command_config_option
from tidelog.cli.refusal import CommandFailed
from tidelog.cli.side_process import REGISTRY, WITH_STDIN, end_with_stdin

LEVELS = ("NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE")
SALT_BYTES = 16


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@bootstrap_option
@command_config_option
@click.option("--listen", default="127.0.0.1:8081", show_default=True, metavar="HOST:PORT", help="Where to serve HTTP.")
@click.option("--topic", default="_schemas", show_default=True, help="The topic that holds the schemas.")
@click.option("--replication-factor", type=click.IntRange(1), help="Of the topic, if it is made. Default: 3, or one a broker.")
@click.option("--group", default="schema-registry", show_default=True, help="Where registries of this topic elect a leader.")
@click.option("--advertise", metavar="HOST:PORT", help="Where other registries reach this one. Default: where it listens.")
@click.option("--compatibility", type=click.Choice(LEVELS), default="BACKWARD", show_default=True, help="Where none is set.")
@click.option("--max-schema-bytes", type=click.IntRange(1), default=1 << 20, show_default=True, help="The size of a schema.")
@click.option(
    "--incompatible-code",
    type=click.Choice(("409", "40901")),
    default="409",
    show_default=True,
    help="The error code of an incompatible schema: Confluent's registry changed it in 8.0.3.",
)
@click.option("--users", type=FILE, help="A file with users: HTTP basic authentication.")
@click.option("--tls-certificate", type=FILE, help="The certificate, in PEM: HTTPS.")
@click.option("--tls-key", type=FILE, help="Its key, in PEM.")
@click.option("--tls-authority", type=FILE, help="The authority of other registries' certificates, in PEM.")
@click.option("--insecure", is_flag=True, help="Serve other machines without a login or without TLS.")
@click.option(WITH_STDIN, "with_stdin", is_flag=True, hidden=True, help="End when stdin is closed.")
@click.option("--hash-password", metavar="NAME", help="Read a password from stdin, print NAME's line for --users, and end.")
def command(
    bootstrap_server: str | None,
    command_config: str | None,
    listen: str,
    topic: str,
    replication_factor: int | None,
    group: str,
    advertise: str | None,
    compatibility: str,
    max_schema_bytes: int,
    incompatible_code: str,
    users: str | None,
    tls_certificate: str | None,
    tls_key: str | None,
    tls_authority: str | None,
    insecure: bool,
    with_stdin: bool,
    hash_password: str | None,
) -> None:
    """Serve a schema registry: subjects, versions and compatibility of Avro, JSON Schema and Protobuf.

    It keeps everything in a compacted topic, in the format of Confluent's registry. Several on one topic elect a leader, which
    writes.
    """
    with refusal.one_line("tidelog: "):
        _need_library()
        from tidelog.http.passwords import hashed
        from tidelog.registry.registering import Rules
        from tidelog.registry.serving import users as logins

        if hash_password is not None:
            print(f"{hash_password}: {logins.WRITE}, {hashed(_password(), os.urandom(SALT_BYTES))}")
            return
        from tidelog.cli.broker_connection import client_settings
        from tidelog.config.listeners import parse_address
        from tidelog.registry.serving import running

        host, port = parse_address("--listen", listen)
        options = running.Options(
            client=client_settings(refusal.required(bootstrap_server), command_config, "tidelog-registry"),
            host=host,
            port=port,
            topic=topic,
            replicas=replication_factor,
            users=None if users is None else logins.Users(logins.parse_users(refusal.text_of(users))),
            certificate=tls_certificate,
            key=tls_key,
            authority=tls_authority,
            group=group,
            advertised=None if advertise is None else parse_address("--advertise", advertise),
            insecure=insecure,
            rules=Rules(compatibility, int(incompatible_code), max_schema_bytes),
        )
        if with_stdin:
            stop = partial(os.kill, os.getpid(), signal.SIGTERM)
            threading.Thread(target=end_with_stdin, args=(stop,), daemon=True).start()
        _serve(options)


def _password() -> str:
    if sys.stdin.isatty():
        return str(click.prompt("Password", hide_input=True, confirmation_prompt=True))
    found = sys.stdin.readline().rstrip("\n")
    if not found:
        raise CommandFailed("no password came from stdin")
    return found


def _need_library() -> None:
    problem = REGISTRY.missing()
    if problem is not None:
        raise CommandFailed(f"the registry: {problem}")


def _serve(options: object) -> None:
    from tidelog.client.failures import NoConnection, NotAuthenticated
    from tidelog.config.listeners import address_text
    from tidelog.model.errors import KafkaError
    from tidelog.records.batch import CorruptBatch
    from tidelog.registry.errors import RegistryError
    from tidelog.registry.serving import running

    assert isinstance(options, running.Options)
    listener = running.listen(options)
    host, port = listener.getsockname()[:2]
    scheme = "http" if options.certificate is None else "https"

    gc.disable()  # reading the topic makes many objects, which stay

    def ready(cluster_id: str) -> None:
        gc.freeze()
        gc.enable()
        print(f"Schemas of cluster {cluster_id}, topic {options.topic}: {scheme}://{address_text(host, port)}", flush=True)

    try:
        with contextlib.closing(listener), contextlib.suppress(KeyboardInterrupt):
            asyncio.run(running.Registry(options).run(listener, ready))
    except (NoConnection, NotAuthenticated, KafkaError, CorruptBatch, RegistryError) as error:
        raise CommandFailed(str(error)) from error
