"""Broker options: replication between brokers."""

from __future__ import annotations

from tidelog.config.options import (
    AT_LEAST_0,
    AT_LEAST_1,
    CLUSTER,
    HIGH,
    INT,
    LONG,
    LOW,
    MEDIUM,
    MIB,
    READ_ONLY,
    STRING,
    Option,
)

BUFFERS = "the operating system sizes the buffers of connections between brokers"
NO_MOVE_THREADS = "every move between log dirs runs beside the others; a throttle holds them to a rate"

OPTIONS = (
    Option("num.replica.fetchers", INT, 1, HIGH, CLUSTER, "Connections to each leader that this node follows.",
           check=AT_LEAST_1),
    Option("num.replica.alter.log.dirs.threads", INT, None, HIGH, READ_ONLY, "Moves between log dirs at the same time.",
           inert=NO_MOVE_THREADS),
    Option("replica.fetch.backoff.ms", INT, 1000, MEDIUM, READ_ONLY, "The back-off after a failed fetch from a leader, in ms.",
           check=AT_LEAST_0),
    Option("replica.fetch.max.bytes", INT, MIB, MEDIUM, READ_ONLY,
           "The most bytes that a follower fetches of one partition.", check=AT_LEAST_0),
    Option("replica.fetch.min.bytes", INT, 1, HIGH, READ_ONLY, "The fewest bytes that a follower's fetch waits for."),
    Option("replica.fetch.response.max.bytes", INT, 10 * MIB, MEDIUM, READ_ONLY,
           "The most bytes in a response to a follower's fetch.",
           check=AT_LEAST_0),
    Option("replica.fetch.wait.max.ms", INT, 500, HIGH, READ_ONLY,
           "How long a follower's fetch waits for replica.fetch.min.bytes, in ms."),
    Option("replica.high.watermark.checkpoint.interval.ms", LONG, 5000, HIGH, READ_ONLY,
           "How often the high watermarks are written to disk, in ms."),
    Option("replica.lag.time.max.ms", LONG, 30_000, HIGH, READ_ONLY,
           "A follower that has not caught up for this long leaves the ISR, in ms."),
    Option("replica.selector.class", STRING, None, MEDIUM, READ_ONLY,
           "The replica that a consumer reads from: the leader, or one in the consumer's rack."),
    Option("replica.socket.receive.buffer.bytes", INT, 65536, HIGH, READ_ONLY, "SO_RCVBUF of connections to leaders, in bytes.",
           inert=BUFFERS),
    Option("replica.socket.timeout.ms", INT, 30_000, HIGH, READ_ONLY, "The timeout of requests to a leader, in ms."),
    Option("replication.quota.window.num", INT, 11, LOW, READ_ONLY,
           "The number of samples that replication traffic is measured over.",
           check=AT_LEAST_1),
    Option("replication.quota.window.size.seconds", INT, 1, LOW, READ_ONLY, "The length of one sample, in seconds.",
           check=AT_LEAST_1),
    Option("alter.log.dirs.replication.quota.window.num", INT, 11, LOW, READ_ONLY,
           "The number of samples that copying between log dirs is measured over.", check=AT_LEAST_1),
    Option("alter.log.dirs.replication.quota.window.size.seconds", INT, 1, LOW, READ_ONLY,
           "The length of one sample, in seconds.", check=AT_LEAST_1),
)  # fmt: skip
