"""Other brokers that answer as a test says."""

from __future__ import annotations

from typing import Any

from tidelog.model.errors import KafkaError


class ScriptedBrokers:
    """Answers of brokers, in their order: a message, a KafkaError, or a future of either."""

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[int, str, Any, int]] = []

    async def ask(self, broker_id: int, purpose: str, request: Any, timeout_ms: int) -> Any:
        self.asked.append((broker_id, purpose, request, timeout_ms))
        answer = self.answers.pop(0)
        if hasattr(answer, "__await__"):
            answer = await answer
        if isinstance(answer, KafkaError):
            raise answer
        return answer
