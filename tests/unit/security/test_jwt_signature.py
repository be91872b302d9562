from __future__ import annotations

import hashlib
import hmac
import json
from base64 import urlsafe_b64encode
from typing import Any

import pytest
from joserfc import jws
from joserfc.jwk import ECKey, OKPKey

from tests.unit.security.tokens import EC, RSA, claims, jwks, signed, unsigned
from tidelog.security.jwt_signature import MAX_KEYS, IssuerKeys, UnknownKey, unsecured_claims
from tidelog.security.oauthbearer import TokenRefused

KEYS = IssuerKeys(jwks(RSA, EC))


@pytest.mark.parametrize(("key", "algorithm"), [(RSA, "RS256"), (RSA, "PS512"), (EC, "ES256")])
def test_the_claims_of_a_signed_token(key: Any, algorithm: str) -> None:
    assert KEYS.claims(signed(claims(), key, algorithm)) == claims()


@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
def test_an_edwards_key() -> None:
    key = OKPKey.generate_key("Ed25519", {"kid": "ed"})
    assert IssuerKeys(jwks(key)).claims(signed(claims(), key, "EdDSA")) == claims()


def test_a_token_without_a_key_id_is_tried_with_each_fitting_key() -> None:
    other = ECKey.generate_key("P-256", {"kid": "other"})
    keys = IssuerKeys(jwks(other, EC, RSA))
    token = jws.serialize_compact({"alg": "ES256"}, json.dumps(claims()), EC, algorithms=["ES256"])
    assert keys.claims(token) == claims()


def test_a_signature_by_another_key_is_wrong() -> None:
    impostor = ECKey.generate_key("P-256", {"kid": "ec"})
    with pytest.raises(TokenRefused, match="signature of the token is wrong"):
        KEYS.claims(signed(claims(), impostor))


def test_changed_claims_are_refused() -> None:
    header, _, signature = signed(claims()).split(".")
    other = urlsafe_b64encode(json.dumps(claims(sub="admin")).encode()).decode().rstrip("=")
    with pytest.raises(TokenRefused, match="signature of the token is wrong"):
        KEYS.claims(f"{header}.{other}.{signature}")


def test_an_unknown_key_is_told_apart_because_the_issuer_may_have_a_new_one() -> None:
    with pytest.raises(UnknownKey, match="no key 'new'"):
        KEYS.claims(signed(claims(), ECKey.generate_key("P-256", {"kid": "new"})))


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "HS256", "", None, 5, ["RS256"], {"a": 1}])
def test_no_symmetric_algorithm_and_none_at_all(algorithm: Any) -> None:
    with pytest.raises(TokenRefused, match="not accepted") as refused:
        KEYS.claims(unsigned(claims(), algorithm))
    assert not isinstance(refused.value, UnknownKey), "it must not cause a fetch of keys"


def test_the_public_key_is_no_secret_for_a_symmetric_algorithm() -> None:
    header = urlsafe_b64encode(b'{"alg":"HS256","kid":"rsa"}').decode().rstrip("=")
    body = urlsafe_b64encode(json.dumps(claims()).encode()).decode().rstrip("=")
    mac = hmac.digest(RSA.as_pem(private=False), f"{header}.{body}".encode(), hashlib.sha256)
    with pytest.raises(TokenRefused, match="not accepted"):
        KEYS.claims(f"{header}.{body}.{urlsafe_b64encode(mac).decode().rstrip('=')}")


@pytest.mark.parametrize(
    "token",
    [
        "",
        ".",
        "..",
        "a.b",
        "a.b.c.d",
        "a.b.c",
        "e30.e30.e30",
        "[].e30.x",
        "=.=.=",
        signed(claims()) + ".x",
        "é.é.é",
        "bnVsbA.e30.",
    ],
)
def test_what_is_no_token_is_refused(token: str) -> None:
    with pytest.raises(TokenRefused):
        KEYS.claims(token)


def test_keys_for_other_uses_do_not_count() -> None:
    entries = [*json.loads(jwks(EC, use="enc"))["keys"], *json.loads(jwks(RSA))["keys"]]
    with pytest.raises(UnknownKey):
        IssuerKeys(json.dumps({"keys": entries}).encode()).claims(signed(claims(), EC))


def test_a_key_for_one_algorithm_signs_no_other() -> None:
    with pytest.raises(UnknownKey):
        IssuerKeys(jwks(RSA, alg="RS512")).claims(signed(claims(), RSA, "RS256"))


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b"{}",
        b'{"keys": {}}',
        b'{"keys": []}',
        b'{"keys": [{"kty": "oct", "k": "AAAA"}]}',
        b'{"keys": [{"kty": "RSA"}]}',
        json.dumps({"keys": [{}] * (MAX_KEYS + 1)}).encode(),
    ],
)
def test_what_is_no_set_of_keys_is_refused(document: bytes) -> None:
    with pytest.raises(ValueError, match=r"JWKS|Expecting"):
        IssuerKeys(document)


def test_a_key_that_cannot_be_read_leaves_the_others() -> None:
    listed = json.loads(jwks(EC))["keys"]
    keys = IssuerKeys(json.dumps({"keys": [{"kty": "RSA", "n": "!", "e": "?"}, 5, *listed]}).encode())
    assert len(keys) == 1


def test_a_token_without_a_signature_is_for_those_who_ask_for_it() -> None:
    assert unsecured_claims(unsigned(claims())) == claims()
    for token in (signed(claims()), unsigned(claims()) + "c2ln", signed(claims(), RSA, "RS256")):
        with pytest.raises(TokenRefused):
            unsecured_claims(token)


def test_a_document_or_a_token_nested_too_deeply_is_refused() -> None:
    deep = b"[" * 100_000
    for document in (deep, b'{"keys": [{"kty": ' + deep):
        with pytest.raises(ValueError, match="nested too deeply"):
            IssuerKeys(document)
    _, body, signature = signed(claims()).split(".")
    nested = urlsafe_b64encode(b'{"alg": "ES256", "x": ' + deep).decode().rstrip("=")
    for token in (f"{nested}.{body}.{signature}", jws.serialize_compact({"alg": "ES256"}, deep, EC, algorithms=["ES256"])):
        with pytest.raises(TokenRefused):
            KEYS.claims(token)


def test_a_header_that_only_the_library_finds_too_deep_is_a_wrong_signature(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_deep(*_: Any, **__: Any) -> None:
        raise RecursionError

    monkeypatch.setattr(jws, "deserialize_compact", too_deep)
    with pytest.raises(TokenRefused, match="signature of the token is wrong"):
        KEYS.claims(signed(claims()))
