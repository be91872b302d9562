"""The audit: who did what from where, allowed or denied, and who logged in or failed to.

``audit_log`` makes a line of JSON of each event (``events``), unless ``sampling`` only counts it. Lines wait in a bounded
``line_queue`` until ``server.upkeep.auditing`` has written them to a file or a topic.
"""
