"""Secrets are compared in constant time, and are absent from ``repr``.

Comparisons: in the packages that decide who a client is, a value whose name says that it is secret goes through
``hmac.compare_digest``, never ``==``, ``!=`` or ``in``. Comparing with a constant (None, a literal, a name in capitals) is fine:
what stands in the source is no secret.

Fields: a dataclass or a NamedTuple anywhere in the package that holds such a value leaves it out of ``repr``:
``field(repr=False)``, a type that hides itself, or a ``__repr__`` of its own. A repr ends up in logs and tracebacks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tools.checks.tree import ROOT, Report, package_files, parsed

PLACES = (
    "src/tidelog/security/",
    "src/tidelog/testing/",
    "src/tidelog/broker/authentication.py",
    "src/tidelog/server/serving/",
    "src/tidelog/client/sasl.py",
    "src/tidelog/config/jks.py",
)
"""Where comparisons are looked at: both sides of a login, and the stores of keys."""
COMPARED = re.compile(r"(?:^|_)(?:proof|signature|password|passphrase|hmac|token|secret|(?:stored|server|client)_key|salted)s?$")
KEPT = re.compile(r"(?:^|_)(?:proof|password|passphrase|hmac|secret|salted|(?:stored|server|client|private)_key)$")
PLAIN_TYPES = frozenset({"str", "bytes", "bytearray", "memoryview", "Buffer"})


def name_of(node: ast.expr) -> str | None:
    """The last name of an expression whose value is compared; None for constants and for values derived from it."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return None if name.isupper() else name
        case ast.Subscript(value=value):
            return name_of(value)
        case ast.Call(func=ast.Attribute(value=value, attr="encode" | "decode" | "hex" | "digest" | "lower" | "strip")):
            return name_of(value)
        case ast.Call(func=ast.Name(id="bytes" | "str"), args=[value]):
            return name_of(value)
        case _:
            return None


def is_constant(node: ast.expr) -> bool:
    match node:
        case ast.Constant():
            return True
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.isupper()
        case ast.Tuple(elts=items) | ast.Set(elts=items) | ast.List(elts=items):
            return all(map(is_constant, items))
        case _:
            return False


def comparisons(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, comparison) for each secret that is compared in a time that depends on it."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        sides = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            if not isinstance(operator, ast.Eq | ast.NotEq | ast.In | ast.NotIn) or is_constant(left) or is_constant(right):
                continue
            sought = (left,) if isinstance(operator, ast.In | ast.NotIn) else (left, right)
            if any((name := name_of(each)) is not None and COMPARED.search(name) for each in sought):
                yield node.lineno, ast.unparse(node)


def shown_fields(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, class and field) for each secret that a generated ``repr`` shows."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef) or not _has_generated_repr(node):
            continue
        for each in node.body:
            if (
                isinstance(each, ast.AnnAssign)
                and isinstance(each.target, ast.Name)
                and KEPT.search(each.target.id)
                and _types(each.annotation) & PLAIN_TYPES
                and not _left_out(each.value)
            ):
                yield each.lineno, f"{node.name}.{each.target.id}"


def _has_generated_repr(node: ast.ClassDef) -> bool:
    if any(isinstance(each, ast.FunctionDef) and each.name == "__repr__" for each in node.body):
        return False
    made = [*node.bases, *(each.func if isinstance(each, ast.Call) else each for each in node.decorator_list)]
    return any(ast.unparse(each).rpartition(".")[2] in ("NamedTuple", "dataclass") for each in made)


def _types(annotation: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(annotation) if isinstance(each, ast.Name)}


def _left_out(value: ast.expr | None) -> bool:
    return isinstance(value, ast.Call) and any(
        each.arg == "repr" and isinstance(each.value, ast.Constant) and each.value.value is False for each in value.keywords
    )


def check() -> Report:
    report = Report()
    looked_at = 0
    for path in package_files():
        place = path.relative_to(ROOT).as_posix()
        if place.startswith(PLACES):
            looked_at += 1
            report.findings += [
                f"{place}:{line}: {text}: compare secrets with hmac.compare_digest" for line, text in comparisons(parsed(path))
            ]
        report.findings += [f"{place}:{line}: repr shows {name}: field(repr=False)" for line, name in shown_fields(parsed(path))]
    report.notes.append(f"comparisons in {looked_at} modules")
    return report


def write() -> str:
    return "nothing is listed: no secret is compared or shown"
