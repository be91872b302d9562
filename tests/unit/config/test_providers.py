"""References in settings: which are replaced, by what, and what an error may say."""

from __future__ import annotations

import posixpath

import pytest

from tidelog.config.describe import Source, describe_broker
from tidelog.config.providers import resolve, unresolved, without_providers, without_values
from tidelog.config.resolve import BrokerConfig
from tidelog.model.errors import ConfigError

PACKAGE = "org.apache.kafka.common.config.provider"
ALL = {
    "config.providers": "file, dir,env",
    "config.providers.file.class": f"{PACKAGE}.FileConfigProvider",
    "config.providers.dir.class": f"{PACKAGE}.DirectoryConfigProvider",
    "config.providers.env.class": f"{PACKAGE}.EnvVarConfigProvider",
}
SECRET = "hunter2"


class World:
    """Files and an environment in memory."""

    def __init__(self) -> None:
        self.files = {
            "/run/a.properties": f"pass={SECRET}\nempty=\nnested=${{env:NAME}}\n",
            "/run/secrets/token": "tok en\n",
            "/etc/shadow": "root=x",
            "/run/broken": f"a={SECRET}\\u00zz",
        }
        self.environment = {"NAME": "ann", "OTHER": "bob"}
        self.reads: list[str] = []

    def is_absolute(self, path: str) -> bool:
        return posixpath.isabs(path)

    def is_within(self, path: str, folders: tuple[str, ...]) -> bool:
        return any(posixpath.normpath(path).startswith(folder) for folder in folders)

    def text(self, path: str) -> str:
        self.reads.append(path)
        if path == "/run/binary":
            raise UnicodeDecodeError("utf-8", SECRET.encode(), 0, 1, SECRET)
        if path not in self.files:
            raise FileNotFoundError(2, "No such file or directory", path)
        return self.files[path]

    def variable(self, name: str) -> str | None:
        return self.environment.get(name)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${file:/run/a.properties:pass}", SECRET),
        ("${file:/run/a.properties:empty}", ""),
        ("${file:/run/a.properties:nested}", "${env:NAME}"),
        ("${dir:/run/secrets:token}", "tok en\n"),
        ("${dir:/run/secrets/:token}", "tok en\n"),
        ("${env:NAME}", "ann"),
        ('x user_${env:NAME}="${file:/run/a.properties:pass}";', f'x user_ann="{SECRET}";'),
        ("${other:/a:b}", "${other:/a:b}"),
        ("${env}", "${env}"),
        ("$env:NAME", "$env:NAME"),
        ("plain", "plain"),
    ],
)
def test_references_are_replaced_once_and_other_text_stands(text: str, value: str) -> None:
    found = resolve({**ALL, "a": text}, World())
    assert found.settings["a"] == value
    assert found.provided == ({"a"} if text != value else set())


def test_without_config_providers_nothing_is_replaced() -> None:
    found = resolve({"a": "${env:NAME}", "b": "${vault:x:y}"}, World())
    assert (found.settings, found.provided) == ({"a": "${env:NAME}", "b": "${vault:x:y}"}, frozenset())
    assert unresolved(found.settings) == ["a holds ${env:...}, which is not replaced: config.providers does not name env."]
    assert unresolved({**ALL, "a": "${env:NAME}"}) == []


def test_a_file_is_read_once_and_only_when_it_is_needed() -> None:
    world = World()
    given = {**ALL, "a": "${file:/run/a.properties:pass}", "b": "${file:/run/a.properties:empty}"}
    resolve(given, world)
    assert world.reads == ["/run/a.properties"]
    assert resolve(ALL, World()).settings == ALL
    assert without_providers(resolve(given, world).settings) == {"a": SECRET, "b": ""}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (
            "${file:/run/a.properties:nope}",
            r"a: \$\{file:/run/a.properties:nope\} cannot be resolved: /run/a.properties has no key",
        ),
        ("${file:/missing:x}", "/missing cannot be read: No such file or directory"),
        ("${file:/run/broken:a}", "/run/broken is no file of key=value lines"),
        ("${file:/run/binary:a}", "/run/binary is not text in UTF-8"),
        ("${file:pass}", "it names no file"),
        ("${dir:/run/secrets:../a.properties}", "no folder and a file in it"),
        ("${dir:/run/secrets:..}", "no folder and a file in it"),
        ("${dir:/run/secrets:}", "no folder and a file in it"),
        ("${env:NOPE}", "the environment does not have it"),
        ("${env:/path:NAME}", "an environment variable has no path"),
    ],
)
def test_a_reference_without_a_value_is_an_error_that_names_it_and_shows_no_value(text: str, problem: str) -> None:
    with pytest.raises(ConfigError, match=problem) as refused:
        resolve({**ALL, "ok": "${file:/run/a.properties:pass}", "a": text}, World())
    assert SECRET not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


@pytest.mark.parametrize(
    ("limits", "text", "allowed"),
    [
        ({"file.param.allowed.paths": "/run"}, "${file:/run/a.properties:pass}", True),
        ({"file.param.allowed.paths": "/opt, /run"}, "${file:/run/a.properties:pass}", True),
        ({"file.param.allowed.paths": "/run"}, "${file:/etc/shadow:root}", False),
        ({"file.param.allowed.paths": "/run"}, "${file:/run/../etc/shadow:root}", False),
        ({"dir.param.allowed.paths": "/run"}, "${dir:/run/secrets:token}", True),
        ({"dir.param.allowed.paths": "/run"}, "${dir:/etc:shadow}", False),
        ({"env.param.allowlist.pattern": "N.*E"}, "${env:NAME}", True),
        ({"env.param.allowlist.pattern": "N"}, "${env:NAME}", False),
        ({"env.param.allowlist.pattern": "N.*"}, "${env:OTHER}", False),
    ],
)
def test_providers_read_only_what_they_are_allowed_to(limits: dict[str, str], text: str, allowed: bool) -> None:
    world = World()
    given = {**ALL, "a": text, **{f"config.providers.{name}": value for name, value in limits.items()}}
    if allowed:
        assert resolve(given, world).provided == {"a"}
        return
    with pytest.raises(ConfigError, match="does not allow"):
        resolve(given, world)
    assert world.reads == []


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"config.providers": "x"}, "config.providers.x.class is not set, but must be one of"),
        ({"config.providers": "x", "config.providers.x.class": "com.example.Vault"}, "x.class is com.example.Vault, but"),
        ({**ALL, "config.providers.file.param.allowed.path": "/run"}, "allowed.path is not a parameter of FileConfigProvider"),
        ({**ALL, "config.providers.env.param.allowed.paths": "/run"}, "is not a parameter of EnvVarConfigProvider"),
        ({**ALL, "config.providers.dir.param.allowed.paths": "run"}, "'run', which is not absolute"),
        ({**ALL, "config.providers.env.param.allowlist.pattern": "("}, "is no regular expression"),
    ],
)
def test_a_provider_that_cannot_be_had_as_it_was_asked_for_is_an_error(given: dict[str, str], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        resolve(given, World())


def test_what_a_provider_returned_is_in_no_answer() -> None:
    given = {**ALL, "num.io.threads": "${env:THREADS}", "super.users": "${env:NAME}", "num.network.threads": "7"}
    world = World()
    world.environment |= {"THREADS": "31", "NAME": "User:ann"}
    found = resolve(given, world)
    config = BrokerConfig.from_properties(found.settings, found.provided)
    assert config.num_io_threads == 31
    rows = {row.name: row for row in describe_broker(config)}
    for name in ("num.io.threads", "super.users"):
        assert rows[name].value is None
        assert rows[name].is_sensitive
        static = [each.value for each in rows[name].synonyms if each.source is Source.STATIC_BROKER]
        assert static == [None]
    assert rows["num.network.threads"].value == "7"
    assert rows["config.providers"].value == "file,dir,env"
    assert not [warning for warning in config.warnings if "config.providers" in warning]


@pytest.mark.parametrize("value", [SECRET, f"7,{SECRET}", f"{SECRET};x"])
def test_what_a_provider_returned_is_in_no_error(value: str) -> None:
    world = World()
    world.environment["V"] = value
    for name in ("num.io.threads", "listeners", "process.roles", "controller.quorum.voters", "log.cleanup.policy"):
        found = resolve({**ALL, name: "${env:V}"}, world)
        with pytest.raises(ConfigError, match=name.partition(".")[0]) as refused:
            BrokerConfig.from_properties(found.settings, found.provided)
        assert SECRET not in str(refused.value), name
        assert refused.value.__suppress_context__


def test_a_message_keeps_what_is_not_the_value() -> None:
    assert without_values("a.b is 'b', not b. See b.c.", {"a.b": "b"}, {"a.b"}) == "a.b is '[hidden]', not [hidden]. See b.c."
    assert without_values("nothing", {"a": ""}, {"a"}) == "nothing"


def test_settings_that_nothing_resolved_do_not_start_and_none_are_resolved_while_a_node_runs() -> None:
    with pytest.raises(ConfigError, match="resolved only in the file"):
        BrokerConfig.from_properties(ALL)
    config = BrokerConfig.from_properties({})
    with pytest.raises(ConfigError, match=r"config\.providers cannot be changed while the node runs"):
        config.plan_dynamic({"config.providers": "env"}, {})
    config.apply_dynamic({}, {"log.cleaner.dedupe.buffer.size": "134217728"})
    with pytest.raises(ConfigError, match=r"\$\{env:NAME\}"):
        config.plan_dynamic({}, {"num.io.threads": "${env:NAME}"})
