from __future__ import annotations

from click.testing import CliRunner

from tidelog.cli.tools.random_uuid import command
from tidelog.model.ids import uuid_from_text


def test_every_id_is_a_new_one() -> None:
    ids = {CliRunner().invoke(command).stdout.strip() for _ in range(10)}
    assert len(ids) == 10
    assert all(len(uuid_from_text(text)) == 16 for text in ids)
