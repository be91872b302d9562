"""A real broker inside a test, in milliseconds.

    from tidelog.testing import Broker

    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

It speaks the wire protocol on a real port of this machine, so any client in any language works against it, and it keeps its data
in memory unless it is given a folder. ``SchemaRegistry`` stands beside it where clients serialize through one. The pytest
fixtures ``tidelog_broker`` (fresh for each test), ``tidelog_session_broker``, ``tidelog_tls_broker`` and
``tidelog_schema_registry`` come with the package. ``checker`` judges recorded histories, ``simulation`` runs clusters in virtual
time. Since 0.1. Guide: docs/guide/testing.md.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tidelog.testing.broker import Broker
from tidelog.testing.clock import Clock
from tidelog.testing.faults import Faults
from tidelog.testing.records import Message

if TYPE_CHECKING:
    from tidelog.testing import checker, simulation
    from tidelog.testing.permissions import allow, deny
    from tidelog.testing.schema_registry.server import SchemaRegistry

__all__ = ["Broker", "Clock", "Faults", "Message", "SchemaRegistry", "allow", "checker", "deny", "simulation"]


def __getattr__(name: str) -> Any:
    """Load what most test suites do not need when it is first used: the registry, ``checker``, ``simulation``, ACLs."""
    if name in {"checker", "simulation"}:
        return import_module(f"{__name__}.{name}")
    if name == "SchemaRegistry":
        from tidelog.testing.schema_registry.server import SchemaRegistry

        return SchemaRegistry
    if name in {"allow", "deny"}:
        return getattr(import_module(f"{__name__}.permissions"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
