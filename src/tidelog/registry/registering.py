"""Registering and looking up schemas, and testing their compatibility: functions of the state that return an ``Outcome``.

The order of a registration is Confluent's: mode; what is left out is taken from the previous version; canonical text; the same
schema alive in the subject has its version already; compatibility; the id that the schema has in the context, or the next.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tidelog.registry import contracts, errors
from tidelog.registry.guid import guid_of
from tidelog.registry.levels import FORWARD_MODE, IMPORT, Config, check_writable, config_of, group_value, mode_of
from tidelog.registry.library import Library
from tidelog.registry.model import LATEST, MAX_VERSION, Schema, Version, context_of, valid_subject
from tidelog.registry.outcome import Outcome
from tidelog.registry.records import ContextEntry, Entry, SchemaEntry, content
from tidelog.registry.state import State


@dataclass(frozen=True, slots=True)
class Rules:
    """What an operator sets for the whole registry."""

    default_level: str = "BACKWARD"
    incompatible_code: int = 409
    max_schema_bytes: int = 1 << 20


class Registering:
    """Methods raise RegistryError."""

    def __init__(self, state: State, library: Library, rules: Rules) -> None:
        self._state, self._library, self._rules = state, library, rules

    # -- registering ---------------------------------------------------------------------------------------------------------

    def register(
        self, subject: str, given: Schema, *, schema_id: int = -1, number: int = -1, normalize: bool = False, form: str = ""
    ) -> Outcome:
        """A version of the subject with the schema, a new one if none has it. ``schema_id``, ``number``: -1 for the next.

        42208, 42205, 42201, 42202, 42207, 409.
        """
        if not valid_subject(subject):
            raise errors.invalid_subject(subject)
        mode = self._mode(subject, schema_id)
        config = config_of(self._state, subject, self._rules.default_level)
        context = context_of(subject)
        there = self._state.versions(subject)
        alive = [each for each in there if not each.deleted]
        normalize = normalize or config.normalize
        contracts.rule_set_text(given.rules, check=config.validate_rules)
        schema = self._filled(given, alive[-1] if alive else None, config)
        schema = self._library.canonical(schema, context, normalize=normalize, new=config.validate_new and mode != IMPORT)
        same = self._library.same(alive, schema, normalize=normalize) if schema_id < 0 else None
        if schema_id >= 0:
            same = next((each for each in alive if each.id == schema_id and each.schema == schema), None)
        if same is not None and number in (-1, same.number) and _contract(same.schema) == _contract(schema):
            return Outcome(self._registered(same, given, form))
        if mode != IMPORT:
            self._compatible(subject, schema, alive, config)
        following = (there[-1].number if there else 0) + 1
        number = self._number(subject, number, following, mode)
        given_id = self._id(context, schema, schema_id)
        version = Version(subject, number, given_id, schema)
        entries: list[Entry] = [] if self._state.context_is_known(context) else [ContextEntry(context)]
        entries.append(SchemaEntry(version))
        outdated = [
            each
            for each in there
            if each.deleted and each.id == given_id and not self._referenced(each) and each.number != number
        ]
        entries += [SchemaEntry(each, gone=True) for each in outdated]
        foreign = [key for each in outdated for key in self._state.foreign_keys(subject, each.number)]
        return Outcome(self._registered(version, given, form), tuple(entries), tuple(foreign))

    def _mode(self, subject: str, schema_id: int) -> str:
        mode = mode_of(self._state, subject)
        if schema_id >= 0 and mode not in (IMPORT, FORWARD_MODE):
            raise errors.not_permitted(f"An id is only taken in mode IMPORT; subject '{subject}' is in mode {mode}.")
        return IMPORT if schema_id >= 0 else check_writable(self._state, subject)

    def _filled(self, given: Schema, previous: Version | None, config: Config) -> Schema:
        before = None if previous is None else previous.schema
        if not given.text.strip():
            if before is None:
                raise errors.invalid_schema("it is empty, and there is no previous version")
            given = replace(given, text=before.text, kind=before.kind, references=given.references or before.references)
        own = given.metadata if given.metadata is not None or before is None else before.metadata
        rules = given.rule_set if given.rule_set is not None or before is None else before.rule_set
        texts = [contracts.metadata_text(config.own.get(key)) for key in ("defaultMetadata", "overrideMetadata")]
        sets = [contracts.rule_set_text(config.own.get(key), check=False) for key in ("defaultRuleSet", "overrideRuleSet")]
        if any(texts):
            own = contracts.merged_metadata(texts[0], own, texts[1])
        if any(sets):
            rules = contracts.merged_rules(sets[0], rules, sets[1])
        return replace(given, metadata=own, rule_set=rules)

    def _compatible(self, subject: str, schema: Schema, alive: list[Version], config: Config) -> None:
        messages = self._messages(subject, schema, alive, config.level, config)
        if messages:
            raise errors.incompatible(subject, messages, self._rules.incompatible_code)

    def _messages(self, subject: str, schema: Schema, earlier: list[Version], level: str, config: Config) -> list[str]:
        if config.group is not None:
            value = group_value(schema, config.group)
            earlier = [each for each in earlier if group_value(each.schema, config.group) == value]
        lenient = config.policy == "LENIENT"
        return self._library.compatible(schema, context_of(subject), earlier, level, lenient=lenient)

    def _number(self, subject: str, wanted: int, following: int, mode: str) -> int:
        if wanted <= 0:
            return _left(following, f"version of '{subject}'")
        if mode == IMPORT:
            if (there := self._state.version(subject, wanted)) is not None and not there.deleted:
                raise errors.not_permitted(f"Version {wanted} of '{subject}' has another schema already.")
            return wanted
        if wanted != following:
            raise errors.RegistryError(422, 42202, f"The next version of '{subject}' is {following}, not {wanted}.")
        return wanted

    def _id(self, context: str, schema: Schema, wanted: int) -> int:
        if wanted < 0:
            found = self._state.id_of(context, schema)
            return _left(self._state.highest_id(context) + 1, "id") if found is None else found
        there = self._state.by_id(context, wanted)
        if there is not None and there != schema:
            raise errors.id_differs(wanted, "it has another schema already")
        return wanted

    def _referenced(self, version: Version) -> bool:
        return bool(self._state.referrers(version.subject, version.number))

    def _registered(self, version: Version, given: Schema, form: str) -> dict[str, Any]:
        """The answer. Clients keep its text as the one of the id: it is theirs, unless they ask for a form or sent none."""
        found = {"id": version.id, "version": version.number, "guid": guid_of(version.schema)} | self.content(version, form)
        return found | ({"schema": given.text} if given.text.strip() and not form else {})

    def content(self, version: Version, form: str = "") -> dict[str, Any]:
        """A version's schema in an answer."""
        found = content(version.schema)
        if form:
            found["schema"] = self._library.formatted(version.schema, context_of(version.subject), form)
        return found

    # -- looking up, and testing ---------------------------------------------------------------------------------------------

    def look_up(self, subject: str, given: Schema, *, deleted: bool = False, normalize: bool = False) -> Version:
        """The newest version with exactly this schema. 40401, 40403, 42201."""
        there = [each for each in self._state.versions(subject) if deleted or not each.deleted]
        if not there:
            raise errors.subject_not_found(subject)
        normalize = normalize or config_of(self._state, subject).normalize
        if not given.text.strip():
            raise errors.invalid_schema("it is empty")
        wanted = self._library.canonical(given, context_of(subject), normalize=normalize, new=False)
        found = self._library.same(there, wanted, normalize=normalize)
        if found is None:
            raise errors.schema_not_found(f"of that content under '{subject}'")
        return found

    def compatibility(self, subject: str, given: Schema, number: int | None, *, normalize: bool, verbose: bool) -> Outcome:
        """Test a schema against a version, LATEST, or (None) what the subject's level says. 40402, 42201.

        A missing subject is compatible with everything; a single version is tested alone, also by a transitive level.
        """
        config = config_of(self._state, subject, self._rules.default_level)
        alive = [each for each in self._state.versions(subject) if not each.deleted]
        earlier = alive
        level = config.level
        if number is not None:
            earlier = alive[-1:] if number == LATEST else [each for each in alive if each.number == number]
            if not earlier and number != LATEST:
                raise errors.version_not_found(subject, number)
            level = level.removesuffix("_TRANSITIVE")
        messages = _messages_or_fault(lambda: self._tested(subject, given, earlier, level, normalize, config), verbose)
        answer: dict[str, Any] = {"is_compatible": not messages}
        return Outcome(answer | ({"messages": messages} if verbose else {}))

    def _tested(
        self, subject: str, given: Schema, earlier: list[Version], level: str, normalize: bool, config: Config
    ) -> list[str]:
        if not given.text.strip():
            raise errors.invalid_schema("it is empty")
        normalize = normalize or config.normalize
        schema = self._library.canonical(given, context_of(subject), normalize=normalize, new=config.validate_new)
        return self._messages(subject, schema, earlier, level, config)


def _left(following: int, what: str) -> int:
    """42205 when an import took the last number: records and clients have 32 bits."""
    if following > MAX_VERSION:
        raise errors.not_permitted(f"There is no further {what}: {MAX_VERSION} is taken, and it is the last.")
    return following


def _contract(schema: Schema) -> tuple[str | None, str | None]:
    return schema.metadata, schema.rule_set


def _messages_or_fault(test: Callable[[], list[str]], verbose: bool) -> list[str]:
    """The messages; with ``verbose`` an invalid schema is one."""
    try:
        return test()
    except errors.RegistryError as fault:
        if verbose and fault.code == 42201:
            return [fault.message]
        raise
