"""Options that only tidelog has. They begin with ``tidelog.``; an unknown one of these is an error, never a warning."""

from __future__ import annotations

from typing import Final

from tidelog.config.options import (
    AT_LEAST_0,
    AT_LEAST_1,
    BOOLEAN,
    CLUSTER,
    INT,
    LONG,
    LOW,
    MEDIUM,
    PASSWORD,
    READ_ONLY,
    STRING,
    Between,
    OneOf,
    Option,
)

PREFIX: Final = "tidelog."
HTTP_SECURITY: Final = ("tidelog.http.ssl.", "tidelog.http.bearer.token.file", "tidelog.http.basic.credentials.file")
"""How the names of options that secure ``tidelog.http.listener`` begin (``config.http_endpoint``)."""

OPTIONS = (
    Option("tidelog.http.listener", STRING, "127.0.0.1:9644", MEDIUM, READ_ONLY,
           "host:port of /metrics, /facts, /healthz, /livez and /readyz. Port 0 picks a free port; an empty value disables it. "
           "When the default port is in use, the node picks a free one and warns; when a port that you set is in use, it does "
           "not start."),
    Option("tidelog.http.ssl.keystore.location", STRING, None, MEDIUM, READ_ONLY,
           "The file with the key and the certificate of tidelog.http.listener, which then speaks TLS: PEM, PKCS12 or JKS, whose "
           "content decides. A new file is used within five seconds, from the next connection on."),
    Option("tidelog.http.ssl.keystore.password", PASSWORD, None, MEDIUM, READ_ONLY,
           "The password of tidelog.http.ssl.keystore.location when that is PKCS12 or JKS."),
    Option("tidelog.http.ssl.key.password", PASSWORD, None, MEDIUM, READ_ONLY,
           "The password of an encrypted key in tidelog.http.ssl.keystore.location."),
    Option("tidelog.http.ssl.truststore.location", STRING, None, MEDIUM, READ_ONLY,
           "The file with the authorities of clients, for tidelog.http.ssl.client.auth: PEM, PKCS12 or JKS."),
    Option("tidelog.http.ssl.truststore.password", PASSWORD, None, MEDIUM, READ_ONLY,
           "The password of tidelog.http.ssl.truststore.location when that is PKCS12 or JKS."),
    Option("tidelog.http.ssl.client.auth", STRING, "none", MEDIUM, READ_ONLY,
           "Whether clients of tidelog.http.listener show a certificate: required, requested (those that show one need a valid "
           "one) or none.", check=OneOf("none", "requested", "required")),
    Option("tidelog.http.bearer.token.file", STRING, None, MEDIUM, READ_ONLY,
           "A file with tokens, one a line, of which clients of tidelog.http.listener present one as Authorization: Bearer. "
           "/livez and /readyz need none. A changed file is read again within five seconds."),
    Option("tidelog.http.bearer.token.principal", STRING, "User:ANONYMOUS", LOW, READ_ONLY,
           "The principal that clients with a token of tidelog.http.bearer.token.file count as where a page asks the authorizer: "
           "/facts has names of topics and clients for principals with DESCRIBE on the cluster. A user of "
           "tidelog.http.basic.credentials.file counts as User:NAME, any other client as User:ANONYMOUS."),
    Option("tidelog.http.basic.credentials.file", STRING, None, MEDIUM, READ_ONLY,
           "A file with lines name:password, of which clients of tidelog.http.listener present one as Authorization: Basic. With "
           "tidelog.http.bearer.token.file, either will do."),
    Option("tidelog.processes.port.step", INT, 10, LOW, READ_ONLY,
           "With tidelog start --processes N: how far the ports of a process are above those of the one before. The first one's "
           "are as far above the ports of listeners, where clients of all processes come in.", check=Between(1, 1000)),
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
    Option("tidelog.authorizer.dry.run", BOOLEAN, False, MEDIUM, READ_ONLY,
           "Whether the authorizer only says what it would deny, in its log, in the audit and as a metric, and lets every "
           "request through. Set it alike on all nodes, to try ACLs before they decide; the log warns once a minute."),
    Option("tidelog.audit.file", STRING, "", MEDIUM, READ_ONLY,
           "The file of the audit: a line of JSON for each change, denial and login, and for a sample of the reads. Empty: no "
           "file. docs/guide/audit.md describes the lines."),
    Option("tidelog.audit.file.max.bytes", LONG, 100 * 1024 * 1024, LOW, READ_ONLY,
           "How large the audit's file grows before it is renamed to NAME.1, NAME.1 to NAME.2 and so on, in bytes.",
           check=Between(4096)),
    Option("tidelog.audit.file.count", INT, 10, LOW, READ_ONLY,
           "How many files of the audit are kept, the one that is written to included; the oldest is deleted.", check=AT_LEAST_1),
    Option("tidelog.audit.topic", STRING, "", MEDIUM, READ_ONLY,
           "The topic of the audit, such as __audit, with the same lines as tidelog.audit.file, which may be set beside it. The "
           "node creates it with one partition, default.replication.factor replicas and 7 days of retention unless it exists. "
           "Only ACLs protect it. Empty: no topic."),
    Option("tidelog.audit.sample.interval.ms", LONG, 600_000, LOW, READ_ONLY,
           "The audit has one line in this time, in ms, for allowed reads, written records and requests between nodes of one "
           "principal, address, API, operation and resource, with the number of those that were left out. 0: a line for each.",
           check=AT_LEAST_0),
    Option("tidelog.audit.max.per.second", INT, 100, LOW, READ_ONLY,
           "How many denials the audit has in a second at most, how many failed logins, and how many allowed reads; the others "
           "are counted. Changes and successful logins have no limit.", check=AT_LEAST_1),
    Option("tidelog.max.unauthenticated.connections", INT, 2000, MEDIUM, CLUSTER,
           "The most connections of a listener whose clients have not authenticated yet: during a TLS handshake, before the end "
           "of a SASL login, or held back by a quota. Beyond it the oldest one of the address that connects is closed, or the "
           "oldest of all where that address has no other. Clients that have authenticated do not count, and without TLS and "
           "SASL there is no login. Never more than half of the process's descriptors.",
           check=AT_LEAST_1),
    Option("tidelog.max.unauthenticated.connections.per.ip", INT, 1000, MEDIUM, CLUSTER,
           "The same for the connections of one address, of which the oldest is closed.", check=AT_LEAST_1),
    Option("tidelog.oauthbearer.groups.claim.name", STRING, None, LOW, READ_ONLY,
           "The claim of an OAUTHBEARER token that names the user's groups, a text or a list of texts: ACLs for Group:NAME then "
           "count for the user. Empty: tokens name no groups. A token with more than 200 groups is refused."),
    Option("tidelog.ssl.groups.from.ou", BOOLEAN, False, LOW, READ_ONLY,
           "Whether each OU of a client's certificate is a group of the client, for which ACLs for Group:NAME count. On SASL_SSL "
           "listeners the certificate only lets a client in, and names no groups."),
    Option("tidelog.proxy.protocol.networks", STRING, "", LOW, READ_ONLY,
           "Addresses and networks of load balancers, separated by commas. Connections from there begin with a PROXY header "
           "(version 1 or 2), whose address then counts as the client's; a connection without one is closed. A listener may have "
           "its own: listener.name.NAME.tidelog.proxy.protocol.networks."),
    Option("tidelog.scram.changes.end.sessions", BOOLEAN, False, LOW, READ_ONLY,
           "Whether connections that logged in by a SCRAM credential are closed when it is changed or removed, after the request "
           "in flight. Otherwise, as in Apache Kafka, they stay open."),
    Option("tidelog.slow.request.log.ms", INT, 0, LOW, CLUSTER,
           "The log has a line for each request that takes at least this long, in ms, with its client and the phases of its "
           "time: five a second for a listener, the others are counted. A fetch that waits for records and a member of a group "
           "that waits for the others are not slow. 0: no such lines. While it is on, the times of all requests are taken.",
           check=AT_LEAST_0),
    Option("tidelog.log.format", STRING, "text", LOW, READ_ONLY, "The format of a log line: text, or one JSON object a line.",
           check=OneOf("text", "json")),
)  # fmt: skip
