"""How a request fails: RFC 9457, with Kafka's code where the cluster refused."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final

from tidelog.client.connection import UnsupportedByBroker
from tidelog.client.failures import NoConnection, NotAuthenticated
from tidelog.model.errors import ConfigError, ErrorCode, KafkaError, ProtocolViolation

_STATUS: Final = {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: 404,
    ErrorCode.UNKNOWN_TOPIC_ID: 404,
    ErrorCode.GROUP_ID_NOT_FOUND: 404,
    ErrorCode.TRANSACTIONAL_ID_NOT_FOUND: 404,
    ErrorCode.TOPIC_ALREADY_EXISTS: 409,
    ErrorCode.NON_EMPTY_GROUP: 409,
    ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC: 409,
    ErrorCode.UNKNOWN_MEMBER_ID: 409,
    ErrorCode.REBALANCE_IN_PROGRESS: 409,
    ErrorCode.TOPIC_DELETION_DISABLED: 409,
    ErrorCode.CONCURRENT_TRANSACTIONS: 409,
    ErrorCode.OFFSET_OUT_OF_RANGE: 400,
    ErrorCode.MESSAGE_TOO_LARGE: 413,
    ErrorCode.RECORD_LIST_TOO_LARGE: 413,
    ErrorCode.TOPIC_AUTHORIZATION_FAILED: 403,
    ErrorCode.GROUP_AUTHORIZATION_FAILED: 403,
    ErrorCode.CLUSTER_AUTHORIZATION_FAILED: 403,
    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 403,
    ErrorCode.REQUEST_TIMED_OUT: 504,
}


class Problem(Exception):
    """A request that is refused. ``at``: the column of what is wrong in a filter's text. ``retry_after_s``: when to try again."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        code: ErrorCode | None = None,
        at: int | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.code = code
        self.at = at
        self.retry_after_s = retry_after_s

    def as_json(self) -> dict[str, Any]:
        return {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
            "kafka": None if self.code is None else {"code": int(self.code), "name": self.code.name},
            "at": self.at,
        }


def problem_of(error: Exception) -> Problem:
    """The problem for an error of the cluster; anything unexpected is a 500 without its text."""
    match error:
        case Problem():
            return error
        case KafkaError():
            status = _STATUS.get(error.code, 400 if error.code.name.startswith("INVALID_") else 502)
            return Problem(status, error.detail or error.code.text, code=error.code)
        case NoConnection() if error.sent:
            return Problem(502, f"{error}. Whether the change was made is not known: look before you repeat it.")
        case NoConnection() | NotAuthenticated():
            return Problem(503, str(error))
        case UnsupportedByBroker():
            text = f"{error}".rstrip(".") + ": the brokers are too old for this page."
            return Problem(502, text, code=ErrorCode.UNSUPPORTED_VERSION)
        case ConfigError() | ProtocolViolation():
            return Problem(502, str(error))
        case TimeoutError():
            return Problem(504, "the cluster did not answer in time")
    return Problem(500, "an error inside of the console; its log has the details")


def error_text(error: Exception) -> str:
    """One line about an error, for what is missing from an answer."""
    found = problem_of(error)
    return f"{found.code.name}: {found.detail}" if found.code is not None else found.detail
