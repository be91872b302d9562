"""SCRAM credentials in the metadata: which users have some, and changes. No answer holds a credential."""

from __future__ import annotations

from collections import Counter

from tidelog.broker.node import BrokerContext
from tidelog.controller.quorum_controller import QuorumController
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
)
from tidelog.protocol.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)


async def alter_user_scram_credentials(
    ctx: BrokerContext, request: AlterUserScramCredentialsRequest
) -> AlterUserScramCredentialsResponse:
    """Sent by admin clients and kafka-configs (KIP-554): sets and deletes credentials of users.

    Errors per user: see ``controller.scram_credentials``.
    """
    response: AlterUserScramCredentialsResponse = await ctx.submit(QuorumController.alter_user_scram_credentials, request)
    return response


def describe_user_scram_credentials(
    ctx: BrokerContext, request: DescribeUserScramCredentialsRequest
) -> DescribeUserScramCredentialsResponse:
    """Sent by admin clients, and by kafka-configs when it describes users (KIP-554); no user named means all of them.

    Errors per user: DUPLICATE_RESOURCE for one named twice, RESOURCE_NOT_FOUND for one without credentials.
    """
    found: dict[str, list[CredentialInfo]] = {}
    for (user, mechanism), credential in sorted(ctx.image.scram.items()):
        found.setdefault(user, []).append(CredentialInfo(mechanism=mechanism, iterations=credential.iterations))
    asked = [each.name for each in request.users] if request.users else list(found)
    twice = {name for name, times in Counter(asked).items() if times > 1}
    return DescribeUserScramCredentialsResponse(results=[_result(name, found, twice) for name in dict.fromkeys(asked)])


def _result(name: str, found: dict[str, list[CredentialInfo]], twice: set[str]) -> DescribeUserScramCredentialsResult:
    if name in twice:
        message = f"The user {name!r} is named more than once in this request."
        return DescribeUserScramCredentialsResult(name, ErrorCode.DUPLICATE_RESOURCE, message)
    if name not in found:
        message = f"The user {name!r} has no SCRAM credentials."
        return DescribeUserScramCredentialsResult(name, ErrorCode.RESOURCE_NOT_FOUND, message)
    return DescribeUserScramCredentialsResult(name, credential_infos=found[name])
