"""What ends a pipeline, and how its message is found again after Spark has wrapped it: on executors and in Python callbacks an
exception becomes text inside a Java stack trace.
"""

from __future__ import annotations

import re

_OURS = re.compile(
    r"(?:tidelog\.[\w.]+\.)?(PipelineFailure|SchemaMoved|SinkError|ConfigError|TopicMissing|ClusterUnavailable|DataLoss|NotAuthenticated|"
    r"CorruptRecords): ([^\n]+)"
)


class PipelineFailure(Exception):
    """A pipeline cannot go on; the text says what was found and what to do."""


class SchemaMoved(PipelineFailure):
    """A record has fields that the schema known to this batch does not have: the registry has to be asked again."""


def sentence(error: BaseException) -> str:
    """The message for a user: ours when it is somewhere inside, else the first line of whatever it is."""
    if isinstance(error, PipelineFailure):
        return str(error)
    text = str(error)
    found = _OURS.findall(text)
    if found:
        return str(found[-1][1]).strip()
    if "No space left on device" in text:
        return (
            "A disk is full (No space left on device). Nothing of this batch was committed: make room and run it again; it goes "
            "on with the same offsets."
        )
    first = next((line for line in text.split("\n") if line.strip()), type(error).__name__)
    return first.strip()[:1000]


def kind(error: BaseException) -> str:
    """The name of our exception that is inside, or empty."""
    found = _OURS.findall(str(error))
    return type(error).__name__ if isinstance(error, PipelineFailure) else (str(found[-1][0]) if found else "")
