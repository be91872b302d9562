"""``tidelog delete-records``, also installed as ``kafka-delete-records``: deletes records below the offsets in a JSON file."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import click

from tidelog.cli import entry, refusal
from tidelog.cli.connection_options import bootstrap_option, command_config_option
from tidelog.cli.refusal import CommandFailed

if TYPE_CHECKING:
    from tidelog.cli.admin_session import AdminSession, Partition

FORM = '{"partitions": [{"topic": "foo", "partition": 1, "offset": 1}], "version": 1}'


@click.command("delete-records", context_settings={"help_option_names": ["-h", "--help"]})
@bootstrap_option
@click.option("--offset-json-file", type=click.Path(exists=True, dir_okay=False), help=f"Required: {FORM}")
@command_config_option
def command(bootstrap_server: str | None, offset_json_file: str | None, command_config: str | None) -> None:
    """Delete the records of partitions that lie before an offset; -1 is the high watermark."""
    from tidelog.cli.admin_session import AdminSession

    bootstrap = refusal.required(bootstrap_server)
    if offset_json_file is None:
        refusal.usage('Missing required argument "[offset-json-file]"')
    with refusal.one_line("Error: "):
        wanted = offsets(refusal.text_of(offset_json_file))
        with AdminSession(bootstrap, command_config) as session:
            good = _delete(session, wanted)
    sys.exit(0 if good else 1)


def offsets(text: str) -> dict[Partition, int]:
    """The offset for each partition in the file's text. CommandFailed when it is malformed."""
    try:
        document = json.loads(text)
        if document.get("version", 1) != 1:
            raise CommandFailed(f"Not supported version field value {document['version']}; the file is of version 1")
        rows = [(str(row["topic"]), int(row["partition"]), int(row["offset"])) for row in document["partitions"]]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandFailed(f"The offset json file is not of the form {FORM}: {error!r}") from error
    result = {(topic, partition): offset for topic, partition, offset in rows}
    if len(result) < len(rows):
        names = [f"{topic}-{partition}" for topic, partition, _ in rows]
        twice = ", ".join(sorted({name for name in names if names.count(name) > 1}))
        raise CommandFailed(f"The offset file names these partitions more than once: {twice}")
    return result


def _delete(session: AdminSession, wanted: dict[Partition, int]) -> bool:
    """Sends one request per leader; returns whether all succeeded."""
    from tidelog.model.errors import ErrorCode
    from tidelog.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic

    print("Executing records delete operation")
    leaders = session.leaders(topic for topic, _ in wanted)
    by_leader: dict[int, dict[str, list[DeleteRecordsPartition]]] = {}
    for (topic, index), offset in wanted.items():
        if (topic, index) in leaders:
            part = DeleteRecordsPartition(partition_index=index, offset=offset)
            by_leader.setdefault(leaders[topic, index], {}).setdefault(topic, []).append(part)
    lines = {
        partition: f"error: {refusal.error_text(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)}"
        for partition in wanted
        if partition not in leaders
    }
    good = not lines
    for leader, topics in by_leader.items():
        asked = [DeleteRecordsTopic(name=name, partitions=parts) for name, parts in topics.items()]
        response = session.connection(leader).ask(DeleteRecordsRequest(topics=asked, timeout_ms=session.timeout_ms))
        for topic in response.topics:
            for part in topic.partitions:
                failed = part.error_code != ErrorCode.NONE
                good = good and not failed
                low = f"low_watermark: {part.low_watermark}"
                lines[topic.name, part.partition_index] = f"error: {refusal.error_text(part.error_code)}" if failed else low
    print("Records delete operation completed:")
    for (name, index), line in sorted(lines.items()):
        print(f"partition: {name}-{index}\t{line}")
    return good


def main() -> None:
    """``kafka-delete-records``."""
    entry.run(command, "kafka-delete-records")


if __name__ == "__main__":
    main()
