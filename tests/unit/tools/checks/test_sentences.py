"""Sentences of Apache Kafka's are found in literals of ours; class files are read without Java."""

from __future__ import annotations

import ast
import struct
import zipfile
from pathlib import Path

import pytest

from tools.checks import sentences
from tools.checks.class_files import jar_strings, string_constants
from tools.checks.sentences import copied, digest, for_suites, literals, packed, theirs


def class_file(*strings: str) -> bytes:
    """A class file up to the end of its constant pool, with a long and a method among the strings."""
    pool = [struct.pack(">Bq", 5, 7), struct.pack(">BHH", 10, 1, 1)]
    for number, text in enumerate(strings):
        data = text.encode()
        pool += [struct.pack(">BH", 1, len(data)) + data, struct.pack(">BH", 8, 4 + 2 * number)]
    return struct.pack(">IHHH", 0xCAFEBABE, 0, 61, len(pool) + 2) + b"".join(pool)


def test_string_constants_are_read_over_wide_and_fixed_entries() -> None:
    assert list(string_constants(class_file("one", "two words"))) == ["one", "two words"]


def test_other_files_and_unknown_tags_are_refused() -> None:
    with pytest.raises(ValueError, match="not a class file"):
        list(string_constants(b"PK\3\4 something else"))
    with pytest.raises(ValueError, match="unknown tag 99"):
        list(string_constants(struct.pack(">IHHHBH", 0xCAFEBABE, 0, 61, 2, 99, 0)))


def test_a_jar_is_its_classes(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.jar", "w") as jar:
        jar.writestr("a/A.class", class_file("inside"))
        jar.writestr("a/readme.txt", "not read")
    assert list(jar_strings(tmp_path / "a.jar")) == ["inside"]


def found(tmp_path: Path, source: str, *planted: str, suites: str = "") -> list[str]:
    (tmp_path / "theirs.b64").write_text(packed(planted))
    (tmp_path / "suites.txt").write_text(suites)
    module = tmp_path / "module.py"
    module.write_text(source)
    known, allowed = theirs(tmp_path / "theirs.b64"), for_suites(tmp_path / "suites.txt")
    return [normal for _, normal in copied([module], tmp_path, known, allowed)]


SENTENCE = "The quick brown fox \1 jumps over the lazy dog."


@pytest.mark.parametrize(
    "source",
    [
        'raise ValueError(f"The quick brown fox {name} jumps over the lazy dog.")',
        '"the QUICK brown fox %s jumps over the lazy dog" % name',
        'doc = "Something first. The quick brown fox {} jumps over the lazy dog. And more."',
        '"""The quick brown fox\njumps over the lazy dog."""',
    ],
)
def test_a_sentence_of_theirs_is_found_in_every_form_of_literal(tmp_path: Path, source: str) -> None:
    assert "the quick brown fox jumps over the lazy dog" in found(tmp_path, source, SENTENCE)


def test_five_words_make_no_sentence(tmp_path: Path) -> None:
    source = "first, second = 'the quick brown fox jumps', 'the quick brown fox jumps over'"
    theirs = ("the quick brown fox jumps", "the quick brown fox jumps over")
    assert found(tmp_path, source, *theirs) == ["the quick brown fox jumps over"]


def test_our_own_words_are_ours(tmp_path: Path) -> None:
    assert found(tmp_path, "'a lazy dog lies under a quick brown fox'", SENTENCE) == []


def test_a_text_that_a_suite_compares_is_allowed_by_its_line(tmp_path: Path) -> None:
    source = 'f"The quick brown fox {name} jumps over the lazy dog."'
    assert found(tmp_path, source, SENTENCE, suites="FoxTest: The quick brown fox {} jumps over the lazy dog.\n") == []


def test_an_f_string_is_one_text() -> None:
    assert list(literals(ast.parse('f"a {b} c"'))) == [(1, "a \0 c")]


def test_a_stale_line_of_the_list_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "suites.txt").write_text("FoxTest: a sentence that is said nowhere in the sources\n")
    monkeypatch.setattr(sentences, "for_suites", lambda: for_suites(tmp_path / "suites.txt"))
    monkeypatch.setattr(sentences, "package_files", list)
    (finding,) = sentences.check().findings
    assert "which we do not say" in finding


def test_the_hashes_are_those_of_the_jars() -> None:
    """One sentence that every Kafka says, by its hash; the file holds no text."""
    assert len(theirs()) > 10_000
    assert digest("this server does not host this topic-partition") in theirs()
