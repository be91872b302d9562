"""Where a node gets the tokens of OAUTHBEARER with which it logs in on a listener of other nodes, by Kafka's settings (KIP-255,
KIP-768, KIP-1139).

``listener.name.<listener>.oauthbearer.<option>`` beats ``listener.name.<listener>.<option>``, which beats the bare option. The
client's identity and the TLS settings of the endpoint may stand in ``sasl.jaas.config`` instead, as in Kafka. A setting that
would change where tokens come from, and is not honoured here, stops the start.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tidelog.client.oauth import CLIENT_ID, CLIENT_SECRET, HANDLER, RETRIEVER, SCOPE, URL, URL_ENCODED, OAuth, oauth_settings
from tidelog.client.settings import Tls, parse_tls
from tidelog.config.broker import BROKER_OPTIONS
from tidelog.config.jaas import OAUTHBEARER_MODULE, parse_jaas
from tidelog.config.listener_oauth import OF_TLS, endpoint_tls
from tidelog.config.listener_sasl import JAAS, ListenerOptions
from tidelog.config.options import Password
from tidelog.model.errors import ConfigError

MECHANISM = "OAUTHBEARER"
_TEXTS = (URL, CLIENT_ID, CLIENT_SECRET, SCOPE, HANDLER, RETRIEVER)
_OF_JAAS = ("clientId", "clientSecret", "scope")
_OF_THE_LISTENER = "unsecuredValidator"
"""How options of the login module begin that say which tokens the listener accepts (``config.listener_oauth``)."""
_WITHOUT_MEANING = (
    "sasl.login.class",
    "sasl.oauthbearer.jwt.validator.class",
    URL_ENCODED,
    *(name for name in BROKER_OPTIONS if name.startswith("sasl.oauthbearer.assertion.")),
)


class Renewal(NamedTuple):
    """When a token is replaced by the next one; times in seconds."""

    share: float
    jitter: float
    least_s: float
    buffer_s: float

    def after_s(self, life_s: float, spread: float) -> float:
        """How long a token that holds for ``life_s`` is used. ``spread``: random, from 0.0 to 1.0.

        As in Java's clients, ``least_s`` and ``buffer_s`` count only for a life that is longer than both together.
        """
        due_s = life_s * (self.share + self.jitter * spread)
        if self.least_s + self.buffer_s < life_s:
            due_s = max(min(due_s, life_s - self.buffer_s), self.least_s)
        return min(due_s, life_s)


class TokenSource(NamedTuple):
    """Where tokens come from, and when they are asked for."""

    oauth: OAuth
    renewal: Renewal
    tls: Tls | None
    """Of the endpoint; None: the system's authorities count."""
    connect_s: float | None
    read_s: float | None
    """Limits of one request; None: the default of the fetch."""
    retry_ms: int
    max_retry_ms: int


def token_source(given: Mapping[str, str], listener: str) -> TokenSource:
    """The source for a listener. ConfigError says what to set or to remove, and holds no secret.

    ``given``: the node's settings as they were written.
    """
    try:
        return _source(ListenerOptions(given, listener))
    except ConfigError as problem:
        raise ConfigError(f"this node cannot log in on listener {listener} by {MECHANISM}: {problem}") from None


def renewal(given: Mapping[str, str], listener: str) -> Renewal:
    """When the tokens for a listener are replaced. ConfigError for a value that Java's clients refuse, too."""
    options = ListenerOptions(given, listener)
    return _renewal(lambda option: options.value(option, MECHANISM))


def _source(options: ListenerOptions) -> TokenSource:
    for name in _WITHOUT_MEANING:
        found = options.get(name, MECHANISM)
        if found is not None and _says_something(name, found[1]):
            raise ConfigError(f"{found[0]} has no meaning for a node. Remove it.")

    def value(option: str) -> Any:
        return options.value(option, MECHANISM)

    def seconds(option: str) -> float | None:
        limit_ms = value(option)
        return limit_ms / 1000 if limit_ms and limit_ms > 0 else None

    jaas = _login_module(options)
    texts = {name: _shown(value(name)) for name in _TEXTS}
    tls = endpoint_tls(jaas)
    return TokenSource(
        oauth=oauth_settings({name: text for name, text in texts.items() if text}, jaas, None),
        renewal=_renewal(value),
        tls=parse_tls(tls) if tls else None,
        connect_s=seconds("sasl.login.connect.timeout.ms"),
        read_s=seconds("sasl.login.read.timeout.ms"),
        retry_ms=max(1, value("sasl.login.retry.backoff.ms")),
        max_retry_ms=max(1, value("sasl.login.retry.backoff.max.ms")),
    )


def _says_something(name: str, text: str) -> bool:
    option = BROKER_OPTIONS.get(name)
    return bool(text.strip()) and (option is None or option.parse(text) != option.default)


def _shown(value: Any) -> str:
    return value.secret if isinstance(value, Password) else str(value or "")


def _login_module(options: ListenerOptions) -> Mapping[str, str]:
    """The options of the login module; empty without one."""
    text, setting = options.specific(JAAS, MECHANISM), options.full_name(JAAS, MECHANISM)
    if text is None:
        return {}
    entry = parse_jaas(text, setting)
    if entry.module != OAUTHBEARER_MODULE:
        raise ConfigError(f"{setting} has the login module {entry.module}, but {MECHANISM} needs {OAUTHBEARER_MODULE}.")
    for name in entry.options:
        if name not in _OF_JAAS and not name.startswith((OF_TLS, _OF_THE_LISTENER)):
            raise ConfigError(
                f"{setting}: the login module has the option {name[:50]}, which has no meaning for a node. Remove it; "
                f"{', '.join(_OF_JAAS)} and {OF_TLS}* are known."
            )
    return entry.options


def _renewal(value: Callable[[str], Any]) -> Renewal:
    """What Java's clients allow."""
    found = Renewal(
        share=value("sasl.login.refresh.window.factor"),
        jitter=value("sasl.login.refresh.window.jitter"),
        least_s=float(value("sasl.login.refresh.min.period.seconds")),
        buffer_s=float(value("sasl.login.refresh.buffer.seconds")),
    )
    if not 0.5 <= found.share <= 1.0:
        raise ConfigError(f"sasl.login.refresh.window.factor is {found.share}, but must be from 0.5 to 1.0.")
    if not 0.0 <= found.jitter <= 0.25:
        raise ConfigError(f"sasl.login.refresh.window.jitter is {found.jitter}, but must be from 0.0 to 0.25.")
    if not 0 <= found.least_s <= 900:
        raise ConfigError(f"sasl.login.refresh.min.period.seconds is {found.least_s:.0f}, but must be from 0 to 900.")
    if not 0 <= found.buffer_s <= 3600:
        raise ConfigError(f"sasl.login.refresh.buffer.seconds is {found.buffer_s:.0f}, but must be from 0 to 3600.")
    return found
