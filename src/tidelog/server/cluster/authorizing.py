"""The authorizer of a node, fed by its committed metadata, and the audit of what it decides: both made from the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.broker.access_control import AclAccessControl, Audit
    from tidelog.config.resolve import BrokerConfig
    from tidelog.controller.quorum_member import QuorumMember
    from tidelog.server.runtime import LoopRuntime
    from tidelog.server.upkeep.auditing import Auditing


def audit_of(config: BrokerConfig, runtime: LoopRuntime) -> Auditing | None:
    """The audit that the settings ask for; None without one, and then nothing of it is imported. ConfigError when its file cannot
    be written."""
    if not (config.tidelog_audit_file or config.tidelog_audit_topic):
        return None
    from tidelog.server.upkeep.auditing import Auditing

    return Auditing(config, runtime)


def access_control(
    config: BrokerConfig, member: QuorumMember, runtime: LoopRuntime, audit: Audit | None = None
) -> AclAccessControl | None:
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
    dry_run = None
    if config.tidelog_authorizer_dry_run:
        from tidelog.broker.dry_run import DryRun

        dry_run = DryRun()
    decisions = AuthorizerLog(runtime.real_ms, dry_run=dry_run is not None)
    access = AclAccessControl(authorizer, decisions, is_loaded, audit, dry_run)
    access.follow(member.image, member.image, None)
    member.committed.listeners.insert(0, access.follow)
    return access
