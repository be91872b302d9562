"""The authorizer of a node: made from its settings, fed by its committed metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.broker.access_control import AclAccessControl
    from tidelog.config.resolve import BrokerConfig
    from tidelog.controller.quorum_member import QuorumMember
    from tidelog.server.runtime import LoopRuntime


def access_control(config: BrokerConfig, member: QuorumMember, runtime: LoopRuntime) -> AclAccessControl | None:
    """The access control of the listeners of this process; None for a node without an authorizer, which imports nothing of it.

    It is the first listener of the committed image: requests that see an image are decided by the ACLs in it.
    """
    if not config.authorizer_class_name:
        return None
    from tidelog.broker.access_control import AclAccessControl
    from tidelog.config.authorizer import authorizer_settings
    from tidelog.security.authorizer import Authorizer
    from tidelog.security.principal import KafkaPrincipal
    from tidelog.server.serving.authorizer_log import AuthorizerLog

    settings = authorizer_settings(config.static)
    assert settings is not None

    def is_loaded() -> bool:
        committed = member.machine.high_watermark
        return 0 <= committed <= member.committed.next_offset

    authorizer = Authorizer((KafkaPrincipal(*each) for each in settings.super_users), settings.allow_without_acl)
    access = AclAccessControl(authorizer, AuthorizerLog(runtime.real_ms), is_loaded)
    access.follow(member.image, member.image, None)
    member.committed.listeners.insert(0, access.follow)
    return access
