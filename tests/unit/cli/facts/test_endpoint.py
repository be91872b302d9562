"""The errors of an endpoint say what to change, and a credential goes where it belongs."""

from __future__ import annotations

import base64
import json
import socket
import ssl
from pathlib import Path

import pytest

from tests.certificates import Authority
from tests.unit.cli.facts.pages import page
from tests.unit.cli.facts.serving import serving
from tidelog.cli.facts import endpoint
from tidelog.cli.facts.endpoint import Access, Reader, url_of
from tidelog.cli.refusal import CommandFailed

PAGE = json.dumps(page()).encode()


def private(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def failure(where: str, access: Access = Access()) -> str:
    with pytest.raises(CommandFailed) as caught:
        Reader(access).read(where)
    return str(caught.value)


def test_a_page_is_read_from_an_address_or_a_url() -> None:
    with serving(lambda path, _: (200, PAGE) if path == "/facts" else (404, b"")) as where:
        for each in (where, f"http://{where}", f"http://{where}/", f"http://{where}/metrics"):
            assert [page["node"]["id"] for page in Reader(Access()).read(each)] == [1]
    assert url_of("https://one.example:1") == "https://one.example:1/facts"
    with pytest.raises(CommandFailed, match="it must be host:port, or a URL"):
        url_of("ftp://one.example")


def test_a_token_and_a_password_come_from_files(tmp_path: Path) -> None:
    seen: list[str | None] = []

    def answer(_: str, authorization: str | None) -> tuple[int, bytes]:
        seen.append(authorization)
        return 200, PAGE

    with serving(answer) as where:
        Reader(Access()).read(where)
        Reader(Access(token_file=private(tmp_path / "t", "# mine\n\ns3cret\n"))).read(where)
        Reader(Access(user_file=private(tmp_path / "u", "anna:pw\n"))).read(where)
    assert seen == [None, "Bearer s3cret", "Basic " + base64.b64encode(b"anna:pw").decode()]
    with pytest.raises(CommandFailed, match="holds no credential"):
        Reader(Access(token_file=private(tmp_path / "e", "\n")))


def test_refusals_name_the_flag() -> None:
    with serving(lambda _, __: (401, b"")) as where:
        assert "needs a login: --token-file FILE or --user-file FILE" in failure(where)
    with serving(lambda _, __: (404, b"")) as where:
        assert "is not served: the node is of a version before the facts" in failure(where)
    with serving(lambda _, __: (503, b"the node is starting\n")) as where:
        assert failure(where).endswith("answered 503: the node is starting")


def test_an_endpoint_that_is_off_names_the_setting() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        text = failure(f"localhost:{free.getsockname()[1]}")
    assert "Connection refused" in text
    assert "tidelog.http.listener, 127.0.0.1:9644 unless set; an empty value turns it off" in text


def test_a_redirect_is_not_followed_with_the_credential(tmp_path: Path) -> None:
    asked: list[str] = []

    def other(path: str, _: str | None) -> tuple[int, bytes]:
        asked.append(path)
        return 200, PAGE

    with serving(other) as target, serving(lambda _, __: (302, f"http://{target}/facts".encode())) as where:
        assert "answered 302" in failure(where, Access(token_file=private(tmp_path / "t", "s3cret")))
    assert not asked


@pytest.mark.parametrize("body", [b"metrics 1\n", b"[]", b"{}", b"\xff"])
def test_what_is_no_page_is_refused(body: bytes) -> None:
    with serving(lambda _, __: (200, body)) as where:
        assert failure(where).endswith("/facts is no page of a tidelog node.")


def test_a_page_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "LARGEST_PAGE", 100)
    with serving(lambda _, __: (200, PAGE)) as where:
        assert "is no page" in failure(where)


def test_another_schema_is_refused() -> None:
    with serving(lambda _, __: (200, json.dumps({"schema": 99}).encode())) as where:
        assert "has schema 99 of the facts, and this tidelog reads 1" in failure(where)


def test_tls_trusts_the_named_authority_only(tmp_path: Path) -> None:
    authority = Authority("one")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(private(tmp_path / "node.pem", authority.issue("localhost").both))
    with serving(lambda _, __: (200, PAGE), context) as where:
        ca_file = private(tmp_path / "ca.pem", authority.pem)
        assert Reader(Access(ca_file=ca_file)).read(f"https://{where}")[0]["schema"] == 1
        assert "Name its authority: --ca-file FILE" in failure(f"https://{where}")
    with serving(lambda _, __: (200, PAGE)) as where:
        assert "TLS failed" in failure(f"https://{where}", Access(ca_file=ca_file))


def test_processes_that_share_an_address_give_a_page_each() -> None:
    together = json.dumps({"schema": 1, "missing": [3], "nodes": [page(1), page(2)]}).encode()
    with serving(lambda _, __: (200, together)) as where:
        assert [each["node"]["id"] for each in Reader(Access()).read(where)] == [1, 2]


def test_a_record_of_a_share_group_is_asked_for_by_name() -> None:
    asked: list[str] = []

    def answer(path: str, _: str | None) -> tuple[int, bytes]:
        asked.append(path)
        return 200, PAGE

    with serving(answer) as where:
        assert len(Reader(Access()).share_record(where, "a b&c", "t", 3, 17)) == 1
    assert asked == ["/facts/share-record?group=a+b%26c&topic=t&partition=3&offset=17"]
    with serving(lambda _, __: (403, b"This page needs DESCRIBE.\n")) as where, pytest.raises(CommandFailed, match="403"):
        Reader(Access()).share_record(where, "g", "t", 3, 17)
