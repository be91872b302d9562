from tidelog.security.principal import ANONYMOUS, KafkaPrincipal


def test_a_principal_is_named_as_acls_name_it() -> None:
    assert str(KafkaPrincipal("User", "CN=a,OU=b")) == "User:CN=a,OU=b"
    assert str(ANONYMOUS) == "User:ANONYMOUS"
