"""The demo as a user starts it: a short evening adds up; with one row less in a table it says so, and its exit status too."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.pipeline.processes import ROOT, environment

PATIENCE_S = 400  # of a machine that does other work; a quiet one needs a tenth


def demo(*arguments: str, folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "demo", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment() | {"TMPDIR": str(folder)} | more, capture_output=True, text=True,
        timeout=PATIENCE_S, check=False,
    )  # fmt: skip


@pytest.mark.timeout(1200)
def test_a_short_evening_adds_up_and_a_missing_row_is_found(spark: Any, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra demo is not installed")
    kept, plot = tmp_path / "kept", tmp_path / "surge.png"
    played = demo("--seconds", "5", "--rate", "120", "--keep", "--folder", str(kept), "--plot", str(plot), folder=tmp_path)
    assert played.returncode == 0, played.stdout + played.stderr
    assert "It all adds up." in played.stdout
    assert plot.read_bytes().startswith(b"\x89PNG")
    sent = json.loads((kept / "ledger.json").read_text())["ledger"]["sent"]
    assert f"{sent['bookings']:,}" in played.stdout
    assert spark.read.format("delta").load(str(kept / "lake/bronze")).count() == sum(sent.values())

    spark.sql(f"DELETE FROM delta.`{kept}/lake/bronze` WHERE _topic = 'payments' AND _partition = 0 AND _offset = 0")
    counted = demo("--check", str(kept), folder=tmp_path)
    assert counted.returncode == 1, counted.stdout + counted.stderr
    assert "NO" in counted.stdout
    assert "payments: produced = bronze" in counted.stdout
    assert "2 of " in counted.stdout


def test_without_java_or_pyspark_it_says_what_to_do(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra demo is not installed")
    pytest.importorskip("pyspark", reason="the extra demo is not installed")
    without = demo(folder=tmp_path, JAVA_HOME=str(tmp_path / "nowhere"))
    assert without.returncode == 1
    assert "Spark needs Java 17 or 21, and no Java was found: install one" in without.stderr
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, *more: None if name == 'pyspark' else find(name, *more)\n"
    )
    path = os.pathsep.join([str(blocked), environment()["PYTHONPATH"]])
    without = demo(folder=tmp_path, PYTHONPATH=path)
    assert without.returncode == 1
    assert "The demo needs pyspark: pip install 'tidelog[demo]'" in without.stderr


def test_interrupted_it_ends_and_leaves_nothing(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra demo is not installed")
    pytest.importorskip("pyspark", reason="the extra demo is not installed")
    command = [sys.executable, "-u", "-m", "demo"]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment() | {"TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as running:
        assert running.stdout is not None
        while "starting Spark" not in running.stdout.readline():
            assert running.poll() is None
        running.send_signal(signal.SIGTERM)
        said = running.stdout.read()
    assert running.returncode == 130, said
    assert "stopped" in said
    assert list(tmp_path.glob("tidelog-demo-*")) == []
