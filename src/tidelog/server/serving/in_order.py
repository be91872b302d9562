"""Answers of one connection, each at its request's place: they leave in the order of the requests, whichever is ready first.

A request that waits for others (``Waiting``) has a place, and so has every answer behind it. Only a Produce lets the next one in
before it is answered, and only another Produce: its records are in the log, and what is missing are the followers' word and this
answer. Clients that send several in a row are served as if they had sent one: followers fetch the batches together.

As in Kafka, what becomes of a Produce never depends on a later one, and the batches of a connection are appended in its order.
"""

from __future__ import annotations

from collections import deque

from tidelog.broker.answers import Waiting
from tidelog.protocol.api_keys import ApiKey
from tidelog.server.serving.sending import Part

_PRODUCE = int(ApiKey.PRODUCE)
"""Whose key is 0, the least."""
MOST_PLACES = 32
"""Java's producers have five requests in flight on a connection. Each place is some hundred bytes: the records are in the log."""


class Place:
    """One answer's, which is either being waited for or ready."""

    __slots__ = ("parts", "waiting")

    def __init__(self, waiting: Waiting | None, parts: list[Part] | None) -> None:
        self.waiting = waiting
        self.parts = parts


class InOrder:
    """The answers of a connection that could not leave at once."""

    __slots__ = ("places",)

    def __init__(self) -> None:
        self.places: deque[Place] = deque()
        """None most of the time, which is asked often."""

    def wait_for(self, waiting: Waiting) -> Place:
        """The next answer is one that waits."""
        place = Place(waiting, None)
        self.places.append(place)
        return place

    def queue(self, parts: list[Part]) -> None:
        """The next answer is there, and waits for those before it."""
        self.places.append(Place(None, parts))

    def drop(self, place: Place) -> None:
        """The last one has no answer yet that could be queued: it goes on elsewhere."""
        assert self.places[-1] is place, "an answer behind it would overtake"
        self.places.pop()

    def lets_in(self, api_key: int) -> bool:
        """Whether a request of this API may be handled while these wait (-1: whether one could that has not come yet)."""
        if len(self.places) >= MOST_PLACES or api_key > _PRODUCE:
            return False
        last = self.places[-1].waiting
        return last is None or last.lets_next_in

    def take_ready(self) -> list[Part]:
        """The parts that may leave now, in order."""
        places, parts = self.places, []
        while places and (ready := places[0].parts) is not None:
            parts += ready
            places.popleft()
        return parts

    def give_up(self) -> None:
        """Nobody wants them any more."""
        for place in self.places:
            if place.waiting is not None:
                place.waiting.parked.on_done = None
                place.waiting.parked.finish()
                place.waiting = None
        self.places.clear()
