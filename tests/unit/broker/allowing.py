"""Access control that allows what a test says, for handlers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from tidelog.broker.ports import Client
from tidelog.model.acl import CLUSTER_NAME, AclOperation, ResourceType

Permission = tuple[AclOperation, ResourceType, str]


@dataclass
class Allowing:
    """Allows the listed permissions and nothing else; ``loud`` are the questions whose "no" is a refusal, in order."""

    permissions: set[Permission] = field(default_factory=set)
    loud: list[Permission] = field(default_factory=list)
    version: int = 0
    """Raised by ``change``."""

    def change(self, *permissions: Permission) -> None:
        """These are allowed from now on, and no others."""
        self.permissions = set(permissions)
        self.version += 1

    def allows(self, client: Client, operation: int, resource_type: int, name: str, quiet: bool, request: object = None) -> bool:
        asked = (AclOperation(operation), ResourceType(resource_type), name)
        if not quiet:
            self.loud.append(asked)
        return asked in self.permissions

    def would_allow(self, client: Client, operation: int, resource_type: int, name: str) -> bool:
        return (AclOperation(operation), ResourceType(resource_type), name) in self.permissions

    def shows(self, client: Client, operation: int, resource_type: int, name: str) -> bool:
        return self.allows(client, operation, resource_type, name, True)

    def allows_by_cluster(self, client: Client, operation: int, resource_type: int, names: Iterable[str]) -> bool:
        return self.allows(client, operation, ResourceType.CLUSTER, CLUSTER_NAME, True)

    def allows_any(self, client: Client, operation: int, resource_type: int) -> bool:
        return any(each[:2] == (operation, resource_type) for each in self.permissions)
