"""Check a pipeline's file as a whole: every mistake at once, those in SQL and schemas too."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from tidelog.model.errors import ConfigError
from tidelog.pipeline import sql_check
from tidelog.pipeline.model import PipelineModel
from tidelog.pipeline.reading import read_model
from tidelog.pipeline.yaml_text import document_of


def validated(
    file: str,
    say: Callable[[str], None],
    parser: Callable[[], AbstractContextManager[sql_check.Parser]] = sql_check.spark_parser,
) -> PipelineModel:
    """The pipeline of a file. ConfigError has all mistakes; ``say`` gets a line when SQL cannot be checked."""
    document = document_of(file)
    if any(sql_check.texts_of(document)):
        try:
            with parser() as parse:
                sql_check.check(document, parse)
        except ConfigError as error:
            say(f"SQL and schemas were not checked: {error}")
    return read_model(document)
