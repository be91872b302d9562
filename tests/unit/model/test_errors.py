"""The table of errors."""

from __future__ import annotations

from tidelog.model.errors import ErrorCode, KafkaError, StorageFailure


def test_every_code_has_a_sentence_of_its_own() -> None:
    texts = [code.text for code in ErrorCode]
    assert len(set(texts)) == len(texts) == 138
    assert all((text.endswith(".") and text[0].isupper()) or text.startswith(("acks",)) for text in texts)


def test_codes_are_kafkas_without_a_gap() -> None:
    assert [int(code) for code in ErrorCode] == list(range(-1, 137))


def test_a_client_may_repeat_what_passes_by_itself_and_nothing_else() -> None:
    assert ErrorCode.NOT_LEADER_OR_FOLLOWER.retriable
    assert ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.retriable
    assert not ErrorCode.NONE.retriable
    assert not ErrorCode.INVALID_CONFIG.retriable


def test_an_exception_says_the_code_and_the_detail() -> None:
    assert str(KafkaError(ErrorCode.INVALID_REQUEST, "Ask for more.")) == "INVALID_REQUEST: Ask for more."
    assert str(KafkaError(ErrorCode.INVALID_REQUEST)) == "INVALID_REQUEST"
    assert str(StorageFailure("/d", "full")) == "log dir /d: full"


def test_a_number_that_nobody_knows_is_an_unknown_error_and_no_failure_of_whoever_reads_it() -> None:
    assert ErrorCode(500) is ErrorCode(-32768) is ErrorCode.UNKNOWN_SERVER_ERROR
