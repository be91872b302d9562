"""SCRAM credentials in the simulated controller: users get them, change and lose them, and log in at brokers.

A login has to succeed exactly with the password that the records up to the broker's image hold. The random numbers are a
generator's of its own, so that credentials leave the draws of older seeds as they were.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import random
from typing import TYPE_CHECKING

from sim.controller_checkers import require
from sim.security_ledger import Ledger, UserId
from tidelog.controller.quorum_controller import QuorumController
from tidelog.metadata.image import ClusterImage
from tidelog.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tidelog.security.sasl import AuthenticationFailed
from tidelog.security.scram import MIN_ITERATIONS, ScramMechanism, ScramServer, users
from tidelog.security.scram_strangers import Strangers

if TYPE_CHECKING:
    from sim.controller_world import World

NAMES = ("ann", "bob", "eve")
SECRET = b"of the node"


class Credentials:
    """Changes of credentials, and logins at brokers."""

    def __init__(self, world: World, seed: int) -> None:
        self._world = world
        self._rng = random.Random(f"scram {seed}")
        self._passwords: dict[tuple[UserId, bytes], bytes] = {}
        """By user, mechanism and salt: every salted password that was ever asked for."""

    def change(self) -> None:
        """Sometimes an administrator sets or deletes the credentials of up to two users."""
        rng, world = self._rng, self._world
        if rng.random() > 0.2:
            return
        request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[])
        for name in rng.sample(NAMES, rng.randint(1, 2)):
            mechanism = rng.choice((ScramMechanism.SHA_256, ScramMechanism.SHA_512))
            if rng.random() < 0.4:
                request.deletions.append(ScramCredentialDeletion(name=name, mechanism=mechanism))
                continue
            salt, salted = rng.randbytes(16), rng.randbytes(32)
            self._passwords[(name, mechanism), salt] = salted
            request.upsertions.append(ScramCredentialUpsertion(name, mechanism, MIN_ITERATIONS, salt, salted))
        groups = len(world.written)
        world.ask(QuorumController.alter_user_scram_credentials, request)
        for records, _ in world.written[groups:]:
            removals = sum(record.NAME == "RemoveUserScramCredentialRecord" for record in records)
            world.counts["credentials removed"] += removals
            world.counts["credentials set"] += len(records) - removals

    def look(self, where: str, image: ClusterImage, ledger: Ledger) -> None:
        """Now and then a client logs in, with any password that was ever its own."""
        if self._passwords and self._rng.random() < 0.2:
            self._log_in(where, image, ledger, *self._rng.choice(list(self._passwords)))

    def try_everything(self, where: str, image: ClusterImage, ledger: Ledger) -> None:
        """Every password that ever was."""
        for user, salt in self._passwords:
            self._log_in(where, image, ledger, user, salt)

    def _log_in(self, where: str, image: ClusterImage, ledger: Ledger, user: UserId, salt: bytes) -> None:
        name, number = user
        mechanism = ScramMechanism(number)
        lookup = users(lambda known: image.scram.get((known, mechanism)))
        strangers = Strangers(mechanism, mechanism.digest, lambda: SECRET, lambda: image.scram)
        server = ScramServer(mechanism, lookup, "server", strangers)
        entered = True
        try:
            converse(server, mechanism, name, self._passwords[user, salt])
        except AuthenticationFailed:
            entered = False
        known = ledger.credentials.get(user)
        right = known is not None and known.salt == salt
        require(entered == right, f"{where}: the login of {name} by {mechanism.title} ends with {entered}, not with {right}")
        self._world.counts["logins" if entered else "logins refused"] += 1


def converse(server: ScramServer, mechanism: ScramMechanism, name: str, salted: bytes) -> None:
    """The client's side of an exchange, by a client that keeps the salted password. AuthenticationFailed."""
    bare = f"n={name},r=client".encode()
    first = server.answer(b"n,," + bare)
    nonce = first.split(b",", 1)[0]
    without_proof = b"c=biws," + nonce
    client_key = hmac.digest(salted, b"Client Key", mechanism.digest)
    stored_key = hashlib.new(mechanism.digest, client_key).digest()
    signature = hmac.digest(stored_key, b",".join((bare, first, without_proof)), mechanism.digest)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    server.answer(without_proof + b",p=" + base64.b64encode(proof))
    assert server.outcome is not None
    assert server.outcome.principal.name == name
