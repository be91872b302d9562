"""The identity of a controller to be added as voter: id, metadata directory id, listeners, read from its own files."""

from __future__ import annotations

from tidelog.cli.refusal import CommandFailed, text_of
from tidelog.cli.settings_files import ThisMachine
from tidelog.config.properties import parse
from tidelog.config.providers import resolve
from tidelog.config.resolve import BrokerConfig
from tidelog.model.ids import ZERO_UUID, Uuid
from tidelog.records.control import Endpoint, Voter
from tidelog.storage.checkpoints import META_PROPERTIES, read_meta_properties


def read_voter(properties: str) -> Voter:
    """Reads a controller's ``server.properties``. CommandFailed when it is not a controller's, or its directory is not
    formatted."""
    from tidelog.server import component_settings
    from tidelog.server.disk import DiskFileSystem

    config = BrokerConfig(resolve(parse(text_of(properties)), ThisMachine()).settings)
    if not config.is_controller or not config.controller_endpoints:
        raise CommandFailed(f"{properties} describes no controller: process.roles and controller.listener.names must name it.")
    directory = config.metadata_log_dir or component_settings.log_dirs(config)[0]
    found = read_meta_properties(DiskFileSystem(), directory)
    if found is None:
        raise CommandFailed(f"{directory} is not formatted: run tidelog format --no-initial-controllers for it first.")
    if found.directory_id is None or found.directory_id == ZERO_UUID:
        raise CommandFailed(f"{directory}/{META_PROPERTIES} has no directory.id: it was formatted before quorums could change.")
    return Voter(config.node_id, Uuid(found.directory_id), _endpoints(config))


def _endpoints(config: BrokerConfig) -> tuple[Endpoint, ...]:
    """The controller's endpoints for other nodes: its advertised listeners if there are any."""
    told = {point.listener: point for point in config.advertised_endpoints}
    chosen = [told.get(point.listener, point) for point in config.controller_endpoints]
    return tuple(Endpoint(point.listener, point.host or "localhost", point.port) for point in chosen)
