"""AlterUserScramCredentials (KIP-554): SCRAM credentials of users, as records. The password itself never arrives here.

A client sends the salted password; what is stored is derived from it, so that a reader of the metadata log cannot log in.
"""

from __future__ import annotations

from tidelog.controller.result import MAX_RECORDS_PER_REQUEST, ControllerResult, Decision
from tidelog.metadata.records import MetadataRecord
from tidelog.metadata.snapshot import scram_record
from tidelog.metadata.supported_features import SCRAM_MV
from tidelog.model.errors import ErrorCode, KafkaError
from tidelog.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tidelog.protocol.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from tidelog.security.scram import MAX_ITERATIONS, MIN_ITERATIONS, ScramMechanism, credential_of

MAX_TEXT = 64 * 1024
"""Bytes of a name, a salt or a salted password."""


def alter_user_scram_credentials(decision: Decision, request: AlterUserScramCredentialsRequest) -> ControllerResult:
    """Applies each user's change by itself. The results are in Kafka's order: deletions, insertions, errors.

    Errors per user: DUPLICATE_RESOURCE (named twice, whatever the mechanisms), RESOURCE_NOT_FOUND (nothing to delete),
    UNACCEPTABLE_CREDENTIAL (an empty name, a number of iterations outside 4096 to 16384), UNSUPPORTED_SASL_MECHANISM,
    UNSUPPORTED_VERSION (metadata.version below 3.5-IV2).
    """
    deletions: dict[str, MetadataRecord] = {}
    insertions: dict[str, MetadataRecord] = {}
    errors: dict[str, KafkaError] = {}
    changes: list[ScramCredentialDeletion | ScramCredentialUpsertion] = [*request.deletions, *request.upsertions]
    for change in changes:
        name = change.name
        if name in errors:
            continue
        twice = deletions.pop(name, None) or insertions.pop(name, None)
        try:
            if twice is not None:
                raise KafkaError(ErrorCode.DUPLICATE_RESOURCE, f"The request names the user {name[:100]!r} more than once.")
            if isinstance(change, ScramCredentialDeletion):
                deletions[name] = _deletion(decision, change)
            else:
                insertions[name] = _insertion(decision, change)
        except KafkaError as error:
            errors[name] = error
    records = [*deletions.values(), *insertions.values()]
    if len(records) > MAX_RECORDS_PER_REQUEST:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"The request changes {len(records)} credentials; {MAX_RECORDS_PER_REQUEST} are the most at once.",
        )
    results = [AlterUserScramCredentialsResult(user=name) for name in (*deletions, *insertions)]
    results += [
        AlterUserScramCredentialsResult(user=name, error_code=error.code, error_message=error.detail)
        for name, error in errors.items()
    ]
    return ControllerResult.of(AlterUserScramCredentialsResponse(results=results), records)


def _mechanism(decision: Decision, name: str, number: int) -> ScramMechanism:
    if decision.image.metadata_version < SCRAM_MV:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "SCRAM needs metadata.version 3.5-IV2; raise it with `features upgrade`.")
    if not name:
        raise KafkaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "The name of a user must not be empty.")
    try:
        return ScramMechanism(number)
    except ValueError:
        raise KafkaError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"{number} is not the number of a SCRAM mechanism.") from None


def _deletion(decision: Decision, change: ScramCredentialDeletion) -> MetadataRecord:
    mechanism = _mechanism(decision, change.name, change.mechanism)
    if (change.name, mechanism) not in decision.image.scram:
        raise KafkaError(
            ErrorCode.RESOURCE_NOT_FOUND, f"The user {change.name[:100]!r} has no {mechanism.title} credential to delete."
        )
    return RemoveUserScramCredentialRecord(name=change.name, mechanism=mechanism)


def _insertion(decision: Decision, change: ScramCredentialUpsertion) -> MetadataRecord:
    mechanism = _mechanism(decision, change.name, change.mechanism)
    if not MIN_ITERATIONS <= change.iterations <= MAX_ITERATIONS:
        raise KafkaError(
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            f"{change.iterations} iterations, but {mechanism.title} takes {MIN_ITERATIONS} to {MAX_ITERATIONS}.",
        )
    credential = credential_of(mechanism, bytes(change.salted_password), bytes(change.salt), change.iterations)
    return scram_record(change.name, mechanism, credential)
