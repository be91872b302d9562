"""What ends a pipeline, and how our message is found after Spark has wrapped it: exceptions on executors and in Python
callbacks become text in a Java stack trace."""

from __future__ import annotations

import re

_OURS = re.compile(
    r"(?:tidelog\.[\w.]+\.)?(PipelineFailure|SchemaMoved|SinkError|ConfigError|TopicMissing|ClusterUnavailable|DataLost|NotAuthenticated|"
    r"CorruptRecords|WriteFailed|Fenced|UnreadableBatch): ([^\n]+)"
)

# The end of a Python traceback, of a transform's function for example: at the start of a line; Java's begin with blanks.
_PYTHON = re.compile(r"^((?!py4j|pyspark|java|org)[A-Za-z_][\w.]*(?:Error|Exception): [^\n]+)", re.M)

# What Spark reported to our Python code that it had called.
_SPARK = re.compile(r"^pyspark\.errors\.[\w.]+: ([^\n]+)", re.M)


# What the JVM threw: the last of its causes, or what py4j received.
_CAUSED = re.compile(r"^\s*Caused by: ([^\n]+)", re.M)
_THREW = re.compile(r"^: ([\w.$]+: [^\n]+)", re.M)


class PipelineFailure(Exception):
    """The pipeline cannot continue. The text says what was found and what to do."""


class SchemaMoved(PipelineFailure):
    """A record has fields that the schema of this batch lacks: ask the registry again."""


def sentence(error: BaseException) -> str:
    """The message for a user: ours if it is in there, else the deepest cause that has a name."""
    if isinstance(error, PipelineFailure):
        return str(error)
    text = str(error)
    found = _OURS.findall(text)
    if found:
        return _in_our_words(str(found[-1][1]).strip())
    if "No space left on device" in text or "Disk quota exceeded" in text:
        return (
            "A disk is full (No space left on device). Nothing of this batch was committed: make room and run it again; it "
            "continues with the same offsets."
        )
    raised = _PYTHON.findall(text)
    if "Traceback (most recent call last)" in text and raised:
        return str(raised[-1]).strip()[:1000]
    by_spark = _SPARK.findall(text)
    if "Traceback (most recent call last)" in text and by_spark:
        return str(by_spark[-1]).strip()[:1000]
    thrown = _CAUSED.findall(text) or _THREW.findall(text)
    if thrown:
        return str(thrown[-1]).strip()[:1000]
    first = next((line for line in text.split("\n") if line.strip()), type(error).__name__)
    return first.strip()[:1000]


def _in_our_words(text: str) -> str:
    """Replace the source's options in a message by the pipeline's keys for them."""
    said = "set failOnDataLoss=false; to start over use another checkpoint"
    return text.replace(said, "say on_data_loss: log for the source")


def kind(error: BaseException) -> str:
    """The class name of our exception inside the text; empty if there is none."""
    found = _OURS.findall(str(error))
    return type(error).__name__ if isinstance(error, PipelineFailure) else (str(found[-1][0]) if found else "")
