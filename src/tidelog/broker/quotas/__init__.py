"""Client quotas as Apache Kafka enforces them: limits, rates, token buckets, and throttle times.

Nothing here reads a clock or waits: ``server.quotas`` has the clocks and the sockets.
"""
