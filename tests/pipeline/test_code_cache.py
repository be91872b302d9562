"""The Java that sessions run on reserves enough room for compiled code: with 48 MiB every second demo failed."""

from __future__ import annotations

import re
import subprocess

import pytest

from demo.stage import model_for
from tests.pipeline.quick_spark import QUICK
from tests.pipeline.world import JAVA_OPTIONS
from tidelog.pipeline.jvm_options import with_room_for_code

ENOUGH_BYTES = 240 << 20


def reserved(options: str) -> int:
    """Bytes, as Java itself counts them."""
    said = subprocess.run(
        ["java", *options.split(), "-XX:+PrintFlagsFinal", "-version"], capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r"ReservedCodeCacheSize\s*=\s*(\d+)", said)
    assert found is not None, said
    return int(found[1])


def demos() -> str:
    return dict(model_for("localhost:1", "http://localhost:1", "lake").spark)["driver.extraJavaOptions"]


@pytest.mark.parametrize("options", [demos(), JAVA_OPTIONS, QUICK], ids=["demo", "tests", "drivers that are killed"])
def test_sessions_have_room_for_compiled_code(options: str) -> None:
    assert reserved(options) >= ENOUGH_BYTES


@pytest.mark.parametrize("options", ["-XX:TieredStopAtLevel=1", "-XX:-TieredCompilation", "-XX:CompilationMode=quick-only"])
def test_options_with_one_compiler_leave_little_room_until_a_pipeline_takes_them(options: str) -> None:
    assert reserved(options) < ENOUGH_BYTES
    assert reserved(with_room_for_code(options)) >= ENOUGH_BYTES
