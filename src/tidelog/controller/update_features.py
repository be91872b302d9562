"""UpdateFeatures: changes of finalized feature levels (KIP-584)."""

from __future__ import annotations

from tidelog.controller.dynamic_configs import eligibility_anew, min_in_sync_for_all
from tidelog.controller.result import ControllerResult, Decision
from tidelog.controller.topics import Refused
from tidelog.metadata.records import MetadataRecord
from tidelog.metadata.supported_features import ELR_VERSION, FEATURES, KRAFT_VERSION, LEVELS_WITH_NEW_RECORDS, METADATA_VERSION
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.feature_level_record import FeatureLevelRecord
from tidelog.protocol.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

UPGRADE = 1
SAFE_DOWNGRADE = 2
UNSAFE_DOWNGRADE = 3
"""Values of the request's upgrade type."""


def update_features(decision: Decision, request: UpdateFeaturesRequest, version: int) -> ControllerResult:
    """Applies all updates or none. A level that this controller, a registered controller or a broker does not support is
    refused with INVALID_UPDATE_VERSION for the whole request; version 1 lists the features when all succeed."""
    seen: set[str] = set()
    proposed = {update.feature: update.max_version_level for update in request.feature_updates}
    metadata_version = proposed.get(METADATA_VERSION, decision.image.metadata_version)
    records: list[MetadataRecord] = []
    results: list[UpdatableFeatureResult] = []
    failed: Refused | None = None
    for update in request.feature_updates:
        try:
            if update.feature in seen:
                raise Refused(ErrorCode.INVALID_REQUEST, f"Feature {update.feature} is named twice.")
            seen.add(update.feature)
            records += _update(decision, update, version, metadata_version)
        except Refused as refused:
            failed = failed or refused
        results.append(UpdatableFeatureResult(feature=update.feature, error_message=None))
    if failed is not None:
        message = f"The update failed for all features since the following feature had an error: {failed.message}"
        return ControllerResult(UpdateFeaturesResponse(error_code=failed.code, error_message=message, results=[]))
    if any(update.feature == ELR_VERSION and update.max_version_level > 0 for update in request.feature_updates):
        records = min_in_sync_for_all(decision.image, decision.settings.min_insync_replicas) + records
    if proposed.get(ELR_VERSION, decision.elr_enabled) != decision.elr_enabled:
        records = eligibility_anew(decision) + records
    response = UpdateFeaturesResponse(error_code=ErrorCode.NONE, error_message=None, results=[] if version >= 2 else results)
    if request.validate_only:
        return ControllerResult(response)
    return ControllerResult(response, tuple(records), proposed.get(KRAFT_VERSION, 0) > decision.kraft.level)


def _update(decision: Decision, update: FeatureUpdateKey, version: int, metadata_version: int) -> list[MetadataRecord]:
    """``metadata_version`` is the level after the request."""
    name, level = update.feature, update.max_version_level
    feature = FEATURES.get(name)
    wrong = ErrorCode.INVALID_UPDATE_VERSION
    if feature is None:
        raise Refused(
            wrong,
            f"Invalid update version {level} for feature {name}. "
            f"Local controller {_node(decision)} does not support this feature.",
        )
    if level < 0:
        raise Refused(wrong, f"Feature {name} cannot have level {level}: levels begin at 0.")
    if version >= 1 and update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        message = (
            f"Feature {name} stays as it is: upgrade type {update.upgrade_type} is none of {UPGRADE} (upgrade), "
            f"{SAFE_DOWNGRADE} (safe downgrade) and {UNSAFE_DOWNGRADE} (unsafe downgrade)."
        )
        raise Refused(wrong, message)
    if not feature.min_level <= level <= feature.max_level:
        message = (
            f"Invalid update version {level} for feature {name}. Local controller {_node(decision)} only supports versions "
            f"{feature.min_level}-{feature.max_level}"
        )
        raise Refused(wrong, message)
    for kind, nodes in (("Broker", decision.image.brokers), ("Controller", decision.image.controllers)):
        for node in nodes.values():
            low, high = node.features.get(name, (0, 0))
            if not low <= level <= high:
                message = (
                    f"Invalid update version {level} for feature {name}. {kind} {node.id} only supports versions {low}-{high}"
                )
                raise Refused(wrong, message)
    present = decision.kraft.level if name == KRAFT_VERSION else decision.image.features.get(name, 0)
    # Kafka no longer reads allow_downgrade, so version 0, which has no other field, only upgrades.
    kind_of_update = update.upgrade_type
    if level < present and kind_of_update == UPGRADE:
        message = (
            f"Invalid update version {level} for feature {name}. Can't downgrade the version of this feature "
            "without setting the upgrade type to either safe or unsafe downgrade."
        )
        raise Refused(wrong, message)
    if level > present and kind_of_update != UPGRADE:
        message = f"Invalid update version {level} for feature {name}. Can't downgrade to a newer version."
        raise Refused(wrong, message)
    if name == METADATA_VERSION and level < present:
        _check_downgrade(present, level, kind_of_update)
    if name == KRAFT_VERSION:
        _check_kraft_version(decision, present, level)
        return []
    if level > 0 and metadata_version < feature.needs_metadata_version:
        message = (
            f"Feature {name} at level {level} needs {METADATA_VERSION} {feature.needs_metadata_version}; the cluster is at "
            f"{metadata_version}"
        )
        raise Refused(wrong, message)
    return [] if level == present else [FeatureLevelRecord(name=name, feature_level=level)]


def _check_kraft_version(decision: Decision, present: int, level: int) -> None:
    """kraft.version belongs to the quorum: the Raft machine writes its records."""
    if level < present:
        message = f"{KRAFT_VERSION} is {present} and cannot be lowered to {level}: dynamic voters have no way back."
        raise Refused(ErrorCode.INVALID_UPDATE_VERSION, message)
    if level > present and decision.kraft.refusal is not None:
        raise Refused(ErrorCode.INVALID_UPDATE_VERSION, decision.kraft.refusal)


def _check_downgrade(present: int, level: int, kind_of_update: int) -> None:
    """Refuses a downgrade when the log already holds records that the lower level does not have."""
    what = f"Unsupported metadata.version downgrade from {present} to {level}."
    if kind_of_update == UNSAFE_DOWNGRADE:
        message = f"{what} Unsafe metadata downgrade is not supported in this version."
        raise Refused(ErrorCode.INVALID_UPDATE_VERSION, message)
    if any(level < each <= present for each in LEVELS_WITH_NEW_RECORDS):
        message = f"{what} Refusing to perform the requested downgrade because it might delete metadata information."
        raise Refused(ErrorCode.INVALID_UPDATE_VERSION, message)


def _node(decision: Decision) -> int:
    """The deciding controller, which is the only one in a quorum of one; it registers as a broker at every level."""
    return next(iter(decision.image.controllers), next(iter(decision.image.brokers), -1))
