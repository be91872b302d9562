"""Files that hold secrets: a key, a password, a token. The owner of the node's process should be the only one to read them."""

from __future__ import annotations

import logging
import os
import stat

log = logging.getLogger(__name__)


def readable_by_others(path: str) -> bool:
    """Whether users other than the file's owner and its group can read it; False where that cannot be known."""
    if os.name != "posix":
        return False
    try:
        return bool(os.stat(path).st_mode & stat.S_IROTH)
    except OSError:
        return False


def warn_of_readers(path: str) -> None:
    """Logs a warning about a secret that every user of the machine can read."""
    if readable_by_others(path):
        log.warning("%s holds a secret, and every user of this machine can read it: chmod o-r %s", path, path)
