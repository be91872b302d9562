from __future__ import annotations

from dataclasses import replace

from tidelog.broker.version_answers import VersionAnswers
from tidelog.metadata.image import EMPTY_IMAGE


def test_an_answer_is_kept_for_its_version() -> None:
    answers = VersionAnswers()
    assert answers.get(EMPTY_IMAGE, 1, 3) is None
    answers.keep(3, b"three")
    assert (answers.get(EMPTY_IMAGE, 1, 3), answers.get(EMPTY_IMAGE, 1, 4)) == (b"three", None)


def test_another_image_or_level_of_kraft_ends_all() -> None:
    answers = VersionAnswers()
    answers.get(EMPTY_IMAGE, 1, 3)
    answers.keep(3, b"three")
    assert answers.get(EMPTY_IMAGE, 0, 3) is None
    answers.keep(3, b"three")
    # Equal is not enough: an image is replaced with each change.
    assert answers.get(replace(EMPTY_IMAGE), 0, 3) is None
