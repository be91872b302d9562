"""Past the brokers to the active controller."""

from types import SimpleNamespace
from typing import Any

import click
import pytest

from tidelog.cli import controller_session
from tidelog.cli.controller_session import ControllerSession, target
from tidelog.cli.refusal import CommandFailed
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.describe_cluster import DescribeClusterBroker, DescribeClusterRequest, DescribeClusterResponse


class Connections:
    """Stands for BrokerConnection; remembers where it connected."""

    def __init__(self, response: DescribeClusterResponse) -> None:
        self.response = response
        self.to: list[str] = []

    def __call__(self, bootstrap: str, command_config: str | None, client_id: str) -> Any:
        self.to.append(bootstrap)
        return self

    timeout_ms = 1000

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def ask(self, request: Any) -> Any:
        return self.response if isinstance(request, DescribeClusterRequest) else SimpleNamespace(asked=request)

    def version_of(self, api_key: int) -> int:
        return api_key


def connecting(monkeypatch: pytest.MonkeyPatch, **response: Any) -> Connections:
    made = Connections(DescribeClusterResponse(**response))
    monkeypatch.setattr(controller_session, "BrokerConnection", made)
    return made


NODES = [DescribeClusterBroker(broker_id=each, host="h", port=9000 + each) for each in (1, 2)]


def test_any_controller_leads_to_the_active_one(monkeypatch: pytest.MonkeyPatch) -> None:
    made = connecting(monkeypatch, controller_id=2, brokers=NODES)
    with ControllerSession("h:9001") as session:
        assert session.ask("x").asked == "x"  # type: ignore[arg-type]
        assert session.version_of(5) == 5
    assert made.to == ["h:9001", "h:9002"]


@pytest.mark.parametrize(
    ("response", "says"),
    [
        ({"error_code": ErrorCode.MISMATCHED_ENDPOINT_TYPE}, "is a listener of a broker"),
        ({"controller_id": -1, "brokers": NODES}, "have no leader at present"),
        ({"error_code": ErrorCode.UNKNOWN_SERVER_ERROR, "error_message": "odd"}, "odd"),
    ],
)
def test_who_cannot_lead_there_says_why(monkeypatch: pytest.MonkeyPatch, response: dict[str, Any], says: str) -> None:
    connecting(monkeypatch, **response)
    with pytest.raises(CommandFailed, match=says):
        ControllerSession("h:9001")


def test_exactly_one_kind_of_address_is_given() -> None:
    assert target("b:1", None) == ("b:1", False)
    assert target(None, "c:1") == ("c:1", True)
    with pytest.raises(click.UsageError, match="Only one of"):
        target("b:1", "c:1")
    with pytest.raises(click.UsageError, match="bootstrap-server"):
        target(None, None)
