"""Client quotas as Apache Kafka enforces them: limits, rates, token buckets, and the time a client has to wait.

Everything here is told what time it is, and waits for nothing: ``server.quotas`` has the clocks and the sockets.
"""
