"""``tidelog log-dirs``, also installed as ``kafka-log-dirs``: lists the partitions in the brokers' log dirs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from tidelog.cli import entry, refusal
from tidelog.cli.connection_options import bootstrap_option, command_config_option
from tidelog.cli.refusal import CommandFailed

if TYPE_CHECKING:
    from tidelog.cli.admin_session import AdminSession


@click.command("log-dirs", context_settings={"help_option_names": ["-h", "--help"]})
@bootstrap_option
@command_config_option
@click.option("--describe", is_flag=True, help="Describe the log dirs.")
@click.option("--broker-list", default="", metavar="0,1", help="The brokers. [all]")
@click.option("--topic-list", default="", metavar="A,B", help="The topics. [all]")
def command(bootstrap_server: str | None, command_config: str | None, describe: bool, broker_list: str, topic_list: str) -> None:
    """Show which partitions lie in which log dir, and how large they are."""
    from tidelog.cli.admin_session import AdminSession

    bootstrap = refusal.required(bootstrap_server)
    if not describe:
        refusal.usage('Missing required argument "[describe]"')
    topics = [name.strip() for name in topic_list.split(",") if name.strip()]
    with refusal.one_line("ERROR: "), AdminSession(bootstrap, command_config) as session:
        brokers = _brokers(session, broker_list)
        names = ",".join(map(str, brokers))
        print("Querying brokers for log directories information")
        rows = [{"broker": broker, "logDirs": _log_dirs(session, broker, topics)} for broker in brokers]
        print(f"Received log directory information from brokers {names}")
        print(json.dumps({"brokers": rows, "version": 1}, separators=(",", ":")))


def _brokers(session: AdminSession, text: str) -> list[int]:
    there = list(session.brokers())
    words = [word.strip() for word in text.split(",") if word.strip()]
    if not all(word.isdecimal() for word in words):
        raise CommandFailed(f"--broker-list {text}: brokers are numbers, joined by commas")
    missing = [word for word in words if int(word) not in there]
    if missing:
        known = ",".join(map(str, there))
        raise CommandFailed(f"--broker-list names brokers that the cluster does not have: {','.join(missing)}. It has {known}")
    return [int(word) for word in words] or there


def _log_dirs(session: AdminSession, broker: int, topics: list[str]) -> list[dict[str, Any]]:
    from tidelog.model.errors import ErrorCode
    from tidelog.protocol.messages.describe_log_dirs import DescribeLogDirsRequest

    response = session.connection(broker).ask(DescribeLogDirsRequest(topics=None))
    refusal.check(response.error_code)
    return [
        {
            "partitions": [
                {
                    "partition": f"{topic.name}-{part.partition_index}",
                    "size": part.partition_size,
                    "offsetLag": part.offset_lag,
                    "isFuture": part.is_future_key,
                }
                for topic in result.topics
                if not topics or topic.name in topics
                for part in topic.partitions
            ],
            "error": refusal.error_text(result.error_code) if result.error_code != ErrorCode.NONE else None,
            "logDir": result.log_dir,
        }
        for result in response.results
    ]


def main() -> None:
    """``kafka-log-dirs``."""
    entry.run(command, "kafka-log-dirs")


if __name__ == "__main__":
    main()
