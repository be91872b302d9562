"""``tidelog dump-log``, also installed as ``kafka-dump-log``: prints log, index and snapshot files in the format of Kafka's
DumpLogSegments.

Indexes are compared with the log beside them; mismatches are listed at the end, and the exit code is 1.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import click

from tidelog.cli import entry, refusal
from tidelog.cli.tools import dump_records
from tidelog.cli.tools.dump_indexes import Problems, dump_offset_index, dump_snapshot, dump_time_index, dump_transaction_index
from tidelog.cli.tools.dump_records import DECODER_CLASSES, DECODER_PACKAGE, Decoder
from tidelog.raft.snapshots import parse_file_name
from tidelog.records.batch import HEADER_SIZE, BatchHeader, CorruptBatch, crc_is_valid, read_header
from tidelog.records.compression import Codec
from tidelog.records.record import Record, iter_records

LENGTH_PREFIX = 12
MAX_BATCH = 1 << 31


@dataclass(frozen=True, slots=True)
class What:
    """How much of a log is printed."""

    decoder: Decoder
    data: bool
    deep: bool
    skip_metadata: bool
    max_bytes: int
    verify_only: bool
    sanity_only: bool


_KNOWN = ", ".join(DECODER_CLASSES)


def _decoded_as(ctx: click.Context, option: click.Parameter, value: str | None) -> Callable[[bytes], str] | None:
    if value is None:
        return None
    found = DECODER_CLASSES.get(value.removeprefix(DECODER_PACKAGE))
    if found is None:
        refusal.usage(
            f"{option.opts[0]} {value} is a Java class, which is not loaded. There are {_KNOWN}; other bytes are shown by "
            "kafka-dump-log of Apache Kafka, which reads the same files."
        )
    return found


def _no_tiers(ctx: click.Context, option: click.Parameter, value: bool) -> None:
    if value:
        refusal.usage(
            "--remote-log-metadata-decoder reads what brokers with tiered storage write, which tidelog does not serve. "
            "kafka-dump-log of Apache Kafka reads the same files."
        )


@click.command("dump-log", context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--files", required=True, metavar="FILE,...", help="Logs, indexes and snapshots, separated by commas.")
@click.option("--print-data-log", is_flag=True, help="Print the records' keys and values.")
@click.option("--deep-iteration", is_flag=True, help="Print a line for each record, compressed ones too.")
@click.option("--skip-record-metadata", is_flag=True, help="Print of each record only key and value.")
@click.option("--cluster-metadata-decoder", "decoder", flag_value="metadata", help="Records of __cluster_metadata.")
@click.option("--offsets-decoder", "decoder", flag_value="offsets", help="Records of __consumer_offsets.")
@click.option("--transaction-log-decoder", "decoder", flag_value="transactions", help="Records of __transaction_state.")
@click.option("--share-group-state-decoder", "decoder", flag_value="share", help="Records of __share_group_state.")
@click.option(
    "--key-decoder-class", metavar="CLASS", callback=_decoded_as, help="How keys are shown: a name of --value-decoder-class."
)
@click.option("--value-decoder-class", metavar="CLASS", callback=_decoded_as, help=f"How values are shown: {_KNOWN}.")
@click.option("--remote-log-metadata-decoder", is_flag=True, hidden=True, callback=_no_tiers, expose_value=False)
@click.option("--max-message-size", type=click.IntRange(min=0), hidden=True, expose_value=False)
@click.option("--max-bytes", type=click.IntRange(min=0), default=MAX_BATCH - 1, help="Stop after so many bytes of a log.")
@click.option("--verify-index-only", is_flag=True, help="Compare indexes with their logs, print only what is wrong.")
@click.option("--index-sanity-check", is_flag=True, help="Only the check of indexes that a broker makes at its start.")
def command(
    files: str,
    print_data_log: bool,
    deep_iteration: bool,
    skip_record_metadata: bool,
    decoder: str | None,
    key_decoder_class: Callable[[bytes], str] | None,
    value_decoder_class: Callable[[bytes], str] | None,
    max_bytes: int,
    verify_index_only: bool,
    index_sanity_check: bool,
) -> None:
    """Print the contents of log, index and snapshot files."""
    data = bool(print_data_log or decoder or key_decoder_class or value_decoder_class)
    as_text = dump_records.by_class(key_decoder_class or dump_records.utf8, value_decoder_class or dump_records.utf8)
    what = What(
        decoder=DECODERS[decoder] if decoder is not None else as_text,
        data=data,
        deep=deep_iteration or data,
        skip_metadata=skip_record_metadata,
        max_bytes=max_bytes,
        verify_only=verify_index_only,
        sanity_only=index_sanity_check,
    )
    problems = Problems()
    unread = False
    for path in filter(None, (part.strip() for part in files.split(","))):
        try:
            _dump(path, what, problems)
        except BrokenPipeError:
            raise  # the reader of our output closed it
        except OSError as error:
            unread = True
            sys.stdout.flush()
            print(f"{path} cannot be read: {error.strerror or error}", file=sys.stderr)
    problems.print()
    sys.exit(1 if problems or unread else 0)


DECODERS: dict[str, Decoder] = {
    "metadata": dump_records.cluster_metadata,
    "offsets": dump_records.OFFSETS,
    "transactions": dump_records.TRANSACTIONS,
    "share": dump_records.SHARE_STATE,
}


def _dump(path: str, what: What, problems: Problems) -> None:
    os.stat(path)
    print(f"Dumping {path}")
    suffix = os.path.splitext(path)[1]
    if suffix in {".log", ".checkpoint"}:
        _dump_log(path, what, problems)
    elif suffix == ".index":
        dump_offset_index(path, problems, verify_only=what.verify_only, sanity_only=what.sanity_only)
    elif suffix == ".timeindex":
        dump_time_index(path, problems, verify_only=what.verify_only, sanity_only=what.sanity_only)
    elif suffix == ".txnindex":
        dump_transaction_index(path, problems)
    elif suffix == ".snapshot":
        dump_snapshot(path, problems)
    else:
        print(f"Ignoring unknown file {path}", file=sys.stderr)


def _dump_log(path: str, what: What, problems: Problems) -> None:
    name = os.path.basename(path)
    snapshot = parse_file_name(name)
    if snapshot is not None:
        print(f"Snapshot end offset: {snapshot.offset}, epoch: {snapshot.epoch}")
    elif name.split(".")[0].isdecimal():
        print(f"Log starting offset: {int(name.split('.')[0])}")
    valid = 0
    for position, header, data in _batches(path, what.max_bytes, problems):
        _print_batch(position, header, data, what, problems)
        valid = position + header.size
    left = os.path.getsize(path) - valid
    if left > 0 and valid < what.max_bytes:
        print(f"The last {left} bytes of {name} are not a whole valid batch")


def _batches(path: str, max_bytes: int, problems: Problems) -> Iterator[tuple[int, BatchHeader, memoryview]]:
    """Position, header and bytes of each batch, until the end or the first malformed batch."""
    position = 0
    end = os.path.getsize(path)
    with open(path, "rb") as file:
        while position < max_bytes:
            start = file.read(HEADER_SIZE)
            if len(start) < HEADER_SIZE:
                return
            size = int.from_bytes(start[8:12], "big", signed=True) + LENGTH_PREFIX
            if size < HEADER_SIZE:
                problems.add(path, f"the batch at position {position} claims a size of {size} bytes, less than its header")
                return
            if position + size > end:
                return
            data = memoryview(start + file.read(size - HEADER_SIZE))
            try:
                header = read_header(data)
            except CorruptBatch as error:
                problems.add(path, f"position {position}: {error}")
                return
            yield position, header, data
            position += size


def _print_batch(position: int, header: BatchHeader, data: memoryview, what: What, problems: Problems) -> None:
    horizon = header.delete_horizon_ms
    stamp = "LogAppendTime" if header.log_append_time else "CreateTime"
    valid = crc_is_valid(data, header)
    print(
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.records_count}"
        f" baseSequence: {header.base_sequence} lastSequence: {header.last_sequence} producerId: {header.producer_id}"
        f" producerEpoch: {header.producer_epoch} partitionLeaderEpoch: {header.leader_epoch}"
        f" isTransactional: {_bool(header.is_transactional)} isControl: {_bool(header.is_control)}"
        f" deleteHorizonMs: {'OptionalLong.empty' if horizon is None else f'OptionalLong[{horizon}]'}"
        f" position: {position} {stamp}: {header.max_timestamp} size: {header.size} magic: {header.magic}"
        f" compresscodec: {_codec_name(header.codec)} crc: {header.crc} isvalid: {_bool(valid)}"
    )
    if not what.deep or not valid:
        return
    try:
        for index, record in enumerate(iter_records(data, header)):
            _print_record(header, index, record, stamp, what)
    except CorruptBatch as error:
        problems.add(f"batch at offset {header.base_offset}", str(error))


def _print_record(header: BatchHeader, index: int, record: Record, stamp: str, what: What) -> None:
    parts = ["|"]
    if not what.skip_metadata:
        sequence = -1 if header.base_sequence < 0 else (header.base_sequence + record.offset - header.base_offset) & 0x7FFFFFFF
        names = ",".join(name if isinstance(name, str) else name.decode("utf-8", "replace") for name, _ in record.headers)
        parts.append(
            f"offset: {record.offset} {stamp}: {record.timestamp} keySize: {_size(record.key)} valueSize: {_size(record.value)}"
            f" sequence: {sequence} headerKeys: [{names}]"
        )
    if header.is_control:
        if what.skip_metadata:
            return
        parts.append(dump_records.control(record))
    elif what.data:
        key, payload = what.decoder(record.key, record.value)
        if key is not None:
            parts.append(f"key: {key}")
        if payload is not None:
            parts.append(f"payload: {payload}")
    print(" ".join(parts))


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def _bool(value: bool) -> str:
    return "true" if value else "false"


def _codec_name(codec: int) -> str:
    try:
        return Codec(codec).name.lower()
    except ValueError:
        return f"unknown ({codec})"


def main() -> None:
    """``kafka-dump-log``."""
    entry.run(command, "kafka-dump-log")


if __name__ == "__main__":
    main()
