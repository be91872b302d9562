"""``--filter`` of ``tidelog console-consumer``: the console's filter language (docs/guide/console.md) on consumed records.

Keys and values are seen as the console's decoders see them: JSON, MessagePack, text. Records in Avro are text here: their schemas
are not looked up.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.cli import refusal
from tidelog.cli.tools.consumed_record import Consumed

Wanted = Callable[[Consumed], bool]


def record_filter(text: str, now_ms: int) -> Wanted:
    """Whether a record fulfils the filter. A filter that cannot be used ends the tool, with the place of the mistake."""
    from tidelog.console.filters.evaluation import Part, Subject, compiled
    from tidelog.console.filters.tokens import FilterError
    from tidelog.console.payloads.decoding import whole_text

    try:
        test = compiled(text, now_ms)
    except FilterError as error:
        refusal.usage(f"--filter: {error.detail}, at character {error.at + 1}: {text}")

    def part(data: bytes | None) -> Part:
        return Part(lambda: whole_text(data), 0 if data is None else len(data))

    def wanted(record: Consumed) -> bool:
        headers = {name: part(value) for name, value in record.headers}
        return test(Subject(record.partition, record.offset, record.timestamp_ms, part(record.key), part(record.value), headers))

    return wanted
