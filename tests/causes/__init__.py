"""The causes of a stuck group, made one by one on a real node: ``make causes``."""
