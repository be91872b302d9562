"""What a judge's answers say of a transcript: how far each is the same, the reasons for the differences, and the page of both."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.judges.registry.transcripts import DOCUMENTS, RUNNING, Exchange

ABSENT = re.compile(r"no ((?:\[\d+\]\.)?[A-Za-z]+)")
MORE = re.compile(r"((?:\[\d+\]\.)?[A-Za-z]+) besides")


@dataclass(frozen=True, slots=True)
class Judged:
    """An exchange with what a judge answered otherwise; ``differences`` are those of ``Session.differences``."""

    file: str
    exchange: Exchange
    differences: tuple[str, ...]


def source(judge: str, differences: Sequence[str]) -> str:
    """Where an answer is known from. A judge that leaves fields out, or has more, confirms the rest."""
    if not differences:
        return f"{RUNNING}: {judge}"
    fields = [match[1] for each in differences if (match := ABSENT.fullmatch(each) or MORE.fullmatch(each))]
    if len(fields) < len(differences) or {"error_code", "message"} & set(fields):
        return DOCUMENTS
    return f"{RUNNING}: {judge}, but for {', '.join(sorted(fields))}"


# The first that fits: the request with its body, what is otherwise, why.
REASONS: tuple[tuple[str, str, str], ...] = (
    (r"(GET|POST) / ", r"", "it answers with a page of its own here"),
    (r".* /v1/metadata/(id|version)", r"status 404", "it does not serve this path"),
    (r".* /contexts", r"", "it has one context: none in paths, and a qualified name is a subject like others"),
    (r".* /subjects/:\.c:", r"", "follows from its one context"),
    (r"GET /schemas/guids/", r"", "it has no GUIDs"),
    (r"GET /schemas[? ]", r"", "it lists texts alone, and takes no filter but the prefix"),
    (r"GET .*format=ignore_extensions ", r"", "its text begins with a comment"),
    (r"GET .*format=serialized ", r"", "its descriptor is bytes in a text, not base64"),
    (r"GET /subjects/[^/]+/metadata", r"status 204", "it does not look for metadata"),
    (r"GET /subjects\?limit=0", r"body is", "a limit of 0 is none"),
    (r".*(offset|limit|subjectPrefix)=", r"body is \[", "it reads no such parameter here"),
    (
        r"PUT /config/\w+ ..(compatibilityPolicy|defaultRuleSet|alias)",
        r"status 500",
        "a config without a level is an error, and it has levels alone",
    ),
    (r"GET /subjects(/other/versions/1)? ", r".*other", "it has no aliases"),
    (r"GET /config/s", r"status 200", "the config of a subject outlives it"),
    (r"GET /config/s ", r"error_code is 40401", "a subject that is not there has no config, and no code of its own for that"),
    (
        r"GET /config/s\?defaultToGlobal",
        r"status 404",
        "a subject that is not there has no config, and no code of its own for that",
    ),
    (r"PUT /config/s .*full_transitive", r"status 422", "it takes levels in capitals alone"),
    (r"(GET|DELETE) /config/s ", r"status 404", "follows from the level that it did not take"),
    (r"GET /config ", r"compatibilityLevel is .NONE", "its level is NONE where none is set"),
    (r"PUT /mode .*SOME", r"error_code is 42201", "another code for a mode that there is not"),
    (r"PUT /mode(/s)? .*IMPORT", r"status 200", "IMPORT needs no empty registry"),
    (r"(GET|DELETE) /mode/s ", r"status 200", "a subject without a mode of its own answers with the global one"),
    (r"DELETE /mode\?", r"status 405", "the global mode is not deleted"),
    (r"DELETE /subjects/s ", r"status 200 instead of 422", "a mode READONLY does not bind it"),
    (r".*\"id\": |.*\"version\": 9", r"", "it takes no ids and versions from clients"),
    (r"GET /subjects/s/versions ", r"\[0\] is", "follows from versions that it does not take"),
    (r"POST /subjects/s/versions .*ruleSet", r"status 200", "it does not check rules"),
    (r"POST /subjects/\w+/versions .*.schema.: ..}", r"status 200", "an empty text is a schema"),
    (r"POST /subjects/(__GLOBAL|__EMPTY)", r"status 200", "it knows no ruled-out subjects"),
    (r"POST /subjects/a%0A", r"status 400", "another code for control characters"),
    (r"POST /subjects/s/versions .*shape", r"status 200", "it ignores an unknown field"),
    (r"(POST|PUT) /(subjects|config)/s.*", r"status 200 instead of 422", "a mode READONLY does not bind it"),
    (r"DELETE ", r"status 409 instead of 404$", "the same code with another status"),
    (r"POST /subjects/s/versions .*schema$", r"body is", "its refusal is no JSON"),
    (r".*", r"body is \"\" instead of \{.message", "a refusal by its framework has no body"),
    (r"GET /schemas/types", r"", "the order means nothing"),
    (r"(GET|DELETE|POST) .*/versions/(0|x|first|2147483648) ", r"status 404", "it takes what is no version for a missing one"),
    (r"POST /compatibility/subjects/none", r"status 404", "it wants the subject to be there"),
    (r"POST /compatibility.*verbose=true", r"status 422", "an invalid schema is refused, not explained"),
    (r"GET .*/referencedby ", r"body is", "it counts referrers that are soft-deleted"),
    (r"DELETE /subjects/s", r"body is .*1, 2", "it keeps a soft-deleted version whose schema was registered again"),
    (r"POST /subjects/s .*no type", r"status 404", "it compares texts before it checks the schema"),
    (r"POST /subjects/s ", r"error_code is 40403", "a subject with deleted versions alone is there"),
    (r".*", r".*another id than before", "one schema in two texts has two ids"),
    (r".*", r".*schema is ", "it keeps the text as it was sent"),
)


def reason(judged: Judged) -> str:
    """Why a judge answers otherwise; empty when that is not known."""
    return next((row[2] for row in REASONS if _fits(row, judged)), "")


def unused(judged: Sequence[Judged]) -> list[str]:
    """Reasons that are the first for no difference."""
    found = {next((row for row in REASONS if _fits(row, each)), None) for each in judged if each.differences}
    return [" ".join(row) for row in REASONS if row not in found]


def _fits(row: tuple[str, str, str], judged: Judged) -> bool:
    place, what, _ = row
    request = f"{judged.exchange.method} {judged.exchange.target} {judged.exchange.body}"
    return bool(re.match(place, request) and re.match(what, "; ".join(judged.differences)))


def page(judge: str, judged: Sequence[Judged], day: str) -> str:
    """The generated table of a run on that day."""
    asked = len(judged)
    rows = [each for each in judged if source(judge, each.differences) == DOCUMENTS]
    partly = [each for each in judged if each.differences and each not in rows]
    lines = [
        "# The registry beside Apicurio Registry",
        "",
        f"Written by `make judge-registry ARGS=--write` on {day}: the golden transcripts of `tests/golden/registry` against",
        f"{judge} and its API for Confluent's clients, version 7. In each transcript the registry is empty first.",
        "Ids are compared by which are equal. Transcripts with settings of ours (users, faults, limits) are not asked.",
        "",
        "| exchanges | the same | the same but for fields that one of both lacks | different |",
        "|---|---|---|---|",
        f"| {asked} | {asked - len(partly) - len(rows)} | {len(partly)} | {len(rows)} |",
        "",
        "Where both differ, tidelog does what Confluent's documents and clients say. `tests/golden/registry` says of each answer",
        "where it is known from.",
        "",
        "| where | request | Apicurio's answer | why |",
        "|---|---|---|---|",
    ]
    for each in rows:
        request = _cell(f"{each.exchange.method} {each.exchange.target}")
        what = "; ".join(each.differences[:3]) + ("; ..." if len(each.differences) > 3 else "")
        lines.append(f"| {each.file}:{each.exchange.line} | `{request}` | {_cell(what)} | {reason(each)} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")
