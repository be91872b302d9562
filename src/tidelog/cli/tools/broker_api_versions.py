"""``tidelog broker-api-versions``, also installed as ``kafka-broker-api-versions``: which requests each broker serves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tidelog.cli import columns, entry, refusal
from tidelog.cli.connection_options import bootstrap_option, command_config_option

if TYPE_CHECKING:
    from tidelog.cli.admin_session import AdminSession


@click.command("broker-api-versions", context_settings={"help_option_names": ["-h", "--help"]})
@bootstrap_option
@command_config_option
@columns.output_option
def command(bootstrap_server: str | None, command_config: str | None, output: str) -> None:
    """Show the versions of each request that brokers serve, and the one that is used here."""
    from tidelog.cli.admin_session import AdminSession

    bootstrap = refusal.required(bootstrap_server)
    with refusal.one_line("Error: "), AdminSession(bootstrap, command_config) as session:
        described = []
        for broker_id, broker in session.brokers().items():
            rows = _rows(session, broker_id)
            if output == "json":
                address = {"id": broker_id, "host": broker.host, "port": broker.port, "rack": broker.rack}
                described.append(address | {"apis": rows})
                continue
            print(f"{broker.host}:{broker.port} (id: {broker_id} rack: {broker.rack or 'null'} isFenced: false) -> (")
            print(",\n".join(_line(row) for row in rows))
            print(")")
        if output == "json":
            print(columns.as_json(described))


def _line(row: columns.Row) -> str:
    """A line in the format of Kafka's tool."""
    beginning = f"\t{row['name']}({row['key']}): "
    if row["min"] is None:
        return f"{beginning}UNSUPPORTED"
    span = f"{row['min']} to {row['max']}" if row["min"] != row["max"] else f"{row['min']}"
    usable = "unusable: node too new or old" if row["usable"] is None else f"usable: {row['usable']}"
    return f"{beginning}{span} [{usable}]"


def _rows(session: AdminSession, broker_id: int) -> list[columns.Row]:
    """All APIs that clients may use, then those that the broker serves and this client does not know. Versions are None when
    it serves none, ``usable`` is None when this client supports none of them."""
    from tidelog.protocol import registry
    from tidelog.protocol.api_keys import ApiKey
    from tidelog.protocol.messages.api_versions import ApiVersionsRequest

    request = ApiVersionsRequest(client_software_name="tidelog", client_software_version="0")
    response = session.connection(broker_id).ask(request)
    refusal.check(response.error_code)
    served: dict[int, Any] = {row.api_key: row for row in response.api_keys}
    rows: list[columns.Row] = []
    for key in sorted({*served, *(int(each) for each in ApiKey if _of_clients(each))}):
        known = key in set(ApiKey)
        ours: Any = registry.request_class(key) if known else None
        name = ours.__name__.removesuffix("Request") if known else "UNKNOWN"
        if key not in served:
            rows.append({"name": name, "key": key, "min": None, "max": None, "usable": None})
            continue
        low, high = served[key].min_version, served[key].max_version
        usable = min(high, ours.MAX_VERSION) if known else -1
        fits = known and usable >= max(low, ours.MIN_VERSION)
        rows.append({"name": name, "key": key, "min": low, "max": high, "usable": usable if fits else None})
    return rows


def _of_clients(key: int) -> bool:
    """Whether clients send it to brokers; APIs between brokers and controllers may be missing."""
    from tidelog.protocol.api_keys import ApiKey

    return ApiKey(key) not in {
        ApiKey.VOTE,
        ApiKey.BEGIN_QUORUM_EPOCH,
        ApiKey.END_QUORUM_EPOCH,
        ApiKey.ALTER_PARTITION,
        ApiKey.ENVELOPE,
        ApiKey.FETCH_SNAPSHOT,
        ApiKey.BROKER_REGISTRATION,
        ApiKey.BROKER_HEARTBEAT,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.CONTROLLER_REGISTRATION,
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        ApiKey.UPDATE_RAFT_VOTER,
    }


def main() -> None:
    """``kafka-broker-api-versions``."""
    entry.run(command, "kafka-broker-api-versions")


if __name__ == "__main__":
    main()
