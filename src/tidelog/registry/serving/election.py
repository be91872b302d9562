"""Which registry leads, by the group protocol ``sr`` of Confluent's registry: what members say of themselves, and the leader's
choice.

Members join a classic group with the protocol ``v0``; their metadata are an ``Identity`` as JSON. The group's leader, which may
be another registry than the one that will lead, chooses the eligible member with the smallest URL and assigns it to all.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tidelog.config.listeners import address_text
from tidelog.registry.model import compact

PROTOCOL_TYPE, PROTOCOL = "sr", "v0"
NO_ERROR, DUPLICATE_URLS = 0, 1


@dataclass(frozen=True, slots=True)
class Identity:
    """How others reach a registry. ``eligible``: it may lead."""

    host: str
    port: int
    scheme: str = "http"
    eligible: bool = True

    @property
    def url(self) -> str:
        """Scheme, host and port."""
        return f"{self.scheme}://{address_text(self.host, self.port)}"

    def as_json(self, *, leads: bool = False) -> dict[str, object]:
        """The properties in their order."""
        return {
            "version": 1,
            "host": self.host,
            "port": self.port,
            "master_eligibility": self.eligible,
            "scheme": self.scheme,
            "leader": leads,
        }


@dataclass(frozen=True, slots=True)
class Assignment:
    """``leader`` None: there is none, for the reason ``error``."""

    error: int
    leader: Identity | None
    member_id: str = ""


def write_identity(identity: Identity, *, leads: bool) -> bytes:
    """A member's metadata."""
    return compact(identity.as_json(leads=leads)).encode()


def read_identity(raw: bytes) -> Identity:
    """ValueError for metadata of something else."""
    return _identity(_loaded(raw))


def _loaded(raw: bytes) -> object:
    """Anyone who may join the group says something: ValueError for what is no JSON, or nested too deeply."""
    try:
        return json.loads(raw)
    except RecursionError as problem:
        raise ValueError("it is nested too deeply") from problem


def _identity(found: object) -> Identity:
    if not isinstance(found, dict) or not isinstance(found.get("host"), str) or not isinstance(found.get("port"), int):
        raise ValueError("a registry has a host and a port")
    return Identity(
        found["host"],
        found["port"],
        str(found.get("scheme") or "http"),
        found.get("master_eligibility", found.get("leader_eligibility", True)) is True,
    )


def choose(members: Mapping[str, bytes]) -> Assignment:
    """The leader among members, by their ids and metadata; members that say something else cannot lead."""
    known: dict[str, Identity] = {}
    for member_id, raw in members.items():
        try:
            known[member_id] = read_identity(raw)
        except ValueError:
            continue
    urls = [each.url for each in known.values()]
    if len(set(urls)) < len(urls):
        return Assignment(DUPLICATE_URLS, None)
    eligible = [(each.url, member_id, each) for member_id, each in known.items() if each.eligible]
    if not eligible:
        return Assignment(NO_ERROR, None)
    _, member_id, leader = min(eligible, key=lambda each: each[:2])
    return Assignment(NO_ERROR, leader, member_id)


def write_assignment(assignment: Assignment) -> bytes:
    """What each member is assigned."""
    leader = None if assignment.leader is None else assignment.leader.as_json(leads=True)
    value = {
        "version": 1,
        "error": assignment.error,
        "master": assignment.member_id or None,
        "master_identity": leader,
    }
    return compact(value).encode()


def read_assignment(raw: bytes) -> Assignment:
    """ValueError for something else."""
    found = _loaded(raw)
    if not isinstance(found, dict):
        raise ValueError("an assignment is an object")
    leader = found.get("master_identity")
    error = found.get("error", NO_ERROR)
    return Assignment(
        error if isinstance(error, int) else NO_ERROR,
        None if leader is None else _identity(leader),
        str(found.get("master") or ""),
    )
