"""The credentials that SCRAM shows for unknown users, so that a stranger cannot ask which names exist.

The server's first message holds a salt and a number of iterations. For an unknown name both look like those of some user: the
form (iterations, kind and length of the salt) is drawn from the forms of the stored credentials, in proportion to how many users
have each, so that seeing one says nothing about the name. The draw depends on the name and a secret, hence a second question
gets the same answer; when users change, only names near the changed shares get another form. No password fits.

Known and unknown names take the same steps: one lookup that finds a credential and one that finds none, and a salt that is made.
A credential that was not used lately is not in the processor's cache, which over a socket took 0.8 us longer; so a login of an
unknown name reads one of some user, too.

The secret is the same on all nodes of a cluster, because two that show different salts for a name tell that it is unknown
(``ClusterSecret``).

Kafka's tools write salts as text, 130 random bits in base 36; other tools write random bytes. Both kinds are made here.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from typing import NamedTuple

from tidelog.metadata.image import BrokerImage, ScramCredential

SALT_BYTES = 24
"""As many as ``kafka-configs`` and ``format`` of tidelog make for users."""
LEAST_ITERATIONS = 4096
"""Of a credential that a login accepts. The user of a weaker one is unknown."""
LONGEST_SALT_BYTES = 1024
_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"
_TEXT_BITS = 130
_TEXT_BYTES = 17
_TEXT_LENGTHS = range(20, 27)
"""Of a number of 130 bits in base 36; a shorter one is as good as impossible."""
_DRAW_BITS = 64
_PURPOSE = b"unknown SCRAM users of "

Stored = Mapping[tuple[str, int], ScramCredential]
"""(user, mechanism) -> credential."""
_NO_USERS: Stored = {}


class Form(NamedTuple):
    """What a stranger sees of a credential, besides the bytes of its salt."""

    iterations: int
    salt_bytes: int
    """0: text, as Kafka's tools write."""


USUAL = Form(LEAST_ITERATIONS, SALT_BYTES)
"""Where there are no users."""
_USUAL = ScramCredential(b"\xff" * SALT_BYTES, b"", b"", LEAST_ITERATIONS)


class ClusterSecret:
    """What the nodes of a cluster know and its clients do not: the id of a log dir, 122 random bits. It is that of the broker
    with the lowest number.

    Nodes read it in the metadata log, which gives it to nodes alone. Clients find ids of log dirs only in DescribeQuorum, which
    needs DESCRIBE on the cluster, and with this permission they may list the users anyway (DescribeUserScramCredentials). The
    stored credentials are no secret of this kind: salts that depended on them would let a client without an account try
    passwords offline, and would all change with each user.

    The secret changes with the first broker's registration or log dirs. Below metadata.version 3.7 brokers register no log dirs;
    then each process has its own.
    """

    def __init__(self, cluster_id: str, brokers: Callable[[], Mapping[int, BrokerImage]], own: bytes) -> None:
        """``own``: random, of this process."""
        self._cluster_id = cluster_id.encode()
        self._brokers = brokers
        self._own = own
        self._seen: Mapping[int, BrokerImage] | None = None
        self._secret = own

    def __call__(self) -> bytes:
        brokers = self._brokers()
        if brokers is not self._seen:
            self._seen = brokers
            dirs = next((min(brokers[each].directories) for each in sorted(brokers) if brokers[each].directories), None)
            self._secret = self._own if dirs is None else hmac.digest(dirs, _PURPOSE + self._cluster_id, "sha512")
        return self._secret


class Strangers:
    """The unknown users of one mechanism. ``secret``: see ``ClusterSecret``."""

    def __init__(
        self, mechanism: int, digest: str, secret: Callable[[], bytes], stored: Callable[[], Stored] = lambda: _NO_USERS
    ) -> None:
        self._mechanism = mechanism
        self._digest = digest
        self._secret = secret
        self._stored = stored
        self._seen: Stored | None = None
        self._keys: list[tuple[str, int]] = []
        """Of all users, in the order of their forms."""
        self._longest_salt = 0

    def credential(self, name: str, found: ScramCredential | None) -> tuple[ScramCredential, ScramCredential]:
        """What this name is shown: ``found``, or where there is none a credential that stays the same as long as the users do.
        Then that credential in any case: the caller keeps it, because freeing it before the answer takes time, too."""
        stored = self._current()
        seed = hmac.digest(self._secret(), f"{self._mechanism} {name}".encode(), self._digest)
        # The name's place between 0 and 1, in units of one user.
        drawn = self._keys[int.from_bytes(seed[: _DRAW_BITS // 8]) * len(self._keys) >> _DRAW_BITS]
        absent = (name + "\0", self._mechanism)
        # Read, hashed and built for both, and chosen without a branch of other length.
        hash(absent), hash(drawn)
        model = stored.get((absent, drawn)[found is None])
        read = (found, model)[found is None] or _USUAL
        form = _form(read)
        # Brings the key into the cache, for the last message.
        read.stored_key.count(0)
        blocks = -(-self._longest_salt // len(seed))
        keys, salts = (
            b"".join(hmac.digest(seed, b"%b %d" % (purpose, each), self._digest) for each in range(number))
            for purpose, number in ((b"key", 2), (b"salt", blocks))
        )
        text = _text(int.from_bytes(salts[:_TEXT_BYTES]) % (1 << _TEXT_BITS))
        made = ScramCredential(
            salt=salts[: form.salt_bytes] if form.salt_bytes else text,
            stored_key=keys[: len(seed)],
            server_key=keys[len(seed) :],
            iterations=form.iterations,
        )
        return (found, made)[found is None] or made, made

    def _current(self) -> Stored:
        stored = self._stored()
        if stored is not self._seen:
            # Images share what did not change, so this runs once for each change of a credential.
            self._seen = stored
            forms = sorted(
                (_form(each), name)
                for (name, mechanism), each in stored.items()
                if mechanism == self._mechanism and each.iterations >= LEAST_ITERATIONS
            )
            # Copies of the names: finding a user by one of them reads the same memory as a login of that user.
            self._keys = [("".join(list(name)), self._mechanism) for _, name in forms] or [("", self._mechanism)]
            self._longest_salt = max(_TEXT_BYTES, SALT_BYTES, *(form.salt_bytes for form, _ in forms))
        return stored


def _form(credential: ScramCredential) -> Form:
    salt = credential.salt
    is_text = len(salt) in _TEXT_LENGTHS and not salt.translate(None, _DIGITS)
    return Form(credential.iterations, 0 if is_text else min(max(len(salt), 1), LONGEST_SALT_BYTES))


def _text(number: int) -> bytes:
    """The number in base 36."""
    digits = bytearray()
    while number:
        number, digit = divmod(number, 36)
        digits.append(_DIGITS[digit])
    return bytes(reversed(digits))
