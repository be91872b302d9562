"""The connection of a command: settings from ``--command-config``, calls on blocking sockets, failures as error messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from tidelog.cli import settings_files
from tidelog.cli.refusal import CannotConnect, CommandFailed, text_of
from tidelog.client.calls import Ask, Call, To, VersionOf
from tidelog.client.failures import NoConnection, NoRoute, NotAuthenticated
from tidelog.client.net.blocking import BlockingClient
from tidelog.client.settings import KNOWN, OF_MECHANISM, ClientSettings, parse_admin_settings
from tidelog.config.properties import parse
from tidelog.model.errors import ConfigError, KafkaError
from tidelog.protocol.api_keys import ApiKey
from tidelog.protocol.structure import Message

T = TypeVar("T")


class Session:
    """A connection to a cluster. A context manager."""

    def __init__(self, settings: ClientSettings, *, controllers: bool = False) -> None:
        """CannotConnect when no server answers."""
        self.timeout_ms = settings.answer_timeout_ms
        self._client = BlockingClient(settings, controllers=controllers)
        try:
            self.version_of(ApiKey.API_VERSIONS)
        except BaseException:
            self._client.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Closes all connections."""
        self._client.close()

    def run(self, call: Call[T]) -> T:
        """The result of a call. CannotConnect when the connection closes, CommandFailed for an error of the cluster."""
        with _as_sentences():
            return self._client.run(call)

    def ask(self, request: Message, to: To = None) -> Any:
        """The response of any broker (with ``--bootstrap-controller``: of the active controller), or of ``to``."""
        return self.run(_asking(Ask(request, to)))

    def version_of(self, api_key: int, to: To = None) -> int:
        """The version used for requests of this API."""
        version: int = self.run(_asking(VersionOf(api_key, to)))
        return version


class BrokerConnection(Session):
    """A connection to the first broker that answers."""

    def __init__(self, bootstrap: str, command_config: str | None = None, client_id: str = "tidelog-cli") -> None:
        """``command_config``: a properties file, as Kafka's tools take it. CannotConnect when no server answers."""
        super().__init__(client_settings(bootstrap, command_config, client_id))


def client_settings(bootstrap: str, command_config: str | None, client_id: str) -> ClientSettings:
    """The client settings of a tool. ConfigError names the file. Of a node's own file, only what clients know counts."""
    if command_config is None:
        return parse_admin_settings({"client.id": client_id}, bootstrap)
    try:
        found = settings_files.client_settings(parse(text_of(command_config)))
        own = found.settings
        if "process.roles" in own:
            # What belongs to another mechanism is there for the node's listeners and its own logins.
            mechanism = own.get("sasl.mechanism") or own.get("sasl.mechanisms")
            others = tuple(each for name, begin in OF_MECHANISM.items() if name != mechanism for each in begin)
            own = {name: text for name, text in own.items() if name in KNOWN and not name.startswith(others)}
        try:
            return parse_admin_settings({"client.id": client_id, **own}, bootstrap)
        except ConfigError as error:
            raise settings_files.without_provided(error, found) from None
    except ConfigError as error:
        raise ConfigError(f"{command_config}: {error}") from None


def _asking(step: Ask | VersionOf) -> Call[Any]:
    return (yield step)


@contextmanager
def _as_sentences() -> Iterator[None]:
    try:
        yield
    except (NoConnection, NotAuthenticated) as error:
        raise CannotConnect(str(error)) from error
    except NoRoute as error:
        raise CommandFailed(error.detail) from error
    except KafkaError as error:
        raise CommandFailed(str(error)) from error
