"""How a client comes in: the addresses, and the login as each library wants it."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import Any

SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@dataclass(frozen=True)
class Access:
    """``user``: empty for the listener in plain text. ``authority``: the file with the certificate to trust."""

    bootstrap: str
    user: str = ""
    password: str = ""
    mechanism: str = "SCRAM-SHA-512"
    authority: str = ""

    @property
    def librdkafka(self) -> dict[str, Any]:
        settings: dict[str, Any] = {"bootstrap.servers": self.bootstrap, "log_level": 0}
        if self.user:
            settings |= {"security.protocol": "SASL_SSL", "ssl.ca.location": self.authority, "sasl.mechanism": self.mechanism}
            settings |= {"sasl.username": self.user, "sasl.password": self.password}
        return settings

    @property
    def python(self) -> dict[str, Any]:
        """kafka-python and aiokafka."""
        settings: dict[str, Any] = {"bootstrap_servers": self.bootstrap.split(",")}
        if self.user:
            context = ssl.create_default_context(cafile=self.authority)
            settings |= {"security_protocol": "SASL_SSL", "ssl_context": context, "sasl_mechanism": self.mechanism}
            settings |= {"sasl_plain_username": self.user, "sasl_plain_password": self.password}
        return settings

    @property
    def java(self) -> dict[str, str]:
        if not self.user:
            return {}
        return {
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": self.authority,
            "sasl.mechanism": self.mechanism,
            "sasl.jaas.config": f'{SCRAM} required username="{self.user}" password="{self.password}";',
        }
