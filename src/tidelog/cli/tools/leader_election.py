"""``tidelog leader-election``, also installed as ``kafka-leader-election``: triggers leader elections."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli import entry, refusal
from tidelog.cli.connection_options import bootstrap_option, command_config_option
from tidelog.cli.refusal import CommandFailed

if TYPE_CHECKING:
    from tidelog.cli.admin_session import AdminSession, Partition

TYPES = {"PREFERRED": 0, "UNCLEAN": 1}
FORM = '{"partitions": [{"topic": "foo", "partition": 1}]}'


@click.command("leader-election", context_settings={"help_option_names": ["-h", "--help"]})
@refusal.zookeeper_option
@bootstrap_option
@command_config_option
@click.option("--admin.config", "admin_config", type=click.Path(exists=True, dir_okay=False), hidden=True)
@click.option(
    "--election-type",
    type=click.Choice(list(TYPES), case_sensitive=False),
    help="PREFERRED: the first replica, if another leads. UNCLEAN: any, if there is no leader; may lose records. Required.",
)
@click.option("--topic", help="The topic, with --partition.")
@click.option("--partition", type=int, help="The partition, with --topic.")
@click.option("--all-topic-partitions", is_flag=True, help="All partitions of all topics.")
@click.option("--path-to-json-file", type=click.Path(exists=True, dir_okay=False), help=f"Partitions in a file: {FORM}")
def command(
    bootstrap_server: str | None,
    command_config: str | None,
    admin_config: str | None,
    election_type: str | None,
    topic: str | None,
    partition: int | None,
    all_topic_partitions: bool,
    path_to_json_file: str | None,
) -> None:
    """Elect leaders of partitions."""
    from tidelog.cli.admin_session import AdminSession

    bootstrap = refusal.required(bootstrap_server)
    if election_type is None:
        refusal.usage("Missing required option(s): election-type")
    if sum([topic is not None, all_topic_partitions, path_to_json_file is not None]) != 1:
        refusal.usage("Say which partitions with one of --topic, --all-topic-partitions and --path-to-json-file")
    if topic is None and partition is not None:
        refusal.usage("Option partition is only allowed if topic is used")
    if topic is not None and partition is None:
        refusal.usage("Missing required option(s): partition")
    if admin_config is not None:
        refusal.deprecated("--admin.config", "--command-config")
    with refusal.one_line(""), AdminSession(bootstrap, command_config or admin_config) as session:
        wanted: list[Partition] | None = None
        if path_to_json_file is not None:
            wanted = partitions_in(refusal.text_of(path_to_json_file))
        elif topic is not None and partition is not None:
            wanted = [(topic, partition)]
        failed = elect(session, election_type.upper(), wanted)
        if failed:
            raise CommandFailed(f"{failed} partition(s) kept the leader they had; the lines above say why")


def partitions_in(text: str) -> list[Partition]:
    """The partitions in a file. CommandFailed when it is malformed or names one twice."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise CommandFailed(f"Replica election data is empty, or no JSON of the form {FORM}: {error}") from error
    if not isinstance(document, dict) or "partitions" not in document:
        raise CommandFailed('The file has no list "partitions": write {"partitions": [{"topic": "t", "partition": 0}]}')
    try:
        found = [(str(row["topic"]), int(row["partition"])) for row in document["partitions"]]
    except (KeyError, TypeError, ValueError) as error:
        raise CommandFailed(f"Replica election data is not of the form {FORM}: {error!r}") from error
    twice = [f"{topic}-{index}" for topic, index in sorted(set(found)) if found.count((topic, index)) > 1]
    if twice:
        raise CommandFailed(f"The file names these partitions more than once: {', '.join(twice)}")
    return found


def elect(session: AdminSession, kind: str, wanted: list[Partition] | None, *, say: bool = True) -> int:
    """Elects leaders for these partitions, or all. Returns how many failed. ``say``: print what Kafka's tool prints."""
    from tidelog.model.errors import ErrorCode
    from tidelog.protocol.messages.elect_leaders import ElectLeadersRequest, TopicPartitions

    topics: dict[str, list[int]] = {}
    for topic, index in wanted or []:
        topics.setdefault(topic, []).append(index)
    asked = None if wanted is None else [TopicPartitions(topic=name, partitions=parts) for name, parts in topics.items()]
    response = session.ask(ElectLeadersRequest(election_type=TYPES[kind], topic_partitions=asked, timeout_ms=session.timeout_ms))
    refusal.check(response.error_code)
    results: dict[Partition, Any] = {
        (topic.topic, part.partition_id): part for topic in response.replica_election_results for part in topic.partition_result
    }
    elected = [f"{topic}-{index}" for (topic, index), part in sorted(results.items()) if part.error_code == ErrorCode.NONE]
    there = [
        f"{topic}-{index}" for (topic, index), part in sorted(results.items()) if part.error_code == ErrorCode.ELECTION_NOT_NEEDED
    ]
    failed = {
        partition: part
        for partition, part in sorted(results.items())
        if part.error_code not in {ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED}
    }
    if say:
        if elected:
            print(f"Successfully completed leader election ({kind}) for partitions {', '.join(elected)}")
        if there:
            print(f"Valid replica already elected for partitions {', '.join(there)}")
        for (topic, index), part in failed.items():
            text = refusal.error_text(part.error_code, part.error_message)
            print(f"Error: {topic}-{index} has no new leader ({kind}): {text}")
        sys.stdout.flush()
    return len(failed)


def main() -> None:
    """``kafka-leader-election``."""
    entry.run(command, "kafka-leader-election")


if __name__ == "__main__":
    main()
