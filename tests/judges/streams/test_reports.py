"""What is read from JUnit's reports."""

from __future__ import annotations

from tests.judges.streams.reports import Case, named, parse
from tests.judges.streams.suites import SUITES, TOOLS, find

REPORT = """<testsuite>
<testcase name="shouldRun(boolean, boolean)[1]" classname="org.example.SomeTest">
<system-out><![CDATA[
unique-id: [engine:junit-jupiter]
display-name: [1] useNewProtocol=false, withHeaders=true
]]></system-out></testcase>
<testcase name="shouldRun(boolean, boolean)[2]" classname="org.example.SomeTest">
<failure message="expected: 1&#10;at line 3" type="x">long</failure>
<system-out><![CDATA[
display-name: [2] useNewProtocol=true, withHeaders=true
]]></system-out></testcase>
<testcase name="shouldTell()" classname="org.example.SomeTest">
<system-out><![CDATA[
display-name: STREAMS protocol No standby
]]></system-out></testcase>
<testcase name="shouldWait()" classname="org.example.SomeTest"><skipped>not here
at all</skipped></testcase>
</testsuite>"""


def test_each_case_has_its_verdict_and_its_protocol() -> None:
    assert list(parse(REPORT, only_streams=False)) == [
        Case("SomeTest.shouldRun(boolean,boolean)[1]", "passed", False),
        Case("SomeTest.shouldRun(boolean,boolean)[2]", "failed", True, "expected: 1"),
        Case("SomeTest.shouldTell()", "passed", True),
        Case("SomeTest.shouldWait()", "skipped", False, "not here"),
    ]


def test_a_class_that_knows_one_protocol_need_not_show_it() -> None:
    cases = list(parse(REPORT, only_streams=True))
    assert all(case.by_streams for case in cases)
    assert named(cases, "failed") == ["SomeTest.shouldRun(boolean,boolean)[2]"]


def test_classes_are_found_by_short_and_by_long_names() -> None:
    assert find("RestoreIntegrationTest").qualified == "org.apache.kafka.streams.integration.RestoreIntegrationTest"
    assert find("ListStreamsGroupTest").package == TOOLS
    assert find("org.example.OtherTest").qualified == "org.example.OtherTest"
    assert find("PauseResumeIntegrationTest").package == find("RestoreIntegrationTest").package
    assert len({suite.name for suite in SUITES}) == len(SUITES)
