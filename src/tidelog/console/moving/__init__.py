"""Replicas that move between brokers: plans, and how they are carried out, as values and pure machines."""
