"""Sinks. ``base`` is the contract; each kind has its own module, imported when a pipeline names it."""
