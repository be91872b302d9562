"""SaslHandshake and SaslAuthenticate: the requests by which a client says who it is. ``broker.authentication`` decides."""

from __future__ import annotations

from tidelog.broker.request import Context
from tidelog.model.errors import ErrorCode
from tidelog.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from tidelog.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse


def sasl_handshake(ctx: Context, request: SaslHandshakeRequest) -> SaslHandshakeResponse:
    """Sent by clients with SASL before anything but ApiVersions (KIP-43), and again to re-authenticate (KIP-368).

    Errors: UNSUPPORTED_SASL_MECHANISM with the mechanisms on offer; ILLEGAL_SASL_STATE on a listener without SASL, or where
    nothing asks for re-authentication.
    """
    authentication = ctx.session.authentication
    if authentication is None:
        return SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE)
    code, offered = authentication.handshake(ctx.api_version, request.mechanism)
    return SaslHandshakeResponse(error_code=code, mechanisms=offered)


def sasl_authenticate(ctx: Context, request: SaslAuthenticateRequest) -> SaslAuthenticateResponse:
    """A token of the exchange (KIP-152). Errors: SASL_AUTHENTICATION_FAILED, ILLEGAL_SASL_STATE."""
    authentication = ctx.session.authentication
    if authentication is None:
        return SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message="This listener does not authenticate by SASL."
        )
    answer = authentication.authenticate(bytes(request.auth_bytes))
    return SaslAuthenticateResponse(
        error_code=answer.code,
        error_message=answer.message,
        auth_bytes=answer.token,
        session_lifetime_ms=answer.session_lifetime_ms,
    )
