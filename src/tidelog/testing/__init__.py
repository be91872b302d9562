"""A real broker inside a test, in milliseconds.

    from tidelog.testing import Broker

    with Broker() as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})

It speaks the wire protocol on a real port of this machine, so any client in any language works against it, and it keeps its data
in memory unless it is given a folder. The pytest fixtures ``tidelog_broker`` (fresh for each test) and ``tidelog_session_broker``
come with the package. Guide: docs/guide/testing.md.
"""

from tidelog.testing.broker import Broker
from tidelog.testing.faults import Faults
from tidelog.testing.records import Message

__all__ = ["Broker", "Faults", "Message"]
