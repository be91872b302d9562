"""How a command that cannot be done ends: one line that says why on stderr, exit code 1."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

import click

from tidelog.model.errors import ConfigError, ErrorCode


class CommandFailed(Exception):
    """The command cannot be done; the text says what was asked, what was found, and what to do."""


BOOTSTRAP_MISSING = 'Missing required argument "[bootstrap-server]": say where a broker listens, --bootstrap-server HOST:PORT'


def error_text(code: int, message: str | None = None) -> str:
    """An error of a response, by Kafka's name and the broker's words, or ours where it has none."""
    known = ErrorCode(code)
    return f"{known.name}: {message or known.text}"


def check(code: int, message: str | None = None) -> None:
    """CommandFailed for an error code of a response."""
    if code != ErrorCode.NONE:
        raise CommandFailed(error_text(code, message))


def usage(text: str) -> NoReturn:
    """The flags do not make a command."""
    raise click.UsageError(text)


def required(bootstrap: str | None) -> str:
    """The value of ``--bootstrap-server``; every tool needs one."""
    if not bootstrap:
        usage(BOOTSTRAP_MISSING)
    return bootstrap


def _no_zookeeper(ctx: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        usage("--zookeeper ended with Apache Kafka 4.0. Name a broker instead: --bootstrap-server HOST:PORT")


zookeeper_option = click.option("--zookeeper", hidden=True, is_eager=True, expose_value=False, callback=_no_zookeeper)
"""For tools that once took it: says what to write instead."""


def text_of(path: str) -> str:
    """What a file that a flag names holds. ConfigError when it is no UTF-8 text, or cannot be read."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not text in UTF-8: the byte at {error.start} belongs to no character.") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}.") from error


@contextmanager
def one_line(beginning: str) -> Iterator[None]:
    """What is expected to go wrong inside becomes a line that begins as Kafka's tool begins it, and exit code 1."""
    from tidelog.cli.broker_connection import CannotConnect
    from tidelog.client.connection import UnsupportedByBroker
    from tidelog.model.errors import ProtocolViolation

    try:
        yield
    except (CommandFailed, CannotConnect, ConfigError, UnsupportedByBroker, ProtocolViolation) as error:
        sys.stdout.flush()
        print(f"{beginning}{error}", file=sys.stderr)
        sys.exit(1)


def deprecated(old: str, new: str) -> None:
    """A flag that still works, on stderr."""
    print(f"Option {old} is deprecated and will be removed in a future version. Use {new} instead.", file=sys.stderr)
