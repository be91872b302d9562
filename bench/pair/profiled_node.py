"""``tidelog start`` under cProfile: SIGUSR1 begins, SIGUSR2 ends and writes the calls, per function, as JSON.

Runs in the environment of a revision and imports nothing of the harness: ``python profiled_node.py OUT MODULE FUNCTION ARGS...``.
"""

import cProfile
import importlib
import json
import pstats
import signal
import sys
from pathlib import Path


def main() -> None:
    """See the module."""
    out, module, function, *words = sys.argv[1:]
    profile = cProfile.Profile()

    def write(*_: object) -> None:
        profile.disable()
        found: dict[str, int] = {}
        for (file, _, name), (_, calls, *_) in pstats.Stats(profile).stats.items():  # type: ignore[attr-defined]
            place = file.rpartition("/src/")[2].rpartition("/lib/")[2]
            found[f"{place}:{name}"] = found.get(f"{place}:{name}", 0) + calls
        Path(out).with_suffix(".new").write_text(json.dumps(found))
        Path(out).with_suffix(".new").replace(out)

    signal.signal(signal.SIGUSR1, lambda *_: profile.enable())
    signal.signal(signal.SIGUSR2, write)
    sys.argv = ["tidelog", *words]
    sys.exit(getattr(importlib.import_module(module), function)())


if __name__ == "__main__":
    main()
