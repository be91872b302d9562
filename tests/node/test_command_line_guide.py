"""The commands that docs/guide/command-line.md prints, typed as printed, but for the address of the broker."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tidelog.testing import Broker

GUIDE = Path(__file__).parent.parent.parent / "docs" / "guide" / "command-line.md"
UNTIL_CTRL_C = "kafka-console-consumer"
ENDS = " --from-beginning --max-messages 2"
"""Without a limit it reads until Ctrl+C."""


def printed() -> list[str]:
    """The indented lines that are commands of Kafka's names."""
    return [line.strip() for line in GUIDE.read_text(encoding="utf-8").splitlines() if re.match(r"    kafka-", line)]


def open_transaction(broker: Broker, transactional_id: str) -> None:
    """A record of ``orders`` in a transaction that stays open, because its producer is gone."""
    program = (
        "import os; from confluent_kafka import Producer\n"
        f"p = Producer({{'bootstrap.servers': '{broker.bootstrap_servers}', 'transactional.id': '{transactional_id}'}})\n"
        "p.init_transactions(); p.begin_transaction(); p.produce('orders', 'x'); p.flush(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_every_command_that_the_guide_prints_succeeds(tmp_path: Path) -> None:
    commands = [line + ENDS if line.startswith(UNTIL_CTRL_C) else line for line in printed()]
    assert len(commands) >= 18
    env = os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    with Broker() as broker:
        broker.produce("orders", "a", "b")
        open_transaction(broker, "payments")
        for line in commands:
            if " abort " in line:
                open_transaction(broker, "hanging")
                line = re.sub(r"--start-offset \d+", f"--start-offset {broker.messages('orders')[-1].offset}", line)
            typed = line.replace("localhost:9092", broker.bootstrap_servers)
            done = subprocess.run(
                ["bash", "-c", typed],
                input="a\nb\n",
                env=env,
                cwd=tmp_path,
                text=True,
                capture_output=True,
                timeout=120,
                check=False,
            )
            assert done.returncode == 0, f"{typed}\n{done.stdout}{done.stderr}"
