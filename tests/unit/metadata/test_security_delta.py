import pytest

from tidelog.metadata.records import MetadataLogError
from tidelog.metadata.security_delta import SecurityDelta
from tidelog.model.acl import AccessControlEntry
from tidelog.model.ids import Uuid
from tidelog.protocol.messages.access_control_entry_record import AccessControlEntryRecord
from tidelog.protocol.messages.delegation_token_record import DelegationTokenRecord
from tidelog.protocol.messages.remove_access_control_entry_record import RemoveAccessControlEntryRecord
from tidelog.protocol.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from tidelog.protocol.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from tidelog.protocol.messages.user_scram_credential_record import UserScramCredentialRecord

ID = Uuid(b"A" * 16)


def test_an_acl_is_set_and_removed_by_its_id() -> None:
    delta = SecurityDelta({}, {}, {})
    delta.set_acl(
        AccessControlEntryRecord(
            id=ID,
            resource_type=2,
            resource_name="t",
            pattern_type=3,
            principal="User:a",
            host="*",
            operation=3,
            permission_type=3,
        )
    )
    assert delta.acls.now == {ID: AccessControlEntry(2, "t", 3, "User:a", "*", 3, 3)}
    delta.remove_acl(RemoveAccessControlEntryRecord(id=ID))
    assert delta.acls.now == {}
    with pytest.raises(MetadataLogError, match="an id that does not exist"):
        delta.remove_acl(RemoveAccessControlEntryRecord(id=ID))


def test_a_scram_credential_belongs_to_a_user_and_a_mechanism() -> None:
    delta = SecurityDelta({}, {}, {})
    for mechanism in (1, 2):
        delta.set_scram(
            UserScramCredentialRecord(
                name="u", mechanism=mechanism, salt=b"s", stored_key=b"k", server_key=b"v", iterations=4096 * mechanism
            )
        )
    delta.remove_scram(RemoveUserScramCredentialRecord(name="u", mechanism=1))
    assert {key: credential.iterations for key, credential in delta.scram.now.items()} == {("u", 2): 8192}


def test_a_token_is_replaced_when_it_is_renewed_and_removed_by_its_id() -> None:
    delta = SecurityDelta({}, {}, {})
    for expiration in (3, 5):
        delta.set_token(DelegationTokenRecord(owner="o", renewers=["n"], expiration_timestamp=expiration, token_id="i"))
    assert (delta.tokens.now["i"].expiration_timestamp, delta.tokens.now["i"].renewers) == (5, ("n",))
    delta.remove_token(RemoveDelegationTokenRecord(token_id="i"))
    assert delta.tokens.now == {}
