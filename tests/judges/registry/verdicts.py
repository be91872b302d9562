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


# The first that fits: where, what is otherwise, why.
REASONS: tuple[tuple[str, str, str], ...] = (
    (r".*", r"status 409 instead of 404", "it answers 409 with the same code"),
    (r"(GET|POST) /$|/v1/metadata", r".*", "it serves this path elsewhere, or not at all"),
    (r"/contexts|/subjects/:\.c:|subjectPrefix=:", r".*", "it knows no contexts in paths, and takes a qualified name for a subject"),
    (r"/schemas/guids/", r".*", "it has no GUIDs"),
    (r"GET /schemas(\?|$)", r".*", "it lists texts alone"),
    (r".* /subjects/[^/]+/metadata", r".*", "it keeps no metadata for this path, and answers 204"),
    (r"PUT /config/other|.*/subjects/other", r".*", "it has no aliases"),
    (r"GET /subjects$", r".*other.*", "it has no aliases"),
    (r".*(offset|limit)=|.*subjectPrefix=", r".*", "it ignores pages and prefixes here"),
    (r".* /(mode|config)", r"no [a-z]|.*besides", "its configs hold the level alone, and modes are global"),
    (r".* /(mode|config)", r".*", "it counts a subject without schemas as missing, has other codes, and one mode for all subjects"),
    (r"GET /schemas/types", r".*", "another order of the names"),
    (r".*", r"body is \"\" instead.*", "its refusals by path, method and type have no body"),
    (r"POST /compatibility/subjects/none", r".*", "it wants the subject to be there"),
    (r"(GET|DELETE|POST) .*/versions/[^/?]+", r".*(42202|422).*", "it takes what is no version for one that is missing"),
    (r"POST .*verbose=true", r".*", "it has no messages, and refuses an invalid schema"),
    (r"GET .*/referencedby", r".*", "it counts soft-deleted referrers too"),
    (r"DELETE /subjects/", r".*", "it keeps soft-deleted versions that were registered again, and lets go what a mode protects"),
    (r"POST /subjects/[^/]+/versions", r".*(no error_code|error_code|status|id is|body).*", "it checks names, rules, modes, given ids and empty texts less"),
    (r"POST /subjects/[^/]+(\?|$)", r".*(error_code|status).*", "it compares texts before it checks the schema, and deleted versions count"),
    (r".*", r"schema is .*|no schemaType.*", "it keeps the text as it was sent"),
    (r".*", r"\w+ is \d+, another id than before", "one schema in two texts has two ids"),
    (r".*", r"no .*|.* besides", "it has no such fields"),
    (r".*", r"body is .*", "follows from a difference above"),
)


def reason(judged: Judged) -> str:
    """Why a judge answers otherwise; empty when that is not known."""
    request = f"{judged.exchange.method} {judged.exchange.target}"
    text = "; ".join(judged.differences)
    found = (why for place, what, why in REASONS if re.match(place, request) and re.match(what, text))
    return next(found, "")


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
