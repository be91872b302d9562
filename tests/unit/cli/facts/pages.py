"""A page of facts, as a node serves it."""

from __future__ import annotations

from typing import Any


def page(node: int = 1, **sections: Any) -> dict[str, Any]:
    """A small page; ``sections`` replace those of the same name."""
    phases = ("total", "request queue", "local", "remote", "throttle", "response queue", "response send")
    return {
        "schema": 1,
        "at_ms": 1_800_000_000_000,
        "names": True,
        "node": {"id": node, "version": "1.0", "cluster_id": "c", "roles": ["broker", "controller"], "uptime_seconds": 3725.0},
        "process": {"memory_bytes": 120 << 20, "cpu_seconds": 9.0, "open_files": 42, "open_files_limit": 1024},
        "loop": {
            "seconds": 5.0,
            "busy": 0.25,
            "apis": [{"api": "Produce", "requests": 500, "share": 0.2}, {"api": "", "requests": 0, "share": 0.01}],
        },
        "requests": [
            {
                "api": "Produce",
                "count": 500,
                "phases": [{"phase": each, "p50_ms": 1.0, "p99_ms": 2.5, "p999_ms": 9.0} for each in phases],
            }
        ],
        "clients": {
            "seconds": 5.0,
            "share_error": 0.0,
            "busiest": [
                {"client_id": "writer", "principal": "User:alice", "host": "10.0.0.1", "share": 0.15, "requests": 400,
                 "bytes_in": 5 << 20, "bytes_out": 5000},
                {"client_id": "reader", "principal": "User:bob", "host": "10.0.0.2", "share": 0.05, "requests": 1000,
                 "bytes_in": 1000, "bytes_out": 50 << 20},
            ],
        },
        "topics": {
            "seconds": 5.0,
            "count": 1,
            "busiest": [
                {"topic": "orders", "records_in": 50, "bytes_in": 5000, "bytes_out": 0, "replication_bytes": 0, "requests": 50}
            ],
        },
        "partitions": {"seconds": 5.0, "count": 3, "leaders": 3, "offline": 0, "under_replicated": 2, "under_min_isr": 0,
                       "held_by_transactions": 0, "busiest": []},
        "connections": {"open": 7, "listeners": []},
        "parked": [{"api": "Fetch", "requests": 4, "watched": 9}],
        "groups": [{"type": "consumer", "state": "Stable", "count": 2, "members": 3}],
        "transactions": {"ids": 1, "open": 1, "oldest_seconds": 2.0, "missing_markers": 0},
        "quorum": {"role": "leader", "leader": 1, "epoch": 3, "high_watermark": 99},
        **sections,
    }  # fmt: skip
