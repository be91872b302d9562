"""One sentence for each code."""

from __future__ import annotations

import subprocess
import sys

from tidelog.model.error_texts import TEXTS
from tidelog.model.errors import ErrorCode


def test_every_code_has_a_sentence_of_its_own() -> None:
    assert set(TEXTS) == {code.name for code in ErrorCode}
    assert len(set(TEXTS.values())) == len(TEXTS)
    assert all(text.endswith(".") for text in TEXTS.values())


def test_sentences_are_read_only_when_something_failed() -> None:
    script = "import sys, tidelog.model.errors; sys.exit('tidelog.model.error_texts' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
