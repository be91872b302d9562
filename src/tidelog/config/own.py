"""Options that only tidelog has. They begin with ``tidelog.``; an unknown one of these is an error, never a warning."""

from __future__ import annotations

from typing import Final

from tidelog.config.options import LOW, MEDIUM, READ_ONLY, STRING, OneOf, Option

PREFIX: Final = "tidelog."

OPTIONS = (
    Option("tidelog.http.listener", STRING, "127.0.0.1:9644", MEDIUM, READ_ONLY,
           "host:port of /metrics, /healthz, /livez and /readyz. Port 0 picks a free port; an empty value disables it. When the "
           "default port is in use, the node picks a free one and warns; when a port that you set is in use, it does not start."),
    Option("tidelog.log.level", STRING, "info", LOW, READ_ONLY,
           "The log level on standard error: debug, info, warning or error, with other levels for single loggers, such as "
           "info,tidelog.storage=debug."),
    Option("tidelog.log.format", STRING, "text", LOW, READ_ONLY, "The format of a log line: text, or one JSON object a line.",
           check=OneOf("text", "json")),
)  # fmt: skip
