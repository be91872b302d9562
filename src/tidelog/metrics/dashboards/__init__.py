"""Dashboards for Grafana and alert rules for Prometheus, over the metrics of a node's ``/metrics``.

``panels`` and ``alerts`` are the tables; ``grafana`` and ``rules`` write them in the formats of those programs. What a table asks
for is in ``tidelog.metrics.catalog``, or a metric of Prometheus itself (``up``, ``process_*``).
"""
