"""``tidelog random-uuid``: a new id, as ``kafka-storage random-uuid`` prints it."""

from __future__ import annotations

import random

import click

from tidelog.model.ids import random_uuid, uuid_to_text


@click.command("random-uuid", context_settings={"help_option_names": ["-h", "--help"]})
def command() -> None:
    """Print a new id, for tidelog format --cluster-id."""
    print(uuid_to_text(random_uuid(random.SystemRandom())))
