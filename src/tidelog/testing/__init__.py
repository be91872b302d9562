"""A real broker inside a test, in milliseconds.

    from tidelog.testing import Broker

    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

It speaks the wire protocol on a real port of this machine, so any client in any language works against it, and it keeps its data
in memory unless it is given a folder. ``SchemaRegistry`` stands beside it where clients serialize through one. The pytest
fixtures ``tidelog_broker`` (fresh for each test), ``tidelog_session_broker`` and ``tidelog_schema_registry`` come with the
package. Guide: docs/guide/testing.md.
"""

from typing import TYPE_CHECKING, Any

from tidelog.testing.broker import Broker
from tidelog.testing.faults import Faults
from tidelog.testing.records import Message

if TYPE_CHECKING:
    from tidelog.testing.schema_registry.server import SchemaRegistry

__all__ = ["Broker", "Faults", "Message", "SchemaRegistry"]


def __getattr__(name: str) -> Any:
    """Imported when asked for: most test suites have no registry, and need not wait for its HTTP server's modules."""
    if name == "SchemaRegistry":
        from tidelog.testing.schema_registry.server import SchemaRegistry

        return SchemaRegistry
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
