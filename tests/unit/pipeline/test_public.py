"""What ``tidelog.pipeline`` offers is there, and is loaded only when it is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

import tidelog.pipeline


@pytest.mark.parametrize("name", tidelog.pipeline.__all__)
def test_every_public_name_loads_and_is_documented(name: str) -> None:
    assert getattr(tidelog.pipeline, name).__doc__


def test_a_wrong_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Pipelin'"):
        tidelog.pipeline.Pipelin  # noqa: B018


def test_the_package_and_a_pipeline_in_python_need_no_spark() -> None:
    code = "import sys, tidelog.pipeline as p; p.Pipeline('x'); p.load; assert not {'pyspark', 'pyarrow'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
