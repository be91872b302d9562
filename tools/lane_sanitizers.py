"""The compiled lanes under AddressSanitizer and UndefinedBehaviorSanitizer: ``python tools/lane_sanitizers.py [FRAMES [SEED]]``.

Installs the package, compiled with both, into ``build/sanitized``, and runs each lane there beside its twin for ``FRAMES``
frames (default 100,000), whole and mutated. The first report of a sanitizer ends the run, as does the first difference.
Python's own allocator is off, so that each object is an allocation that AddressSanitizer knows.

Needs gcc or clang with their sanitizers' libraries (Debian: libasan8, libubsan1, which come with gcc).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "build" / "sanitized"
SANITIZE = "-fsanitize=address,undefined"
LANES = {
    "Produce": "tests.property.produce_twins",
    "Fetch": "tests.property.test_fetch_lane",
    "followers' Fetch": "tests.property.test_follower_twins",
    "the read step": "tests.property.test_read_step",
}


def build() -> None:
    """Installs the package, its compiled modules sanitized, into ``TARGET``."""
    shutil.rmtree(TARGET, ignore_errors=True)
    flags = f"-O1 -g -fno-omit-frame-pointer {SANITIZE} -fno-sanitize-recover=undefined"
    command = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps", "--target", TARGET, ROOT]
    subprocess.run(command, env=os.environ | {"CFLAGS": flags, "LDFLAGS": SANITIZE}, check=True)


def environment() -> dict[str, str]:
    """What a process needs to load sanitized modules: their libraries have to come before all others."""
    compiler = os.environ.get("CC", "cc")
    libraries = [
        subprocess.run([compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True).stdout.strip()
        for name in ("libasan.so", "libubsan.so")
    ]
    return os.environ | {
        "LD_PRELOAD": " ".join(libraries),
        "PYTHONMALLOC": "malloc",
        "PYTHONPATH": os.pathsep.join((str(TARGET), str(ROOT))),
        "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=1",  # an interpreter frees little at its end
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
    }


def main() -> int:
    frames = int(float(sys.argv[1])) if len(sys.argv) > 1 else 100_000
    seed = sys.argv[2] if len(sys.argv) > 2 else "1"
    print("compiling with -fsanitize=address,undefined ...", flush=True)
    build()
    env = environment()
    where = "import sys, tidelog.broker._produce_lane as lane; sys.exit(lane.__file__)"
    loaded = subprocess.run([sys.executable, "-c", where], env=env, cwd=TARGET, capture_output=True, text=True, check=False)
    if str(TARGET) not in loaded.stderr:
        print(f"the sanitized modules are not the ones that Python imports:\n{loaded.stderr}", file=sys.stderr)
        return 1
    for name, module in LANES.items():
        began = time.monotonic()
        print(f"{name}: {frames} frames from seed {seed} on", flush=True)
        done = subprocess.run([sys.executable, "-m", module, seed, str(frames)], env=env, cwd=ROOT, check=False)
        if done.returncode:
            print(f"{name}: failed", file=sys.stderr)
            return done.returncode
        print(f"{name}: clean after {time.monotonic() - began:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
