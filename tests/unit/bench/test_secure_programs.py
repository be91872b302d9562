"""The generator and the limit under TLS, against one another."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.pair import frames
from bench.pair.processes import Failed
from bench.pair.programs import NoCompiler
from bench.pair.rows import BATCH_16K, ONE_RECORD
from bench.pair.servers import Server
from bench.secure import sides
from bench.secure.rows import Bench, Row, generate, parse
from bench.secure.sides import LISTENERS, PLAINTEXT, SASL_SSL, SSL, port_of

AES = "TLSv1.3 TLS_AES_256_GCM_SHA384"


@pytest.fixture
def limit(tmp_path: Path) -> Iterator[Server]:
    """The C limit, listening."""
    try:
        sides.load_program()
        sides.limit_program()
    except NoCompiler as missing:
        pytest.skip(str(missing))
    server = sides.limit(tmp_path / "limit", sides.make_certificate(tmp_path))
    try:
        yield server
    finally:
        server.stop()


@pytest.mark.parametrize("listener", LISTENERS)
def test_what_is_produced_is_fetched_again(limit: Server, listener: str) -> None:
    bench = Bench(Row("produce", listener, 31, 2, 5, partitions=3), limit)
    found = bench.run(31)
    assert found.requests == 31
    assert found.cipher == ("none" if listener == PLAINTEXT else AES)
    lengths = [(limit.home / f"{index}.log").stat().st_size for index in range(3)]
    assert sum(lengths) == 31 * len(BATCH_16K)
    assert all(lengths)
    fetch = frames.fetch(bytes(16), 0, 0, 1 << 20, lengths[0])
    fetched = generate(port_of(limit, listener), listener, [fetch], "flood", 2, 2, 5)
    assert fetched.moved > 5 * lengths[0]


def test_a_fetch_larger_than_the_generators_buffer(limit: Server) -> None:
    assert Bench(Row("fetch", SSL, 8, 2, 2), limit).run(40).moved > 39 << 20


@pytest.mark.parametrize("listener", LISTENERS)
def test_every_paced_record_is_acknowledged_and_consumed(limit: Server, listener: str) -> None:
    bench = Bench(Row("paced", listener, 100, 3), limit)
    for _ in range(2):  # the second run consumes from where the first one ended
        found = bench.run(100)
        assert found.requests == 100
        assert set(found.latencies) == {f"{what}_{part}_ms" for what in ("acked", "consumed") for part in ("p50", "p99", "p999")}
        assert 0 < found.latencies["acked_p50_ms"] <= found.latencies["acked_p99_ms"] <= found.latencies["acked_p999_ms"]
    assert (limit.home / "0.log").stat().st_size == 200 * len(ONE_RECORD)


@pytest.mark.parametrize("listener", [SSL, SASL_SSL])
def test_sessions_are_resumed_when_asked_for(limit: Server, listener: str) -> None:
    assert Bench(Row("full", listener, 12, 2), limit).run(12).resumed == 0
    assert Bench(Row("resumed", listener, 12, 2), limit).run(12).resumed >= 10


def test_a_client_without_tls_gets_no_answer_from_the_secure_port(limit: Server) -> None:
    with pytest.raises(Failed):
        generate(port_of(limit, SSL), PLAINTEXT, [frames.api_versions()], "shake", 1, 0, 1)
    assert generate(port_of(limit, SSL), SSL, [frames.api_versions()], "shake", 1, 0, 1).requests == 1


def test_an_error_in_an_answer_ends_the_load(limit: Server) -> None:
    wrong = frames.Frame(frames.produce("topic", [0], ONE_RECORD).request, error_at=2)  # the correlation id, which is 1
    with pytest.raises(Failed, match="the broker answered error 1"):
        generate(port_of(limit, SSL), SSL, [wrong], "flood", 1, 1, 1)


def test_the_generators_line_is_read() -> None:
    found = parse(
        '{"requests": 7, "seconds": 2.0, "sent": 1000000, "received": 3000000, "user_s": 0.5, "system_s": 0.25, "cipher": "c", '
        '"resumed": 3, "acked_us": {"p50": 1.0, "p99": 2000.0, "p999": 3.0}}\n'
    )
    assert (found.requests, found.mb_per_s, found.cipher, found.resumed) == (7, 2.0, "c", 3)
    assert found.latencies == {"acked_p50_ms": 0.001, "acked_p99_ms": 2.0, "acked_p999_ms": 0.003}
