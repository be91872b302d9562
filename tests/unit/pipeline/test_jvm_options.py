"""Options of Spark's JVMs leave room for compiled code."""

from __future__ import annotations

import pytest

from tidelog.pipeline.jvm_options import CODE_CACHE, with_room_for_code


@pytest.mark.parametrize(
    "options",
    [
        "-XX:TieredStopAtLevel=1",
        "-Xmx1g -XX:TieredStopAtLevel=3 -Dname=value",
        "-XX:-TieredCompilation",
        "-XX:CompilationMode=quick-only",
    ],
)
def test_one_compiler_gets_the_code_cache_of_two(options: str) -> None:
    assert with_room_for_code(options) == f"{options} {CODE_CACHE}"


@pytest.mark.parametrize(
    "options",
    [
        "",
        "-Xmx1g",
        "-XX:TieredStopAtLevel=4",
        "-XX:+TieredCompilation",
        "-XX:CompilationMode=default",
        "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=64m",
        "-Dnote=-XX:TieredStopAtLevel=1",
    ],
)
def test_other_options_stay_as_they_are(options: str) -> None:
    assert with_room_for_code(options) == options
