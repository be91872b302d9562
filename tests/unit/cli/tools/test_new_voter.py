"""A controller that shall vote is read from its own files."""

from pathlib import Path

import pytest

from tidelog.cli.refusal import CommandFailed
from tidelog.cli.tools.new_voter import read_voter
from tidelog.model.ids import uuid_from_text

DIRECTORY = "OInUgtZqh0v3DS9H1ayyFw"


def files(tmp_path: Path, meta: str | None, roles: str = "controller") -> str:
    data = tmp_path / "data"
    data.mkdir()
    if meta is not None:
        (data / "meta.properties").write_text(meta)
    path = tmp_path / "server.properties"
    listeners = "CONTROLLER://:9093" if roles == "controller" else "PLAINTEXT://:9092"
    path.write_text(
        f"process.roles={roles}\nnode.id=4\nlisteners={listeners}\ncontroller.listener.names=CONTROLLER\nlog.dirs={data}\n"
        "controller.quorum.bootstrap.servers=localhost:9094\n"
    )
    return str(path)


def test_id_directory_and_endpoints_are_found(tmp_path: Path) -> None:
    voter = read_voter(files(tmp_path, f"version=1\ncluster.id=abc\nnode.id=4\ndirectory.id={DIRECTORY}\n"))
    assert (voter.voter_id, voter.directory_id) == (4, uuid_from_text(DIRECTORY))
    assert [(point.name, point.host, point.port) for point in voter.endpoints] == [("CONTROLLER", "localhost", 9093)]


@pytest.mark.parametrize(
    ("meta", "roles", "says"),
    [
        (None, "controller", "is not formatted"),
        ("version=1\ncluster.id=abc\nnode.id=4\n", "controller", "has no directory.id"),
        (None, "broker", "describes no controller"),
    ],
)
def test_what_can_be_no_voter_is_told(tmp_path: Path, meta: str | None, roles: str, says: str) -> None:
    with pytest.raises(CommandFailed, match=says):
        read_voter(files(tmp_path, meta, roles))
