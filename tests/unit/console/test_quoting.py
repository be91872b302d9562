from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.console.quoting import joined, word


@given(st.text())
def test_a_word_is_one_printable_line(text: str) -> None:
    assert word(text).isprintable()


@pytest.mark.parametrize(
    "text", ["", "orders", "it's $HOME", "a\nb", "\x1b[201~x", "\\ ' \x00"[:-1], "\u202eé\x9b0", "$(id)\t`id`"]
)
def test_a_shell_reads_what_was_meant(text: str) -> None:
    found = subprocess.run(["bash", "-c", f"printf '%s|' {joined([text, 'end'])}"], capture_output=True, check=True)
    assert found.stdout.decode() == f"{text}|end|"
