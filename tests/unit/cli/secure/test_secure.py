"""``tidelog secure`` as it is typed."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from tidelog.cli.secure.secure import command


def run(*words: str) -> Result:
    return CliRunner().invoke(command, list(words))


def test_the_folder_is_made_and_the_output_names_what_to_run_next(tmp_path: Path) -> None:
    folder = tmp_path / "secured"
    result = run(str(folder), "--nodes", "1", "--port", "19092", "--admin", "root")
    assert result.exit_code == 0, result.stderr
    assert f"{folder} holds a secured cluster of 1 node:" in result.stdout
    assert f"tidelog cluster --dir {folder}\n" in result.stdout
    assert f"--bootstrap-server localhost:19092 --command-config {folder}/admin.properties" in result.stdout
    password = (folder / "admin.conf").read_text().partition("sasl.password=")[2].split()[0]
    assert password not in result.stdout


def test_flags_may_come_first(tmp_path: Path) -> None:
    assert run("--nodes", "1", str(tmp_path / "secured")).exit_code == 0
    assert (tmp_path / "secured" / "node-1").is_dir()


def test_machines_of_their_own_get_their_folders(tmp_path: Path) -> None:
    hosts = [word for name in ("a", "b", "c") for word in ("--host", f"{name}.example.com")]
    result = run(str(tmp_path / "secured"), *hosts)
    assert "Copy each folder node-N to its machine, to the same path" in result.stdout
    assert f"tidelog start {tmp_path}/secured/node-3/server.properties" in result.stdout
    assert not (tmp_path / "secured" / "cluster.json").exists()
    assert "listeners=CLIENTS://b.example.com:9092" in (tmp_path / "secured" / "node-2" / "server.properties").read_text()


def test_a_refusal_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    result = run(str(tmp_path))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"tidelog: {tmp_path} is there already")
    assert result.stderr.count("\n") == 1


def test_rotate_says_for_which_names_and_until_when(tmp_path: Path) -> None:
    folder = str(tmp_path / "secured")
    run(folder, "--nodes", "2")
    result = run("rotate", folder, "--days", "10")
    assert result.exit_code == 0, result.stderr
    assert "node-2 has a new certificate for CN=node-2, valid until 20" in result.stdout
    assert run("rotate", str(tmp_path / "other")).exit_code == 1


def test_the_help_shows_the_flags_and_rotate() -> None:
    text = run("--help").stdout
    assert all(word in text for word in ("--nodes", "--host", "--port", "--admin", "--days", "rotate"))
