"""The alert rules of ``tidelog dashboards`` on histories, judged by Prometheus's own promtool (``make alerts``)."""
