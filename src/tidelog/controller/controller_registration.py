"""Controller registration (KIP-919): each standby registers with the active controller under a fresh incarnation id."""

from __future__ import annotations

from tidelog.controller.group_principals import check_registration
from tidelog.controller.result import ControllerResult, Decision
from tidelog.metadata.image import ControllerImage, Endpoint
from tidelog.metadata.snapshot import register_controller_record
from tidelog.metadata.supported_features import CONTROLLER_REGISTRATION_MV
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.controller_registration import ControllerRegistrationRequest, ControllerRegistrationResponse


def register_controller(decision: Decision, request: ControllerRegistrationRequest) -> ControllerResult:
    """KafkaError UNSUPPORTED_VERSION while metadata.version does not have the record, or when the controller does not support
    a finalized level or does not count ACLs that the cluster has."""
    image = decision.image
    if image.metadata_version < CONTROLLER_REGISTRATION_MV:
        text = f"metadata.version {image.metadata_version} does not know registrations of controllers."
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, text)
    features = {each.name: (each.min_supported_version, each.max_supported_version) for each in request.features}
    for name, level in image.features.items():
        low, high = features.get(name, (0, 0))
        if level and not low <= level <= high:
            text = f"Controller {request.controller_id} supports {name} {low} to {high}, the cluster has {level}."
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, text)
    check_registration(image, f"controller {request.controller_id}", features)
    controller = ControllerImage(
        id=request.controller_id,
        incarnation_id=Uuid(request.incarnation_id),
        endpoints={each.name: Endpoint(each.name, each.host, each.port, each.security_protocol) for each in request.listeners},
        features=features,
        zk_migration_ready=request.zk_migration_ready,
    )
    return ControllerResult.of(ControllerRegistrationResponse(error_message=None), [register_controller_record(controller)])
