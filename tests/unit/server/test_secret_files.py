from __future__ import annotations

from pathlib import Path

import pytest

from tidelog.server.secret_files import readable_by_others, warn_of_readers


@pytest.mark.parametrize(("mode", "open_to_others"), [(0o600, False), (0o640, False), (0o604, True), (0o644, True)])
def test_a_secret_that_every_user_can_read_is_named(
    tmp_path: Path, mode: int, open_to_others: bool, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "secret"
    path.write_text("x")
    path.chmod(mode)
    assert readable_by_others(str(path)) is open_to_others
    warn_of_readers(str(path))
    assert (f"chmod o-r {path}" in caplog.text) is open_to_others


def test_a_file_that_is_missing_is_no_secret_of_anyones() -> None:
    assert not readable_by_others("/no/such/file")
