from __future__ import annotations

import shlex
import subprocess

from tidelog.console.asking.commands import Commands, operation_word
from tidelog.model.acl import AccessControlEntry, AclOperation, PatternType, PermissionType, ResourceType

COMMANDS = Commands("localhost:9092")


def test_names_with_blanks_and_quotes_stay_one_word() -> None:
    line = Commands("h:1", "my file").delete_group("classic", "it's $HOME; rm")
    assert shlex.split(line) == [
        "tidelog",
        "consumer-groups",
        "--bootstrap-server",
        "h:1",
        "--command-config",
        "my file",
        "--delete",
        "--group",
        "it's $HOME; rm",
    ]


def test_each_type_of_group_has_its_tool_and_its_flags() -> None:
    assert "consumer-groups" in COMMANDS.reset("consumer", "g", ["orders:0,1"], ["--to-earliest"])
    assert shlex.split(COMMANDS.reset("streams", "g", [], ["--to-latest"]))[4:] == [
        "--reset-offsets",
        "--group",
        "g",
        "--all-input-topics",
        "--to-latest",
        "--execute",
    ]
    assert "share-groups" in COMMANDS.forget_offsets("share", "g", "orders")


def test_settings_with_commas_stand_in_brackets_and_others_have_no_command() -> None:
    line = COMMANDS.alter_topic("t", {"cleanup.policy": "compact,delete", "retention.ms": "1"}, ["segment.ms"])
    assert line is not None
    assert shlex.split(line)[-3:] == ["cleanup.policy=[compact,delete],retention.ms=1", "--delete-config", "segment.ms"]
    assert COMMANDS.alter_topic("t", {"x": "a=b"}, []) is None


def test_records_of_several_lines_have_no_command() -> None:
    assert COMMANDS.produce("t", "a\nb") is None
    assert (COMMANDS.produce("t", "it's") or "").endswith("console-producer --bootstrap-server localhost:9092 --topic t")


def test_an_acl_as_the_tool_takes_it() -> None:
    entry = AccessControlEntry(
        ResourceType.TOPIC, "orders", PatternType.PREFIXED, "User:ann", "*", AclOperation.DESCRIBE_CONFIGS, PermissionType.DENY
    )
    words = shlex.split(COMMANDS.acl("--remove", entry) or "")
    assert words[4:] == [
        "--remove",
        "--topic",
        "orders",
        "--resource-pattern-type",
        "prefixed",
        "--deny-principal",
        "User:ann",
        "--deny-host",
        "*",
        "--operation",
        "DescribeConfigs",
        "--force",
    ]
    user = AccessControlEntry(ResourceType.USER, "x", PatternType.LITERAL, "User:a", "*", AclOperation.ALL, PermissionType.ALLOW)
    assert COMMANDS.acl("--add", user) is None
    assert operation_word(AclOperation.READ) == "Read"


def test_control_characters_do_not_reach_a_terminal() -> None:
    """An escape sequence would end a bracketed paste, and a line end would run what follows."""
    line = Commands("h:1").delete_group("classic", "a'\x1b[201~\nrm -rf ~ \\ \x9b\u202e")
    assert line.isprintable()
    found = subprocess.run(["bash", "-c", f"printf %s {line.rpartition('--group ')[2]}"], capture_output=True, check=True)
    assert found.stdout.decode() == "a'\x1b[201~\nrm -rf ~ \\ \x9b\u202e"
    assert COMMANDS.produce("t", "\x1b[31m") is None
