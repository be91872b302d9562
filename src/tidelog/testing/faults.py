"""Faults on demand: the next requests of an API are refused, delayed, or lose their connection.

They are kept per API, first come first served, and taken by the requests of any client. What they do to the broker: nothing. A
refused Produce is not appended, a dropped one neither; a delayed one is served as usual, later.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tidelog.broker.api import Api
from tidelog.broker.context import CLOSE_CONNECTION, NO_RESPONSE, Context
from tidelog.model.errors import ErrorCode
from tidelog.protocol.api_keys import ApiKey
from tidelog.testing.error_answers import refuse

Sleep = Callable[[float], Coroutine[Any, Any, None]]


@dataclass(frozen=True, slots=True)
class _Fault:
    error: ErrorCode = ErrorCode.NONE
    delay_s: float = 0.0
    drop: bool = False


class Faults:
    """Planned faults of one broker; every method may be called from the test's thread."""

    def __init__(self, sleep: Sleep) -> None:
        self._sleep = sleep
        self._guard = threading.Lock()
        self._planned: dict[int, deque[_Fault]] = {}

    def refuse(self, api: ApiKey | str, error: ErrorCode | str, times: int = 1) -> None:
        """The next ``times`` requests of ``api`` (``ApiKey.PRODUCE`` or ``"PRODUCE"``) are answered with ``error``."""
        self._plan(api, _Fault(error=ErrorCode[error] if isinstance(error, str) else error), times)

    def delay(self, api: ApiKey | str, seconds: float, times: int = 1) -> None:
        """The next ``times`` requests of ``api`` are served that much later."""
        self._plan(api, _Fault(delay_s=seconds), times)

    def drop(self, api: ApiKey | str, times: int = 1) -> None:
        """The next ``times`` requests of ``api`` are not served: their connections end."""
        self._plan(api, _Fault(drop=True), times)

    def clear(self) -> None:
        """Nothing is planned any more."""
        with self._guard:
            self._planned.clear()

    @property
    def pending(self) -> int:
        """How many planned faults nobody has met yet."""
        with self._guard:
            return sum(len(faults) for faults in self._planned.values())

    def _plan(self, api: ApiKey | str, fault: _Fault, times: int) -> None:
        if times < 1:
            raise ValueError(f"a fault for {times} requests; ask for at least one")
        key = ApiKey[api] if isinstance(api, str) else api
        with self._guard:
            self._planned.setdefault(int(key), deque()).extend([fault] * times)

    def over(self, apis: Mapping[int, Api]) -> dict[int, Api]:
        """The API table with faults in front of its handlers."""
        return {key: replace(row, handler=self._faulty(row)) for key, row in apis.items()}

    def _faulty(self, row: Api) -> Callable[[Context, Any], Any]:
        serve, planned, key = row.handler, self._planned, int(row.key)

        def handler(ctx: Context, request: Any) -> Any:
            if not planned:
                return serve(ctx, request)
            with self._guard:
                waiting = planned.get(key)
                fault = waiting.popleft() if waiting else None
                if waiting is not None and not waiting:
                    del planned[key]
            if fault is None:
                return serve(ctx, request)
            if fault.drop:
                return CLOSE_CONNECTION
            if fault.error is not ErrorCode.NONE:
                # A producer that wants no answer gets none, not even a refusal.
                return NO_RESPONSE if getattr(request, "acks", 1) == 0 else refuse(row, ctx, request, fault.error)
            return self._later(fault.delay_s, serve, ctx, request)

        return handler

    async def _later(self, delay_s: float, serve: Callable[[Context, Any], Any], ctx: Context, request: Any) -> Any:
        await self._sleep(delay_s)
        answer = serve(ctx, request)
        return await answer if isinstance(answer, Coroutine) else answer
