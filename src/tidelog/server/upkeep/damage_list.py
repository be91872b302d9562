"""Brings the list of damaged segments (``storage/known_damage.py``) up to date, for the scrub and the repair.

Both may find it out of date at the same time. One of them writes it, and looks again afterwards; the other returns at once.
"""

from __future__ import annotations

from tidelog.server.runtime import LoopRuntime
from tidelog.storage.unified_log import UnifiedLog


async def write_damage_list(runtime: LoopRuntime, stored: UnifiedLog) -> None:
    """Writes the list of ``stored``, in a thread, until it says what is known. A failed write is left for the next finding."""
    while (job := stored.files.damage_job()) is not None:
        ok = await runtime.run_long(job.run)
        stored.files.damage.written(ok)
        if not ok:
            return
