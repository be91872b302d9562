"""Options that only tidelog has. They begin with ``tidelog.``; an unknown one of these is an error, never a warning."""

from __future__ import annotations

from typing import Final

from tidelog.config.options import AT_LEAST_0, AT_LEAST_1, BOOLEAN, INT, LONG, LOW, MEDIUM, READ_ONLY, STRING, OneOf, Option

PREFIX: Final = "tidelog."

OPTIONS = (
    Option("tidelog.http.listener", STRING, "127.0.0.1:9644", MEDIUM, READ_ONLY,
           "host:port of /metrics, /healthz, /livez and /readyz. Port 0 picks a free port; an empty value disables it. When the "
           "default port is in use, the node picks a free one and warns; when a port that you set is in use, it does not start."),
    Option("tidelog.log.level", STRING, "info", LOW, READ_ONLY,
           "The log level on standard error: debug, info, warning or error, with other levels for single loggers, such as "
           "info,tidelog.storage=debug."),
    Option("tidelog.scrub.max.bytes.per.second", INT, 16 * 1024 * 1024, LOW, READ_ONLY,
           "How many bytes of stored batches a second the scrub reads and compares with their checksums. A pass takes the bytes "
           "that are stored divided by this rate: 1 TiB takes 18 hours by default. 0 turns the scrub off.", check=AT_LEAST_0),
    Option("tidelog.scrub.interval.ms", LONG, 86_400_000, LOW, READ_ONLY,
           "How long after the beginning of one pass of the scrub the next one begins, in ms; at once when the pass took longer.",
           check=AT_LEAST_1),
    Option("tidelog.oauthbearer.accept.any.issuer.and.audience", BOOLEAN, False, LOW, READ_ONLY,
           "Whether OAUTHBEARER starts without sasl.oauthbearer.expected.issuer and sasl.oauthbearer.expected.audience, and then "
           "accepts tokens that the same keys signed for other services."),
    Option("tidelog.log.format", STRING, "text", LOW, READ_ONLY, "The format of a log line: text, or one JSON object a line.",
           check=OneOf("text", "json")),
)  # fmt: skip
