"""The credentials that SCRAM shows for unknown users, so that a stranger cannot ask which names exist.

The server's first message holds a salt and a number of iterations. For an unknown name both look like those of some user: the
form (iterations, kind and length of the salt) is drawn from the forms of the stored credentials, in proportion to how many users
have each, so that seeing one says nothing about the name. The draw depends on the name and a secret, hence a second question
gets the same answer; when users change, only names near the changed shares get another form. No password fits.

Kafka's tools write salts as text, 130 random bits in base 36; other tools write random bytes. Both kinds are made here.
"""

from __future__ import annotations

import hmac
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from itertools import accumulate
from typing import NamedTuple

from tidelog.metadata.image import ScramCredential

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


class _Shares(NamedTuple):
    """The forms in ascending order, and how many users have each one or one before it."""

    forms: list[Form]
    ends: list[int]
    longest_salt: int


class Strangers:
    """The unknown users of one mechanism. ``secret``: random, the same for all listeners of a node."""

    def __init__(self, mechanism: int, digest: str, secret: bytes, stored: Callable[[], Stored] = lambda: _NO_USERS) -> None:
        self._mechanism = mechanism
        self._digest = digest
        self._secret = secret
        self._stored = stored
        self._counted: Stored | None = None
        self._shares = _shares(())

    def credential(self, name: str) -> ScramCredential:
        """Always the same for a name, as long as the users stay."""
        shares = self._current()
        seed = hmac.digest(self._secret, f"{self._mechanism} {name}".encode(), self._digest)
        # The name's place between 0 and 1, in units of one user.
        place = int.from_bytes(seed[: _DRAW_BITS // 8]) * shares.ends[-1] >> _DRAW_BITS
        form = shares.forms[bisect_right(shares.ends, place)]
        # The same work for every form: a name that is known must not show another form than its time does.
        blocks = -(-shares.longest_salt // len(seed))
        keys, salts = (
            b"".join(hmac.digest(seed, b"%b %d" % (purpose, each), self._digest) for each in range(number))
            for purpose, number in ((b"key", 2), (b"salt", blocks))
        )
        text = _text(int.from_bytes(salts[:_TEXT_BYTES]) % (1 << _TEXT_BITS))
        return ScramCredential(
            salt=salts[: form.salt_bytes] if form.salt_bytes else text,
            stored_key=keys[: len(seed)],
            server_key=keys[len(seed) :],
            iterations=form.iterations,
        )

    def _current(self) -> _Shares:
        stored = self._stored()
        if stored is not self._counted:
            # Images share what did not change, so this runs once for each change of a credential.
            self._counted = stored
            self._shares = _shares(each for (_, mechanism), each in stored.items() if mechanism == self._mechanism)
        return self._shares


def _shares(credentials: Iterable[ScramCredential]) -> _Shares:
    usable = (each for each in credentials if each.iterations >= LEAST_ITERATIONS)
    counted = sorted(Counter(map(_form, usable)).items()) or [(USUAL, 1)]
    longest = max(_TEXT_BYTES, *(form.salt_bytes for form, _ in counted))
    return _Shares([form for form, _ in counted], list(accumulate(number for _, number in counted)), longest)


def _form(credential: ScramCredential) -> Form:
    salt = credential.salt
    is_text = len(salt) in _TEXT_LENGTHS and all(each in _DIGITS for each in salt)
    return Form(credential.iterations, 0 if is_text else min(max(len(salt), 1), LONGEST_SALT_BYTES))


def _text(number: int) -> bytes:
    """The number in base 36."""
    digits = bytearray()
    while number:
        number, digit = divmod(number, 36)
        digits.append(_DIGITS[digit])
    return bytes(reversed(digits))
