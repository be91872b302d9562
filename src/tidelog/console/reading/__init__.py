"""Records for the console: fetched in bounded steps, scanned, filtered, made into rows; newest first, forward, or as they come.

``fetching`` asks brokers, ``scanning`` reads batches, ``rows`` makes what the browser gets, ``walking`` goes through a topic.
"""
