"""CreateAcls and DeleteAcls (KIP-140, KIP-290): ACLs as records of the metadata log.

A record with a known id, a second ACL with the same content, or the removal of an unknown id stops a node of Apache Kafka that
replays it: none of them is ever written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.controller.group_principals import check_new_acl
from tidelog.controller.result import MAX_RECORDS_PER_REQUEST, ControllerResult, Decision
from tidelog.metadata.snapshot import acl_record
from tidelog.model.acl import AccessControlEntry, PatternType, ResourceType, acl_of
from tidelog.model.acl_filter import MAX_CHANGES, AclFilter, check_creation
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.model.ids import Uuid, random_uuid
from tidelog.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from tidelog.protocol.messages.delete_acls import (
    DeleteAclsFilter,
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from tidelog.protocol.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord


def create_acls(decision: Decision, request: CreateAclsRequest) -> ControllerResult:
    """Creates each ACL that does not exist; one that exists is a success without a record.

    INVALID_REQUEST or UNSUPPORTED_VERSION for a creation that ``check_creation`` or ``check_new_acl`` refuses; the others are
    created all the same. KafkaError POLICY_VIOLATION for more than 10,000 new ACLs.
    """
    asked = [acl_of(each, each.resource_pattern_type) for each in request.creations]
    names = {each.resource_name for each in asked}
    known = {each for each in decision.image.acls.values() if each.resource_name in names}
    created: dict[Uuid, AccessControlEntry] = {}
    results = []
    for entry in asked:
        try:
            check_creation(entry)
            check_new_acl(decision.image, entry)
        except KafkaError as error:
            results.append(AclCreationResult(error_code=error.code, error_message=error.detail))
            continue
        if entry not in known:
            known.add(entry)
            created[_new_id(decision, created)] = entry
        results.append(AclCreationResult())
    if len(created) > MAX_RECORDS_PER_REQUEST:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"The request creates {len(created)} ACLs; {MAX_RECORDS_PER_REQUEST} are the most at once.",
        )
    return ControllerResult.of(
        CreateAclsResponse(results=results), (acl_record(acl_id, entry) for acl_id, entry in created.items())
    )


def delete_acls(decision: Decision, request: DeleteAclsRequest) -> ControllerResult:
    """Deletes what the filters find, all or nothing; an ACL that two filters find is in both results.

    INVALID_REQUEST for a filter that ``AclFilter.check`` refuses. KafkaError INVALID_REQUEST when the filters find more than
    10,000 ACLs.
    """
    acls = decision.image.acls
    places = _by_pattern(acls)
    removed: dict[Uuid, None] = {}
    results = []
    for asked in request.filters:
        wanted = _filter(asked)
        try:
            wanted.check()
        except KafkaError as error:
            results.append(DeleteAclsFilterResult(error_code=error.code, error_message=error.detail))
            continue
        matching = []
        for acl_id in _candidates(wanted, acls, places):
            if wanted.matches(acls[acl_id]):
                if len(removed) >= MAX_CHANGES:
                    raise KafkaError(
                        ErrorCode.INVALID_REQUEST, f"The filters match more than {MAX_CHANGES} ACLs. Delete fewer at once."
                    )
                removed[acl_id] = None
                matching.append(_matching(acls[acl_id]))
        results.append(DeleteAclsFilterResult(error_message=None, matching_acls=matching))
    records = (RemoveAccessControlEntryRecord(id=acl_id) for acl_id in removed)
    return ControllerResult.of(DeleteAclsResponse(filter_results=results), records)


def _new_id(decision: Decision, created: Mapping[Uuid, object]) -> Uuid:
    while True:
        acl_id = random_uuid(decision.rng)
        if acl_id not in decision.image.acls and acl_id not in created:
            return acl_id


def _filter(asked: DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        resource_type=asked.resource_type_filter,
        resource_name=asked.resource_name_filter,
        pattern_type=asked.pattern_type_filter,
        principal=asked.principal_filter,
        host=asked.host_filter,
        operation=asked.operation,
        permission_type=asked.permission_type,
    )


def _by_pattern(acls: Mapping[Uuid, AccessControlEntry]) -> dict[tuple[int, int, str], list[Uuid]]:
    """The ACLs by resource type, pattern type and name, so that many filters do not each read all ACLs."""
    found: dict[tuple[int, int, str], list[Uuid]] = {}
    for acl_id, entry in acls.items():
        found.setdefault((entry.resource_type, entry.pattern_type, entry.resource_name), []).append(acl_id)
    return found


def _candidates(
    wanted: AclFilter, acls: Mapping[Uuid, AccessControlEntry], places: Mapping[tuple[int, int, str], list[Uuid]]
) -> Iterable[Uuid]:
    """All ACLs that the filter may find."""
    if (
        wanted.resource_name is None
        or wanted.resource_type == ResourceType.ANY
        or wanted.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED)
    ):
        return acls
    return places.get((wanted.resource_type, wanted.pattern_type, wanted.resource_name), ())


def _matching(entry: AccessControlEntry) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=entry.resource_type,
        resource_name=entry.resource_name,
        pattern_type=entry.pattern_type,
        principal=entry.principal,
        host=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )
