"""Finds the class of a message. Modules are imported on first use, so that a start only loads what it needs."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

from tidelog.protocol.api_keys import API_FACTS, ApiFacts, ApiKey
from tidelog.protocol.record_types import (
    DATA_MODULES,
    GROUP_RECORD_TYPES,
    METADATA_RECORD_TYPES,
    SHARE_RECORD_TYPES,
    TRANSACTION_RECORD_TYPES,
)
from tidelog.protocol.structure import Message

__all__ = [
    "API_FACTS",
    "GROUP_RECORD_TYPES",
    "METADATA_RECORD_TYPES",
    "SHARE_RECORD_TYPES",
    "TRANSACTION_RECORD_TYPES",
    "ApiFacts",
    "ApiKey",
    "data_class",
    "request_class",
    "response_class",
]


def _class(module: str, name: str) -> Any:
    return getattr(import_module(f"tidelog.protocol.messages.{module}"), name)


@cache
def request_class(api_key: int) -> type[Message]:
    """The request class of an RPC. KeyError for an RPC that Kafka 4.4 does not have."""
    facts = API_FACTS[api_key]
    cls: type[Message] = _class(facts.module, f"{facts.name}Request")
    return cls


@cache
def response_class(api_key: int) -> type[Message]:
    """The response class of an RPC. KeyError for an RPC that Kafka 4.4 does not have."""
    facts = API_FACTS[api_key]
    cls: type[Message] = _class(facts.module, f"{facts.name}Response")
    return cls


@cache
def data_class(name: str) -> type[Message]:
    """The class of a record or other message that is not an RPC, by Kafka's name (``PartitionRecord``). KeyError when there is
    none."""
    cls: type[Message] = _class(DATA_MODULES[name], name)
    return cls
