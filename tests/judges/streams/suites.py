"""Which of Apache Kafka's test classes run in clusters of ``EmbeddedKafkaCluster``, and which of them the judge runs.

Found in the jars of 4.3.1: classes that call ``EmbeddedKafkaCluster``. Those of ``SUITES`` name the streams protocol: each has
cases that run with ``group.protocol=streams``, most of them beside the same cases with the classic one. The classes below them
know the classic protocol alone; they run by name.
"""

from __future__ import annotations

from dataclasses import dataclass

INTEGRATION = "org.apache.kafka.streams.integration"
TOOLS = "org.apache.kafka.tools.streams"


@dataclass(frozen=True, slots=True)
class Suite:
    """A test class."""

    name: str
    package: str = INTEGRATION
    only_streams: bool = False
    """Whether all its cases use the streams protocol; otherwise the parameters of a case say so."""
    methods: str = ""
    """A regular expression for the names of those that are run; all when it is empty."""

    @property
    def qualified(self) -> str:
        """As Java names it."""
        return f"{self.package}.{self.name}"


SUITES = (
    Suite("StandbyTaskCreationIntegrationTest"),
    Suite("InternalTopicIntegrationTest"),
    Suite("JoinWithIncompleteMetadataIntegrationTest"),
    Suite("RebalanceProtocolMigrationIntegrationTest", only_streams=True),
    Suite("RebalanceProtocolMigrationIntegrationTest$WithAssignmentBatchingDisabledTest", only_streams=True),
    Suite("HandlingSourceTopicDeletionIntegrationTest"),
    Suite("IQv2EndpointToPartitionsIntegrationTest"),
    Suite("StreamsUncaughtExceptionHandlerIntegrationTest"),
    Suite("KStreamRepartitionIntegrationTest"),
    Suite("SmokeTestDriverIntegrationTest"),
    Suite("SmokeTestDriverIntegrationTest$WithAssignmentBatchingDisabledTest"),
    Suite("EosIntegrationTest"),
    Suite("RestoreIntegrationTest"),
    Suite("MetricsIntegrationTest"),
    Suite("RocksDBMetricsIntegrationTest"),
    Suite("IQv2IntegrationTest"),
    Suite("IQv2VersionedStoreIntegrationTest"),
    Suite("IQv2StoreIntegrationTest"),
    Suite("KafkaStreamsTelemetryIntegrationTest", methods="(?!shouldPush).*"),
    Suite("ListStreamsGroupTest", TOOLS, only_streams=True),
    Suite("DescribeStreamsGroupTest", TOOLS, only_streams=True),
    Suite("DeleteStreamsGroupTest", TOOLS, only_streams=True),
    Suite("DeleteStreamsGroupOffsetTest", TOOLS, only_streams=True),
    Suite("ResetStreamsGroupOffsetTest", TOOLS, only_streams=True),
)


def find(name: str) -> Suite:
    """The suite of this name; a class that is not in the table is one of the integration tests, or has a qualified name."""
    for suite in SUITES:
        if name in (suite.name, suite.qualified):
            return suite
    package, _, short = name.rpartition(".")
    return Suite(short, package or INTEGRATION)
