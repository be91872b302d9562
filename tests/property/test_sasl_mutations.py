"""Mutated SASL exchanges against the real state machine: nothing but ProtocolViolation escapes, and no client gets in.

No exchange holds a right password, proof or signature. ``python -m tests.property.test_sasl_mutations SEED COUNT`` runs more.
"""

from __future__ import annotations

import base64
import json
import random
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.unit.broker.node_world import NOW_MS, NodeWorld
from tests.unit.security import tokens
from tidelog.broker.answer_types import CLOSE_CONNECTION, Farewell
from tidelog.broker.authentication import Authentication, Mechanism, SaslListener, Stage, sasl_listener
from tidelog.broker.table import BROKER_APIS
from tidelog.model.errors import ProtocolViolation
from tidelog.protocol.framing import RequestHeader, encode_request
from tidelog.protocol.messages.api_versions import ApiVersionsRequest
from tidelog.protocol.messages.metadata import MetadataRequest
from tidelog.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from tidelog.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tidelog.security.jwt_claims import ClaimRules, bearer_of
from tidelog.security.jwt_signature import IssuerKeys
from tidelog.security.oauthbearer import OAuthBearerServer
from tidelog.security.plain import PlainServer, fixed_users
from tidelog.security.scram import ScramMechanism, ScramServer, credential_of, users
from tidelog.security.scram_strangers import Strangers

NONCE = "N" * 20
KINDS = ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER", "X")
VALUES: list[Any] = [None, 5, -1, 1e300, "x", [], {}, [1], ["b64"], True, "\ud800", "none", "RS256", "HS256", "0" * 5000]
GOOD = tokens.signed(tokens.claims(NOW_MS, sub="mallory")).encode()


def listener(world: NodeWorld) -> SaslListener:
    """PLAIN, SCRAM and OAUTHBEARER, with secrets that no mutation reaches in a few steps."""
    check = fixed_users({"alice": "a-password-of-many-letters"})
    stored = {"alice": credential_of(ScramMechanism.SHA_256, b"salted" * 5, b"salt" * 5, 4096)}
    strangers = Strangers(ScramMechanism.SHA_256, "sha256", lambda: b"secret")
    keys = IssuerKeys(tokens.jwks(tokens.RSA, tokens.EC))
    rules = ClaimRules(issuer="https://another")
    return sasl_listener(
        world.broker,
        BROKER_APIS,
        {
            "PLAIN": Mechanism(lambda: PlainServer(check)),
            "SCRAM-SHA-256": Mechanism(lambda: ScramServer(ScramMechanism.SHA_256, users(stored.get), NONCE, strangers)),
            "OAUTHBEARER": Mechanism(lambda: OAuthBearerServer(lambda token: bearer_of(keys.claims(token), rules, NOW_MS))),
        },
        failed_delay_ms=1,
        max_receive_bytes=524288,
        monotonic_ms=lambda: 1,
        now_ms=lambda: NOW_MS,
        failed=lambda host, reason: None,
    )


def mutated(rng: random.Random, text: bytes) -> bytes:
    data = bytearray(text)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(data) + 1)
        match rng.randrange(5):
            case 0 if at < len(data):
                data[at] ^= 1 << rng.randrange(8)
            case 1:
                del data[at:]
            case 2:
                data[at:at] = rng.randbytes(rng.randrange(1, 6))
            case 3:
                del data[at : at + rng.randrange(1, 5)]
            case _ if at < len(data):
                data[at] = rng.choice((0, 1, 44, 61, 127, 128, 255))
    return bytes(data)


def part(content: Any) -> bytes:
    text = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(text).rstrip(b"=")


def token(rng: random.Random) -> bytes:
    """A token that the issuer did not sign for this listener, in one of many wrong shapes."""
    header: dict[str, Any] = {
        "alg": rng.choice(("RS256", "ES256", "none", "HS256", "EdDSA")),
        "kid": rng.choice(("rsa", "ec", "z")),
    }
    for _ in range(rng.randrange(3)):
        header[rng.choice(("alg", "kid", "crit", "b64", "typ", "jwk", "x5c", "jku", "zip", "enc", "cty"))] = rng.choice(VALUES)
    _, body, signature = GOOD.split(b".")
    nested = rng.choice((b"[" * 20000, b"{}", b"9" * 9000, b"\xff", b"[]", b"null", b'{"alg":' + b"9" * 9000 + b"}"))
    match rng.randrange(4):
        case 0:
            return b".".join((part(header), body, signature))
        case 1:
            return mutated(rng, GOOD)
        case 2:
            return b".".join((part(header), part(nested), part(rng.randbytes(64))))
        case _:
            return b".".join((part(nested), body, signature))


def frame(request: Any, version: int) -> bytes:
    return encode_request(RequestHeader(request.API_KEY, version, 7, "me"), request)[4:]


def exchange(rng: random.Random) -> Iterator[bytes]:
    """The frames of one client."""
    kind, version = rng.choice(KINDS), rng.choice((0, 1, 1, 1))
    scram = [b"n,,n=alice,r=abc", b"c=biws,r=abc" + NONCE.encode() + b",p=" + base64.b64encode(b"p" * 32)]
    bearer = [b"n,,\x01auth=Bearer " + token(rng) + b"\x01\x01", b"\x01"]
    messages = {"SCRAM-SHA-256": scram, "OAUTHBEARER": bearer}.get(kind, [b"\0alice\0wrong"])
    frames = [frame(SaslHandshakeRequest(mechanism=kind), version)]
    if rng.random() < 0.4:
        frames.insert(0, frame(ApiVersionsRequest(client_software_name="a", client_software_version="1"), rng.randrange(5)))
    for message in messages:
        sent = mutated(rng, message) if rng.random() < 0.5 else message
        frames.append(frame(SaslAuthenticateRequest(auth_bytes=sent), rng.randrange(3)) if version else sent)
    if rng.random() < 0.5:
        at = rng.randrange(len(frames))
        frames[at] = mutated(rng, frames[at])
    if rng.random() < 0.1:
        rng.shuffle(frames)
    yield from frames
    yield frame(MetadataRequest(topics=[]), 9)


def attack(seed: int, count: int) -> int:
    """How many of ``count`` exchanges ended in an answer or a close without an error; AssertionError for one that got in."""
    rng, world = random.Random(seed), NodeWorld()
    sasl = listener(world)
    ended = 0
    for number in range(count):
        session = world.session()
        authentication = Authentication(sasl, session, sasl.dispatcher.handle, lambda: None, lambda mechanism: None)
        for each in exchange(rng):
            try:
                answer = authentication.handle(session, memoryview(bytearray(each)))
            except ProtocolViolation:
                break
            if answer is CLOSE_CONNECTION or isinstance(answer, Farewell):
                ended += 1
                break
        assert authentication.stage is not Stage.OPEN, f"exchange {number} of seed {seed} got in"
    return ended


@pytest.mark.parametrize("seed", range(4))
def test_a_mutated_exchange_ends_in_order_and_lets_no_one_in(seed: int) -> None:
    assert attack(seed, 1500) > 1000


if __name__ == "__main__":
    print(attack(int(sys.argv[1]), int(sys.argv[2])))
