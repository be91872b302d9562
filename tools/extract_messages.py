"""Takes the facts of every message out of Apache Kafka's jars and writes them as ``src/tidelog/protocol/definitions/*.txt``.

Needed only when tidelog moves to another Kafka. Facts are names, numbers, types, version ranges, tags and defaults; the
prose in the schemas stays where it is. Each jar must have the SHA-256 pinned here.

    python tools/extract_messages.py FOLDER_WITH_JARS
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
import zipfile
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any

KAFKA = "4.4.0"
PINNED = {
    "kafka-clients": "1ab07317eb6633241392449d329dbdc5d9251e6ffc4926860f42dd966e88bdf9",
    "kafka-metadata": "6c52de74ecd670332e1e1324f5d40311275ac49b22699b6722e5fb07dd266fcb",
    "kafka-group-coordinator": "3fc830ace54f6a13f9f536bc0564bf39a68797365a4c4b194bd7db4fb893b2bc",
    "kafka-transaction-coordinator": "1d5324d59776d6b7f324cfdc87647b1e88f9823332201c0324e7ae9f210d915d",
    "kafka-share-coordinator": "6969a7961ca98d37a039bbe0af0fe761d6b0dd07ca9666802f47821167afbb6e",
    "kafka-raft": "687f278ce5d82b7f53644643e21e1a7452530f202826108990f0fe4f3d334d4f",
    "kafka-storage": "9eaa4dafacc251080ece0efa8511283da5de6931e843457f6af87f02f9b50039",
}
FILES = {
    "kafka-clients": "clients",
    "kafka-metadata": "metadata",
    "kafka-group-coordinator": "group_coordinator",
    "kafka-transaction-coordinator": "transaction_coordinator",
    "kafka-share-coordinator": "share_coordinator",
    "kafka-raft": "raft",
    "kafka-storage": "storage",
}
KINDS = {"coordinator-key": "key", "coordinator-value": "value", "metadata": "metadata"}
SECRETS = {
    "SaslAuthenticateRequest": {"AuthBytes"},
    "SaslAuthenticateResponse": {"AuthBytes"},
    "AlterConfigsRequest": {"Value"},
    "IncrementalAlterConfigsRequest": {"Value"},
    "CreateDelegationTokenResponse": {"Hmac"},
    "RenewDelegationTokenRequest": {"Hmac"},
    "ExpireDelegationTokenRequest": {"Hmac"},
    "DescribeDelegationTokenResponse": {"Hmac"},
    "AlterUserScramCredentialsRequest": {"SaltedPassword"},
    "EnvelopeRequest": {"RequestData"},
    "EnvelopeResponse": {"ResponseData"},
    "UserScramCredentialRecord": {"StoredKey", "ServerKey"},
    "ConfigRecord": {"Value"},
}
"""Fields that hold a secret, or bytes in which there may be one, at any depth of the message. Kafka's schemas do not say so."""
DEFINITIONS = Path(__file__).parent.parent / "src/tidelog/protocol/definitions"


def checked_jar(folder: Path, artifact: str) -> Path:
    """The jar, after its checksum was compared with the pinned one."""
    path = folder / f"{artifact}-{KAFKA}.jar"
    if not path.exists():
        sys.exit(f"{path} is not there; it is {artifact} {KAFKA} of Maven Central, group org.apache.kafka")
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != PINNED[artifact]:
        sys.exit(f"{path} has SHA-256 {found}, pinned is {PINNED[artifact]}: get the released jar, or change the pin knowingly")
    return path


def schemas(jar: Path) -> Iterator[dict[str, Any]]:
    """The schemas in a jar that still have versions."""
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if re.fullmatch(r"(common/)?(message|metadata)/\w+\.json", name):
                text = re.sub(r"^\s*//.*$", "", archive.read(name).decode(), flags=re.MULTILINE)
                schema = json.loads(text)
                if schema["validVersions"] != "none":
                    yield schema


def field_lines(fields: list[dict[str, Any]], depth: int, secrets: Set[str]) -> Iterator[str]:
    """One line per field, nested ones below. ``secrets``: names of fields that are marked."""
    for field in fields:
        name, type_ = field["name"], field["type"]
        tagged = field.get("taggedVersions", "none")
        name = name[0].upper() + name[1:]
        words = [name, type_, field.get("versions", tagged).replace(" ", "")]
        if "tag" in field and tagged != "none":
            words.append(f"tag={field['tag']}@{tagged}")
        if field.get("nullableVersions", "none") != "none":
            words.append(f"null={field['nullableVersions']}")
        default = field.get("default")
        if default not in (None, ""):
            words.append(f"default={default if isinstance(default, str) else json.dumps(default)}")
        if field.get("ignorable"):
            words.append("ignorable")
        if field.get("flexibleVersions") == "none":
            words.append("never-flexible")
        if name in secrets:
            words.append("secret")
        yield "  " * depth + " ".join(words)
        yield from field_lines(field.get("fields", []), depth + 1, secrets)


def message_lines(schema: dict[str, Any]) -> Iterator[str]:
    """One message."""
    kind, secrets = schema["type"], SECRETS.get(schema["name"], set())
    words = [KINDS.get(kind, kind), schema["name"]]
    if "apiKey" in schema:
        words.append(f"key={schema['apiKey']}")
    words += [f"versions={schema['validVersions']}", f"flexible={schema['flexibleVersions']}"]
    if "listeners" in schema:
        words.append("listeners=" + ",".join(schema["listeners"]))
    if schema.get("latestVersionUnstable"):
        words.append("latest-unstable")
    yield " ".join(words)
    yield from field_lines(schema["fields"], 1, secrets)
    for struct in schema.get("commonStructs", []):
        yield f"  struct {struct['name']}"
        yield from field_lines(struct["fields"], 2, secrets)


def main() -> None:
    """Writes one file per jar."""
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    DEFINITIONS.mkdir(exist_ok=True)
    for artifact, name in FILES.items():
        found = sorted(
            schemas(checked_jar(Path(sys.argv[1]), artifact)), key=lambda s: (s.get("apiKey", 9999), s["type"], s["name"])
        )
        head = [
            f"# Facts of {len(found)} messages, taken by tools/extract_messages.py from {artifact}-{KAFKA}.jar.",
            "# Origin: Apache Kafka, Copyright The Apache Software Foundation, Apache License 2.0; see NOTICE.",
            "# How to read this: protocol/schema.py.",
        ]
        lines = [line for schema in found for line in ("", *message_lines(schema))]
        (DEFINITIONS / f"{name}.txt").write_text("\n".join(head + lines) + "\n")
        print(f"{name}.txt: {len(found)} messages")


if __name__ == "__main__":
    main()
