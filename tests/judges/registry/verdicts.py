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
    (r"GET /schemas[? ]", r"", "it lists texts alone, and filters none"),
    (r"GET /subjects/[^/]+/metadata", r"status 204", "it does not look for metadata"),
    (r".*(offset|limit|subjectPrefix)=", r"", "it reads no such parameter here"),
    (r".*/(config|subjects)/other", r"", "it has no aliases"),
    (r"GET /subjects ", r".*other", "it has no aliases"),
    (r"(GET|DELETE) /config/s", r"", "a subject without schemas has no config, and no code of its own for that"),
    (r"(GET|DELETE) /config ", r"compatibilityLevel is .NONE", "its level is NONE where none is set"),
    (r"PUT /config/s .*full_transitive", r"", "it takes levels in capitals alone"),
    (r"PUT /config/s .*(Policy|RuleSet)", r"status 500", "it does not know these fields of a config"),
    (r"(PUT|GET|DELETE) /mode/s", r"", "it has one mode for all subjects"),
    (r"PUT /mode .*SOME", r"error_code is 42201", "another code for a mode that there is not"),
    (r"PUT /mode .*IMPORT", r"status 200", "IMPORT needs no empty registry"),
    (r"DELETE /mode", r"status 405", "modes are not deleted"),
    (r"GET /mode", r"", "its mode is of all subjects, and is not deleted"),
    (r"DELETE /subjects/s ", r"status 200", "the mode of a subject does not bind it"),
    (r".*\"id\": |.*\"version\": 9", r"", "it takes no ids and versions from clients"),
    (r"POST /subjects/s/versions .*ruleSet", r"status 200", "it does not check rules"),
    (r"POST /subjects/s/versions .*.schema.: .., ", r"status 200", "an empty text is a schema"),
    (r"POST /subjects/s/versions .*.schema.: ..}", r"status 200", "an empty text is a schema"),
    (r"(POST|PUT) /(subjects|config)/s.*", r".*status 200 instead of 422.*besides", "a mode READONLY does not bind it"),
    (r"POST /subjects/s/versions .*", r"status 200 instead of 409", "it compares only where a level is set for the subject"),
    (r".*", r"status 409 instead of 404$", "the same code with another status"),
    (r".*", r"body is \"\" instead of \{.message", "a refusal by its framework has no body"),
    (r"GET /schemas/types", r"", "the order means nothing"),
    (r"(GET|DELETE|POST) .*/versions/(0|x|first|2147483648) ", r"status 404", "it takes what is no version for a missing one"),
    (r"POST /compatibility/subjects/none", r"status 404", "it wants the subject to be there"),
    (r"POST /compatibility.*verbose=true", r"status 422", "an invalid schema is refused, not explained"),
    (r"GET .*/referencedby", r"body is", "it counts referrers that are soft-deleted"),
    (r"DELETE /subjects/s", r"body is .*1, 2", "it keeps a soft-deleted version whose schema was registered again"),
    (r".*THRIFT|.*__GLOBAL|.*__EMPTY|.*%0A", r"", "it knows no ruled-out subjects, and has another code for control characters"),
    (r".*shape", r"", "it has another code for an unknown field, and does not let clients have them ignored"),
    (r"POST /subjects/[^/]+/versions .*schema$", r"body is", "its refusal is no JSON"),
    (r"POST /subjects/s .*no type", r"error_code|status", "it compares texts before it checks the schema"),
    (r"POST /subjects/s ", r"error_code is 40403", "a subject with deleted versions alone is there"),
    (r".*", r".*another id than before", "one schema in two texts has two ids"),
    (r".*", r".*schema is ", "it keeps the text as it was sent"),
    (r"GET /subjects/s/versions ", r"body is", "follows from ids and versions that it does not take"),
)


def reason(judged: Judged) -> str:
    """Why a judge answers otherwise; empty when that is not known."""
    request = f"{judged.exchange.method} {judged.exchange.target} {judged.exchange.body}"
    text = "; ".join(judged.differences)
    return next((why for place, what, why in REASONS if re.match(place, request) and re.match(what, text)), "")


def page(judge: str, judged: Sequence[Judged]) -> str:
    """The generated table."""
    asked = len(judged)
    rows = [each for each in judged if source(judge, each.differences) == DOCUMENTS]
    partly = [each for each in judged if each.differences and each not in rows]
    lines = [
        "# The registry beside Apicurio Registry",
        "",
        f"Written by `make judge-registry`: the golden transcripts of `tests/golden/registry` against {judge} and its API for",
        "Confluent's clients, version 7. In each transcript the registry is empty first. Ids are compared by which are equal.",
        "Transcripts with settings of ours (users, faults, limits) are not asked.",
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
