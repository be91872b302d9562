"""Replays on a node: previewed, done, done again, and capped."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from tests.unit.cli.dead_letters.cluster import DLQ, committed, give_up, make_topics, run
from tests.unit.cli.running_node import running_node
from tests.unit.dead_letters.samples import headers
from tidelog.cli.admin_session import AdminSession
from tidelog.cli.dead_letters.sending import report_text
from tidelog.cli.tools.configs import command as configs
from tidelog.cli.tools.share_groups import command
from tidelog.dead_letters.planning import Outcome


def test_letters_go_back_once_and_are_shown_as_replayed(tmp_path: Path) -> None:
    with running_node(tmp_path) as address:
        make_topics(address)
        give_up(address, range(5))
        preview = run(address, "replay", DLQ)
        assert (preview["executed"], preview["replayed"], preview["read_uncommitted"]) == (False, 5, ["workers"])
        assert len(committed(address, "jobs")) == 5
        some = run(address, "replay", DLQ, "--key", "k3", "--execute")
        assert some["records"] == [{"group": "workers", "topic": "jobs", "partition": 1, "records": 1}]
        rest = run(address, "replay", DLQ, "--execute")
        assert (rest["replayed"], rest["left"]) == (4, {"done": 1})
        again = run(address, "replay", DLQ, "--execute")
        assert (again["replayed"], again["left"]) == (0, {"done": 5})
        found = committed(address, "jobs")
        assert [value for value, _ in found[5:]] == ["job 3", "job 0", "job 1", "job 2", "job 4"]
        assert found[5][1] == {
            "trace": "3",
            "__dlq.replay.count": "1",
            "__dlq.replay.group": "workers",
            "__dlq.replay.partition": "1",
            "__dlq.replay.offset": "3",
        }
        assert [row["replayed"] for row in run(address, "list", DLQ)] == [True] * 5
        shown = run(address, "show", f"{DLQ}:0:3")
        assert (shown["replayed"]["offset"], shown["replayed"]["replays"], shown["original"]["value"]) == (5, 1, "job 3")


def test_a_letter_without_a_copy_sends_the_record_back(tmp_path: Path) -> None:
    with running_node(tmp_path) as address:
        make_topics(address)
        give_up(address, range(2), copy=False)
        assert run(address, "replay", DLQ, "--execute")["replayed"] == 2
        assert [value for value, _ in committed(address, "jobs")] == ["job 0", "job 1"] * 2


def test_a_record_that_keeps_failing_is_capped(tmp_path: Path) -> None:
    from confluent_kafka import Producer

    with running_node(tmp_path) as address:
        make_topics(address)
        give_up(address, range(1))
        producer = Producer({"bootstrap.servers": address})
        place = 0
        for count in (1, 2):
            assert run(address, "replay", DLQ, "--execute", "--max-replays", "2")["replayed"] == 1
            found = committed(address, "jobs")
            assert found[-1][1]["__dlq.replay.count"] == str(count)
            shown = run(address, "show", f"{DLQ}:0:{count - 1}")
            place = shown["replayed"]["offset"]
            producer.produce(DLQ, "job 0", key="k0", headers=list(headers("jobs", 1, place)))
            assert producer.flush(30) == 0
        report = run(address, "replay", DLQ, "--execute", "--max-replays", "2")
        assert (report["replayed"], report["left"]) == (0, {"done": 2, "capped": 1})


def test_the_topic_may_be_that_of_the_group(tmp_path: Path) -> None:
    with running_node(tmp_path) as address:
        make_topics(address)
        give_up(address, range(1))
        runner = CliRunner()
        words = ["dead-letters", "list", "--group", "workers", "--bootstrap-server", address]
        assert "name the dead-letter topic" in runner.invoke(command, words).output
        change = ["--bootstrap-server", address, "--alter", "--group", "workers"]
        change += ["--add-config", f"errors.deadletterqueue.topic.name={DLQ}"]
        done = runner.invoke(configs, change)
        assert done.exit_code == 0, done.output
        lines = runner.invoke(command, words).stdout.splitlines()
        assert lines[0].split()[:3] == ["PARTITION", "OFFSET", "TIME"]
        assert lines[1].split()[4] == "jobs:1:0"


def test_a_report_says_what_was_left_and_why() -> None:
    report = {
        "topic": "dlq",
        "executed": False,
        "replayed": 2,
        "records": [{"group": "g", "topic": "t", "partition": 0, "records": 2}],
        "left": {"capped": 1, "refused": 1},
        "refused": [{"partition": 0, "offset": 7, "error": "too large"}],
        "read_uncommitted": ["g\x1b[2J"],
    }
    lines = list(report_text(report))
    assert lines[2:] == [
        "2 records would be replayed; --execute does it",
        f"1 not: {Outcome.CAPPED.value}",
        f"1 not: {Outcome.REFUSED.value}",
        "  dlq:0:7: too large",
        "These groups also get what a killed replay had written: g\\x1b[2J. Set their share.isolation.level to read_committed.",
    ]


def test_a_misspelled_topic_is_named_and_gets_no_journal(tmp_path: Path) -> None:
    with running_node(tmp_path) as address:
        make_topics(address)
        words = ["dead-letters", "replay", "dlq.job", "--execute", "--bootstrap-server", address]
        done = CliRunner().invoke(command, words)
        assert (done.exit_code, done.output) == (1, "Error: There is no topic dlq.job, or this client may not describe it.\n")
        with AdminSession(address) as session:
            assert "dlq.job.replayed" not in {topic.name for topic in session.metadata(None)}


def test_a_replay_that_cannot_go_on_fails_in_one_line(tmp_path: Path) -> None:
    own = tmp_path / "own.properties"
    own.write_text("transactional.id=mine\n")
    with running_node(tmp_path / "node") as address:
        make_topics(address)
        words = ["dead-letters", "replay", DLQ, "--execute", "--bootstrap-server", address, "--command-config", str(own)]
        done = CliRunner().invoke(command, words)
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert done.stderr.startswith("Error: transactional.id is tidelog-replay-dlq.jobs here")
