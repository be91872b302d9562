from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from tidelog.broker import loggers
from tidelog.broker.loggers import LevelChange
from tidelog.model.errors import ErrorCode, KafkaError

NAME = "tidelog.test.levels"


@pytest.fixture
def child() -> Iterator[logging.Logger]:
    before = logging.root.level
    logger = logging.getLogger(NAME + ".child")
    logging.getLogger(NAME).setLevel(logging.WARNING)
    yield logger
    for each in (logging.getLogger(NAME), logger):
        each.setLevel(logging.NOTSET)
    logging.root.setLevel(before)


def test_a_level_is_that_of_the_nearest_logger_above_that_has_one(child: logging.Logger) -> None:
    assert loggers.levels()[NAME + ".child"] == "WARN"
    loggers.change([LevelChange(NAME + ".child", "TRACE")])
    assert loggers.levels()[NAME + ".child"] == "TRACE"
    assert child.isEnabledFor(5)
    loggers.change([LevelChange(NAME + ".child", None)])
    assert loggers.levels()[NAME + ".child"] == "WARN"


@pytest.mark.parametrize("level", loggers.LEVELS)
def test_every_level_of_kafka_is_shown_as_it_was_set(child: logging.Logger, level: str) -> None:
    loggers.change([LevelChange("root", level), LevelChange(NAME, level)])
    assert loggers.levels()["root"] == loggers.levels()[NAME] == level


def test_a_level_in_between_is_shown_as_the_next_one_that_is_logged(child: logging.Logger) -> None:
    child.setLevel(25)
    assert loggers.levels()[NAME + ".child"] == "WARN"
    child.setLevel(60)
    assert loggers.levels()[NAME + ".child"] == "FATAL"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (LevelChange("no.such.logger", "INFO"), ErrorCode.INVALID_CONFIG),
        (LevelChange("no.such.logger", None), ErrorCode.INVALID_CONFIG),
        (LevelChange("root", "LOUD"), ErrorCode.INVALID_CONFIG),
        (LevelChange("root", None), ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_set_is_refused_before_anything_changes(change: LevelChange, code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as refusal:
        loggers.check([change])
    assert refusal.value.code is code
