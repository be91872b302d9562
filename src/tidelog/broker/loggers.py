"""Log levels of this process's loggers, under Kafka's level names (KIP-412). They last until the process ends.

``root`` is the parent of all other loggers. A logger without a level has that of its nearest ancestor with one.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from tidelog.model.errors import ErrorCode, KafkaError

ROOT: Final = "root"
LEVELS: Final = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": 5,
    "WARN": logging.WARNING,
}


class LevelChange(NamedTuple):
    """``level`` None: the logger inherits its level again."""

    logger: str
    level: str | None


def levels() -> dict[str, str]:
    """The effective level of every existing logger, by name."""
    names = [name for name, each in logging.root.manager.loggerDict.items() if isinstance(each, logging.Logger)]
    return {ROOT: _text(logging.root.getEffectiveLevel())} | {
        name: _text(logging.getLogger(name).getEffectiveLevel()) for name in sorted(names)
    }


def _text(level: int) -> str:
    """The least severe of Kafka's levels that is logged at ``level``."""
    passed = [(number, name) for name, number in LEVELS.items() if number >= level]
    return min(passed)[1] if passed else "FATAL"


def check(changes: Sequence[LevelChange]) -> None:
    """KafkaError INVALID_CONFIG for an unknown logger or level, INVALID_REQUEST if root would have no level."""
    known = levels()
    for name, level in changes:
        if name not in known:
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {name} does not exist!")
        if level is None and name == ROOT:
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, "The root logger always has a level: set another one instead of deleting it"
            )
        if level is not None and level not in LEVELS:
            raise KafkaError(
                ErrorCode.INVALID_CONFIG,
                f"{level} is not a log level, so logger {name} keeps the one it has. Levels: {', '.join(LEVELS)}",
            )


def change(changes: Sequence[LevelChange]) -> None:
    """Apply checked changes."""
    for name, level in changes:
        logger = logging.root if name == ROOT else logging.getLogger(name)
        logger.setLevel(logging.NOTSET if level is None else LEVELS[level])
