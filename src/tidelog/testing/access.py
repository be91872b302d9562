"""``Broker.access``: how a test's clients log in, and what they may do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.testing.permissions import Rule
    from tidelog.testing.users import Users


class Access:
    """The users and ACLs of one broker, which were given to ``Broker``. Since 0.2."""

    def __init__(self, users: Users | None, address: Callable[[], str], replace: Callable[[Sequence[Rule]], None]) -> None:
        self._users = users
        self._address = address
        self._replace = replace

    def client_settings(self, user: str | None = None, mechanism: str = "SCRAM-SHA-256") -> dict[str, str]:
        """The settings with which a client connects as this user, under Kafka's names, which librdkafka and Java know:
        ``Producer(broker.access.client_settings("alice"))``. ``mechanism``: SCRAM-SHA-256, SCRAM-SHA-512 or PLAIN.

        ValueError for a user that the broker was not given.
        """
        if self._users is not None:
            return self._users.client_settings(self._address(), user, mechanism)
        if user is not None:
            raise ValueError("the broker has no users: give it some, Broker(users={...})")
        return {"bootstrap.servers": self._address()}

    def set_acls(self, acls: Sequence[Rule]) -> None:
        """These ACLs instead of those that there are, from the next request on.

        ValueError for a broker without ``acls``, whose clients may do everything, or for one that is refused.
        """
        if self._users is None:
            raise ValueError("the broker has no authorizer: give it ACLs from the start, Broker(acls=[])")
        self._replace(acls)
