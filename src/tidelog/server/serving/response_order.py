"""Keeps the answers of one connection in the order of its requests, whichever is ready first.

A request that waits (``Waiting``) has a place, and so has every answer behind it. Only a Produce lets the next request in before
it is answered, and only another Produce: its records are in the log, and only the followers' acknowledgement and the answer are
missing. Clients that send several in a row are served as if they had sent one: followers fetch the batches together.

As in Kafka, the outcome of a Produce never depends on a later one, and the batches of a connection are appended in its order.
"""

from __future__ import annotations

from collections import deque

from tidelog.broker.answer_types import Waiting
from tidelog.protocol.api_keys import ApiKey
from tidelog.server.serving.sending import Part

_PRODUCE = int(ApiKey.PRODUCE)
"""0, the lowest API key."""
MOST_PLACES = 32
"""Java producers have five requests in flight on a connection. A place takes some hundred bytes: the records are in the log."""


class Place:
    """The place of one answer, either waiting or ready."""

    __slots__ = ("parts", "waiting")

    def __init__(self, waiting: Waiting | None, parts: list[Part] | None) -> None:
        self.waiting = waiting
        self.parts = parts


class InOrder:
    """The answers of a connection that could not be sent immediately."""

    __slots__ = ("places",)

    def __init__(self) -> None:
        self.places: deque[Place] = deque()
        """Empty most of the time; callers check that first."""

    def wait_for(self, waiting: Waiting) -> Place:
        """Adds a place for a request that waits."""
        place = Place(waiting, None)
        self.places.append(place)
        return place

    def queue(self, parts: list[Part]) -> None:
        """Adds a ready answer behind those that wait."""
        self.places.append(Place(None, parts))

    def drop(self, place: Place) -> None:
        """Removes the last place: its request continues as a coroutine and has no answer to queue yet."""
        assert self.places[-1] is place, "an answer behind it would overtake"
        self.places.pop()

    def lets_in(self, api_key: int) -> bool:
        """Whether a request of this API may be handled while others wait; -1: whether one that has not arrived yet could be."""
        if len(self.places) >= MOST_PLACES or api_key > _PRODUCE:
            return False
        last = self.places[-1].waiting
        return last is None or last.lets_next_in

    def take_ready(self) -> list[Part]:
        """Removes the answers that may leave now and returns their parts, in order."""
        places, parts = self.places, []
        while places and (ready := places[0].parts) is not None:
            parts += ready
            places.popleft()
        return parts

    def give_up(self) -> None:
        """Drops all places when the answers can no longer be sent."""
        for place in self.places:
            if place.waiting is not None:
                place.waiting.parked.on_done = None
                place.waiting.parked.finish()
                place.waiting = None
        self.places.clear()
