"""Several pipelines in one driver, so that one kill -9 hits the sinks of all: what ``tidelog pipeline run`` does, for each file.

``python -m tests.pipeline.driver [--once] FILE...``. The session is that of the first file.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from typing import Any

from tidelog.pipeline.flows import flows
from tidelog.pipeline.running import Run
from tidelog.pipeline.session import session_for
from tidelog.pipeline.yaml_text import load

BEGIN_S = 300.0


def _say(text: str) -> None:
    print(text, flush=True)


def _drive(run: Run, *, once: bool) -> None:
    """To its end. A pipeline that fails ends the whole driver, as it ends a driver that has no other."""
    try:
        run.run(once=once)
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        os._exit(1)


def _begun(spark: Any, queries: int) -> bool:
    active = spark.streams.active
    return len(active) >= queries and not any(query.status["message"].startswith("Initializing") for query in active)


def main(arguments: list[str]) -> None:
    """Until all have ended (``--once``), or for ever."""
    once = "--once" in arguments
    models = [load(file) for file in arguments if file != "--once"]
    spark = session_for(models[0])
    threads, queries = [], 0
    for model in models:
        # One after another: Spark gives the Python process of a source ten seconds to begin.
        deadline = time.monotonic() + BEGIN_S
        while not once and not _begun(spark, queries) and time.monotonic() < deadline:
            time.sleep(0.05)
        threads.append(threading.Thread(target=_drive, args=(Run(model, spark, _say),), kwargs={"once": once}))
        threads[-1].start()
        queries += len(flows(model))
        if once:
            threads[-1].join()
    for thread in threads:
        thread.join()


if __name__ == "__main__":
    main(sys.argv[1:])
