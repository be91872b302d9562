from __future__ import annotations

import gzip
from pathlib import Path

from tidelog.console.web.static_files import StaticFiles, kind_of


def test_the_page_gets_its_base_and_answers_every_path_of_the_front(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text('<head><base href="/"></head>')
    files = StaticFiles(tmp_path, "/x/")
    for path in ("", "c/main/topics/orders", "index.html", "../../etc/passwd", "%2e%2e/secret"):
        response = files.response(path, accepts_gzip=False)
        assert (response.status_code, response.body) == (200, b'<head><base href="/x/"></head>'), path
        assert response.headers["cache-control"] == "no-store"


def test_a_program_that_asks_for_a_wrong_path_gets_no_page(tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text("page")
    files = StaticFiles(tmp_path)
    for path in ("api", "api/session", "api/v2/clusters"):
        response = files.response(path, accepts_gzip=False)
        assert (response.status_code, response.media_type, b"api/v1" in bytes(response.body)) == (404, "application/json", True)
    assert files.response("apis", accepts_gzip=False).status_code == 200


def test_assets_are_kept_for_ever_only_with_a_hash_in_their_names(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("x")
    (tmp_path / "assets" / "main-ABCD1234.js").write_text("let a = 1;" * 100)
    (tmp_path / "favicon.svg").write_text("<svg/>")
    (tmp_path / ".hidden").write_text("secret")
    files = StaticFiles(tmp_path)
    hashed = files.response("assets/main-ABCD1234.js", accepts_gzip=True)
    assert "immutable" in hashed.headers["cache-control"]
    assert hashed.headers["content-type"].startswith("text/javascript")
    assert gzip.decompress(bytes(hashed.body)).startswith(b"let a")
    assert files.response("favicon.svg", accepts_gzip=True).headers["cache-control"] == "no-store"
    assert files.response("assets/other.js", accepts_gzip=True).status_code == 404
    assert files.names == {"index.html", "assets/main-ABCD1234.js", "favicon.svg"}


def test_without_a_built_front_the_page_says_what_to_do(tmp_path: Path) -> None:
    files = StaticFiles(tmp_path / "none")
    assert b"not built" in bytes(files.response("", accepts_gzip=False).body)
    assert files.response("c/main", accepts_gzip=False).status_code == 404


def test_types() -> None:
    assert kind_of("a.css") == "text/css; charset=utf-8"
    assert kind_of("a.png") == "image/png"
    assert kind_of("a") == "application/octet-stream"
