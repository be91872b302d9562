"""What SCRAM shows for unknown users: it must look like what it shows for known ones."""

from __future__ import annotations

import hmac
import secrets
from collections import Counter

import pytest

from tidelog.cli.tools.scram_configs import SALT_BYTES
from tidelog.metadata.image import BrokerImage, ScramCredential
from tidelog.model.ids import Uuid
from tidelog.security.scram import ScramMechanism
from tidelog.security.scram_strangers import USUAL, ClusterSecret, Stored, Strangers

DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyz"
SHA_256, SHA_512 = ScramMechanism


def stored(*forms: tuple[int, bytes], mechanism: int = SHA_256) -> dict[tuple[str, int], ScramCredential]:
    return {
        (f"u{number}", mechanism): ScramCredential(salt, b"k" * 32, b"s" * 32, iterations)
        for number, (iterations, salt) in enumerate(forms)
    }


def strangers(credentials: Stored, mechanism: ScramMechanism = SHA_256, secret: bytes = b"secret") -> Strangers:
    return Strangers(mechanism, mechanism.digest, lambda: secret, lambda: credentials)


def shown(of: Strangers, number: int) -> list[tuple[int, int]]:
    """(iterations, length of the salt) of so many unknown names."""
    made = [of.credential(f"x{each}", None)[0] for each in range(number)]
    return [(each.iterations, len(each.salt)) for each in made]


def test_a_name_is_answered_alike_each_time_and_otherwise_than_others() -> None:
    of = strangers(stored((4096, b"r" * 16)))
    assert of.credential("eve", None)[0] == strangers(stored((4096, b"q" * 16))).credential("eve", None)[0]
    assert len({of.credential(f"x{each}", None)[0].salt for each in range(100)}) == 100
    assert (
        of.credential("eve", None)[0].salt
        != strangers(stored((4096, b"r" * 16)), secret=b"other").credential("eve", None)[0].salt
    )


def broker(number: int, *directories: bytes) -> BrokerImage:
    return BrokerImage(
        id=number,
        epoch=0,
        incarnation_id=Uuid(secrets.token_bytes(16)),
        endpoints={},
        features={},
        rack=None,
        fenced=False,
        in_controlled_shutdown=False,
        directories=tuple(Uuid(each * 16) for each in directories),
    )


def test_all_nodes_of_a_cluster_have_one_secret() -> None:
    one, other = ({1: broker(1, b"b", b"a"), 2: broker(2, b"c")} for _ in range(2))
    secret = ClusterSecret("cluster", lambda: one, b"own")()
    assert ClusterSecret("cluster", lambda: other, b"of another process")() == secret
    # Neither the broker's other log dirs nor other brokers change it.
    assert ClusterSecret("cluster", lambda: {0: broker(0), 3: broker(3, b"c"), 1: broker(1, b"a")}, b"own")() == secret
    assert ClusterSecret("other", lambda: one, b"own")() != secret
    assert ClusterSecret("cluster", lambda: {1: broker(1, b"c")}, b"own")() != secret


def test_the_secret_follows_the_registrations_and_is_the_processes_own_while_there_is_none() -> None:
    now = [{1: broker(1)}]
    secret = ClusterSecret("cluster", lambda: now[0], b"own")
    assert secret() == b"own"
    now[0] = {1: broker(1, b"a")}
    assert secret() == ClusterSecret("cluster", lambda: {1: broker(1, b"a")}, b"")() != b"own"


def test_without_users_it_looks_as_the_tools_of_tidelog_make_it() -> None:
    made = strangers({}).credential("eve", None)[0]
    assert (made.iterations, len(made.salt)) == (4096, SALT_BYTES) == USUAL


def test_forms_come_as_often_as_users_have_them() -> None:
    of = strangers(stored(*[(4096, b"\xff" * 24)] * 60, *[(8192, b"\xff" * 16)] * 30, *[(16384, b"\xff" * 100)] * 10))
    found = Counter(shown(of, 5000))
    assert set(found) == {(4096, 24), (8192, 16), (16384, 100)}
    for form, share in (((4096, 24), 0.6), ((8192, 16), 0.3), ((16384, 100), 0.1)):
        # Five standard deviations; the names and the secret are fixed.
        assert abs(found[form] / 5000 - share) < 5 * (share * (1 - share) / 5000) ** 0.5


def test_salts_as_apache_kafka_writes_them_are_text() -> None:
    def written() -> bytes:
        number, digits = secrets.randbits(130), b""
        while number:
            number, digit = divmod(number, 36)
            digits = DIGITS[digit : digit + 1] + digits
        return digits

    of = strangers(stored(*((4096, written()) for _ in range(50))))
    salts = [of.credential(f"x{each}", None)[0].salt for each in range(300)]
    assert all(set(salt) <= set(DIGITS) for salt in salts)
    # 2^130 is 1.68 times 36^25: four of ten numbers have a 26th digit, which is 1.
    assert {len(salt) for salt in salts} >= {25, 26}
    assert {salt[:1] for salt in salts if len(salt) == 26} == {b"1"}


def test_each_mechanism_has_its_own_users() -> None:
    both = stored((8192, b"\xff" * 16)) | stored((4096, b"\xff" * 30), mechanism=SHA_512)
    assert set(shown(strangers(both), 50)) == {(8192, 16)}
    assert set(shown(strangers(both, SHA_512), 50)) == {(4096, 30)}


def test_a_user_with_too_few_iterations_does_not_count() -> None:
    assert set(shown(strangers(stored((1000, b"\xff" * 16))), 50)) == {(USUAL.iterations, USUAL.salt_bytes)}


def test_another_user_changes_few_names() -> None:
    forms = [(4096, b"\xff" * 24)] * 60 + [(8192, b"\xff" * 16)] * 40
    before, after = strangers(stored(*forms)), strangers(stored(*forms, (8192, b"\xff" * 16)))
    changed = sum(one != two for one, two in zip(shown(before, 5000), shown(after, 5000), strict=True))
    assert 0 < changed < 5000 / 100


def test_users_who_come_are_seen() -> None:
    now: list[Stored] = [{}]
    of = Strangers(SHA_256, "sha256", lambda: b"secret", lambda: now[0])
    assert of.credential("eve", None)[0].iterations == 4096
    now[0] = stored((8192, b"\xff" * 16))
    assert of.credential("eve", None)[0].iterations == 8192


def test_every_form_takes_the_same_hmacs(monkeypatch: pytest.MonkeyPatch) -> None:
    of = strangers(stored((4096, b"\xff" * 24), (4096, b"a" * 25), (8192, b"\xff" * 90)))
    digest, calls = hmac.digest, []

    def counting(key: bytes, message: bytes, name: str) -> bytes:
        calls.append(name)
        return digest(key, message, name)

    monkeypatch.setattr(hmac, "digest", counting)
    forms, costs = set(), set()
    for number in range(100):
        calls.clear()
        made = of.credential(f"x{number}", None)[0]
        costs.add(len(calls))
        forms.add((made.iterations, len(made.salt) > 30))
    assert len(forms) == 2
    assert len(costs) == 1
