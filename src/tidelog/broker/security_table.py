"""The rows of ``broker.table`` for who clients are and what they may do: logins, ACLs, SCRAM credentials, delegation tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.broker.api import NOTHING, Api, by_resource, on_cluster
from tidelog.broker.deferred import deferred
from tidelog.broker.refusals import regular
from tidelog.model.acl import AclOperation as Op
from tidelog.model.acl import ResourceType
from tidelog.protocol.api_keys import ApiKey

if TYPE_CHECKING:
    from tidelog.broker.apis.cluster import acls, delegation_tokens, sasl, scram
else:
    acls, delegation_tokens, sasl, scram = deferred("cluster", "acls", "delegation_tokens", "sasl", "scram")

SECURITY_APIS: tuple[Api, ...] = (
    Api(ApiKey.SASL_HANDSHAKE, (0, 1), broker=sasl.sasl_handshake, controller=sasl.sasl_handshake, needs=NOTHING),
    Api(ApiKey.DESCRIBE_ACLS, (1, 3), broker=acls.describe_acls, controller=acls.describe_acls, needs=on_cluster(Op.DESCRIBE)),
    Api(
        ApiKey.CREATE_ACLS,
        (1, 3),
        broker=acls.create_acls,
        controller=acls.create_acls,
        needs=on_cluster(Op.ALTER),
        forwarded=True,
        applied=acls.creations_applied,
    ),
    Api(
        ApiKey.DELETE_ACLS,
        (1, 3),
        broker=acls.delete_acls,
        controller=acls.delete_acls,
        needs=on_cluster(Op.ALTER),
        forwarded=True,
        applied=acls.deletions_applied,
    ),
    Api(ApiKey.SASL_AUTHENTICATE, (0, 2), broker=sasl.sasl_authenticate, controller=sasl.sasl_authenticate, needs=NOTHING),
    Api(
        ApiKey.CREATE_DELEGATION_TOKEN,
        (1, 3),
        broker=delegation_tokens.create_delegation_token,
        controller=delegation_tokens.create_delegation_token,
        # For another owner than the client.
        needs=by_resource((Op.CREATE_TOKENS, ResourceType.USER)),
        forwarded=True,
        forwards_itself=True,
        refuse=delegation_tokens.refuse_creation,
    ),
    Api(
        ApiKey.RENEW_DELEGATION_TOKEN,
        (1, 2),
        broker=delegation_tokens.renew_delegation_token,
        controller=delegation_tokens.renew_delegation_token,
        # The token's owner and its renewers may, by its secret.
        needs=NOTHING,
        forwarded=True,
        forwards_itself=True,
        refuse=regular(expiry_timestamp_ms=-1),
    ),
    Api(
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        (1, 2),
        broker=delegation_tokens.expire_delegation_token,
        controller=delegation_tokens.expire_delegation_token,
        needs=NOTHING,
        forwarded=True,
        forwards_itself=True,
        refuse=regular(expiry_timestamp_ms=-1),
    ),
    Api(
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        (1, 3),
        broker=delegation_tokens.describe_delegation_token,
        needs=by_resource((Op.DESCRIBE, ResourceType.DELEGATION_TOKEN), (Op.DESCRIBE_TOKENS, ResourceType.USER)),
    ),
    Api(
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        (0, 0),
        broker=scram.describe_user_scram_credentials,
        needs=on_cluster(Op.DESCRIBE),
    ),
    Api(
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        (0, 0),
        broker=scram.alter_user_scram_credentials,
        controller=scram.alter_user_scram_credentials,
        needs=on_cluster(Op.ALTER),
        forwarded=True,
    ),
)
