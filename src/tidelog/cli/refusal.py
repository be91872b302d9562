"""How a command fails: a one-line reason on stderr, exit code 1."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NoReturn

import click

from tidelog.model.errors import ConfigError, ErrorCode


class CommandFailed(Exception):
    """The command cannot be executed; the text says what was asked, what was found, and what to do."""


class CannotConnect(Exception):
    """No bootstrap server answers, or none accepts this client; the text says which and why."""


BOOTSTRAP_MISSING = 'Missing required argument "[bootstrap-server]": say where a broker listens, --bootstrap-server HOST:PORT'


def error_text(code: int, message: str | None = None) -> str:
    """The error of a response: Kafka's name and the broker's message, or ours if it has none."""
    known = ErrorCode(code)
    return f"{known.name}: {message or known.text}"


def check(code: int, message: str | None = None) -> None:
    """Raises CommandFailed for an error code in a response."""
    if code != ErrorCode.NONE:
        raise CommandFailed(error_text(code, message))


def usage(text: str) -> NoReturn:
    """Raises a usage error: the flags are inconsistent."""
    raise click.UsageError(text)


def required(bootstrap: str | None) -> str:
    """The value of ``--bootstrap-server``, which every tool needs."""
    if not bootstrap:
        usage(BOOTSTRAP_MISSING)
    return bootstrap


def _no_zookeeper(ctx: click.Context, option: click.Parameter, value: str | None) -> None:
    if value is not None:
        usage("--zookeeper ended with Apache Kafka 4.0. Name a broker instead: --bootstrap-server HOST:PORT")


zookeeper_option = click.option("--zookeeper", hidden=True, is_eager=True, expose_value=False, callback=_no_zookeeper)
"""For tools that once had the option: names the replacement."""


def text_of(path: str) -> str:
    """The content of a file named by a flag. ConfigError when it is not UTF-8 or cannot be read."""
    try:
        with open(path, encoding="utf-8", newline="") as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not text in UTF-8: the byte at {error.start} belongs to no character.") from error
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror or error}.") from error


_hidden: list[Callable[[str], str]] = []


def hide(redact: Callable[[str], str]) -> None:
    """Lets ``redact`` take secrets out of the error of this command."""
    _hidden.append(redact)


@contextmanager
def one_line(beginning: str) -> Iterator[None]:
    """Turns expected errors into one line that begins as in Kafka's tool, and exit code 1."""
    from tidelog.client.connection import UnsupportedByBroker
    from tidelog.model.errors import ProtocolViolation

    try:
        yield
    except (CommandFailed, CannotConnect, ConfigError, UnsupportedByBroker, ProtocolViolation) as error:
        sys.stdout.flush()
        text = str(error)
        for redact in _hidden:
            text = redact(text)
        print(f"{beginning}{text}", file=sys.stderr)
        sys.exit(1)
    finally:
        _hidden.clear()


def deprecated(old: str, new: str) -> None:
    """Warns on stderr about a flag that still works."""
    print(f"Option {old} is deprecated and will be removed in a future version. Use {new} instead.", file=sys.stderr)


def renamed(flags: Mapping[str, object], pairs: Iterable[tuple[str, str, str, str]]) -> None:
    """Warns about flags given by their old names; a usage error where both names are given. A pair is the old and the new
    parameter, and the old and the new flag."""
    for old, new, old_flag, new_flag in pairs:
        if flags[old] and flags[new]:
            usage(f"Options {old_flag} and {new_flag} cannot be specified together.")
        if flags[old]:
            deprecated(old_flag, new_flag)
