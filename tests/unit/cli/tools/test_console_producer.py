"""The producer's settings, from flags, files and properties."""

from click.testing import CliRunner

from tidelog.cli.tools.console_producer import command, settings

FLAGS = {parameter.name: None for parameter in command.params} | {"producer_property": (), "command_property": ()}
FLAGS["bootstrap_server"] = "b:1"


def test_keys_are_partitioned_as_java_does_and_duplicates_are_ruled_out():
    made = settings(FLAGS)
    assert (made["partitioner"], made["enable.idempotence"], made["acks"]) == ("murmur2_random", "true", "-1")


def test_idempotence_gives_way_to_weaker_acks():
    assert "enable.idempotence" not in settings(FLAGS | {"producer_property": ("acks=1",)})
    assert "enable.idempotence" not in settings(FLAGS | {"request_required_acks": "0"})


def test_flags_win_over_properties_and_the_old_name_of_the_batch_size_over_the_new():
    made = settings(FLAGS | {"command_property": ("linger.ms=5", "batch.size=1"), "timeout": 9, "batch_size": 2})
    assert (made["linger.ms"], made["batch.size"]) == ("9", "2")
    assert settings(FLAGS | {"batch_size": 2, "max_partition_memory_bytes": 3})["batch.size"] == "3"


def test_old_and_new_names_are_not_mixed():
    words = ["--bootstrap-server", "b:1", "--topic", "t", "--property", "a=b", "--reader-property", "a=b"]
    assert "cannot be specified together" in CliRunner().invoke(command, words).output


def test_where_no_broker_answers_it_ends_at_once():
    args = ["--bootstrap-server", "127.0.0.1:1", "--topic", "t"]
    result = CliRunner().invoke(command, args, input="a\n")
    assert result.stderr == "No broker answers at 127.0.0.1:1 (Connection refused). Is it running, and listening there?\n"
    assert result.exit_code == 1
