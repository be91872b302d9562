"""Our sentences inside other people's stack traces."""

from __future__ import annotations

import pytest

from tidelog.pipeline.failures import PipelineFailure, SchemaMoved, kind, sentence

WRAPPED = """[FOREACH_BATCH_USER_FUNCTION_ERROR] An error occurred
py4j.Py4JException: Traceback (most recent call last):
  File "x.py", line 1, in y
tidelog.pipeline.failures.PipelineFailure: The registry is down: start it.
\tat org.apache.spark.Foo
"""


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (Exception(WRAPPED), "The registry is down: start it."),
        (PipelineFailure("plain"), "plain"),
        (
            Exception(
                "An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):\n  File x\n"
                "pyspark.errors.exceptions.captured.AnalysisException: [UNRESOLVED_COLUMN] A column `fare` cannot be found.\n\n"
            ),
            "[UNRESOLVED_COLUMN] A column `fare` cannot be found.",
        ),
        (Exception(WRAPPED.replace("tidelog.pipeline.failures.PipelineFailure", "KeyError")), "KeyError: The registry"),
        (
            Exception(
                "tidelog.spark.reader.DataLost: t-0 is gone. To continue without these records set failOnDataLoss=false; to "
                "start over use another checkpoint.\n at x"
            ),
            "t-0 is gone. To continue without these records say on_data_loss: log for the source.",
        ),
        (
            Exception(
                "py4j.Py4JException: An exception was raised by the Python Proxy. Return Message: "
                "Traceback (most recent call last):\n"
                '  File "batches.py", line 1, in write\npy4j.protocol.Py4JJavaError: An error occurred while calling o7.sql.\n'
                ": org.apache.spark.SparkException: Job aborted.\n\tat x.y(Z.java:1)\n"
                "Caused by: java.lang.RuntimeException: in between\n\tat x.y(Z.java:2)\n\t... 3 more\n"
                "Caused by: java.lang.VirtualMachineError: Out of space in CodeCache for adapters\n\t... 9 more\n"
            ),
            "java.lang.VirtualMachineError: Out of space in CodeCache for adapters",
        ),
        (
            Exception(
                "An exception was raised by the Python Proxy. Return Message: "
                "Traceback (most recent call last):\n"
                "py4j.protocol.Py4JJavaError: An error occurred while calling o7.sql.\n"
                ": java.lang.VirtualMachineError: Out of space in CodeCache for adapters\n\tat x.y(Z.java:2)\n"
            ),
            "java.lang.VirtualMachineError: Out of space",
        ),
        (
            Exception("Traceback\ntidelog.spark.appending.WriteFailed: A batch for out-0 was refused: add an ACL.\n\tat x"),
            "A batch for out-0 was refused: add an ACL.",
        ),
        (Exception("\n\nfirst\nsecond"), "first"),
        (Exception("java.io.IOException: No space left on device\n at x"), "A disk is full"),
    ],
)
def test_the_sentence_for_the_user_is_found(error: Exception, says: str) -> None:
    assert sentence(error).startswith(says)


def test_the_kind_is_found_too() -> None:
    assert kind(SchemaMoved("x")) == "SchemaMoved"
    assert kind(Exception("tidelog.pipeline.failures.SchemaMoved: ids")) == "SchemaMoved"
    assert kind(Exception("java.lang.Foo: x")) == ""
