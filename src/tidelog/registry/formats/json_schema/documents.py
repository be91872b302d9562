"""JSON Schema documents and where a ``$ref`` in them leads: inside the document, or to a reference of the schema. Nothing is
fetched."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from tidelog.registry.errors import InvalidSchema
from tidelog.registry.formats import Document, parse_json

MAX_DEPTH = 200
MAX_HOPS = 64
MODERN = ("2019-09", "2020-12")


class Node:
    """A schema, and the document in which its references are looked up."""

    __slots__ = ("base", "pool", "schema")

    def __init__(self, schema: Any, base: str, pool: Pool) -> None:
        self.schema, self.base, self.pool = schema, base, pool

    def at(self, schema: Any) -> Node:
        """A part of the same document."""
        return Node(schema, self.base, self.pool)


class Pool:
    """A schema with its references, by their URIs."""

    def __init__(self, document: Document) -> None:
        """InvalidSchema when a text is not JSON or nested too deeply, or an id is no URI."""
        self._resources: dict[str, Any] = {}
        self._anchors: dict[tuple[str, str], Any] = {}
        for name, text in document.references.items():
            self._add(load(text), name)
        root = load(document.text)
        self.root = Node(root, self._add(root, ""), self)
        self.modern = isinstance(root, dict) and any(each in str(root.get("$schema", "")) for each in MODERN)

    def _add(self, root: Any, name: str) -> str:
        base = _id(root) or name
        self._resources.setdefault(name, root)
        self._resources.setdefault(base, root)
        for inner in _parts(root):
            own = _id(inner)
            if own is not None and inner is not root:
                if own.startswith("#"):
                    self._anchors.setdefault((base, own[1:]), inner)
                else:
                    self._resources.setdefault(_joined(base, own), inner)
            for key in ("$anchor", "$dynamicAnchor"):
                if isinstance(inner.get(key), str):
                    self._anchors.setdefault((base, inner[key]), inner)
        return base

    def target(self, node: Node, reference: str) -> Node | None:
        """Where a reference leads; None if that is not here."""
        try:
            url, fragment = urldefrag(reference)
            candidates = [node.base] if not url else [urldefrag(urljoin(node.base, url)).url, url]
        except ValueError:  # no URI
            return None
        for base in candidates:
            if base in self._resources:
                found = self._inside(base, unquote(fragment))
                if found is not None:
                    return Node(found, base, self)
        return None

    def _inside(self, base: str, fragment: str) -> Any:
        node = self._resources[base]
        if fragment and not fragment.startswith("/"):
            return self._anchors.get((base, fragment))
        for part in fragment.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, dict) and key in node:
                node = node[key]
            elif isinstance(node, list) and key.isascii() and key.isdigit() and len(key) < 10 and int(key) < len(node):
                node = node[int(key)]
            else:
                return None
        return node if isinstance(node, dict | bool) else None

    def objects(self) -> Iterator[dict[str, Any]]:
        """All objects in the root document, whether they are schemas or not."""
        return _parts(self.root.schema)

    def unresolved(self) -> list[str]:
        """The references in the root document that lead nowhere, sorted; those to meta-schemas of JSON Schema lead somewhere."""
        found = {
            inner["$ref"]
            for inner in _parts(self.root.schema)
            if isinstance(inner.get("$ref"), str)
            and self.target(self.root, inner["$ref"]) is None
            and not _is_meta(inner["$ref"])
        }
        return sorted(found)


def load(text: str) -> Any:
    """The values of a JSON text."""
    try:
        return parse_json(text)
    except (ValueError, RecursionError) as problem:
        raise InvalidSchema(f"it is not JSON: {problem}") from problem


def _joined(base: str, own: str) -> str:
    try:
        return str(urldefrag(urljoin(base, own)).url)
    except ValueError as problem:
        raise InvalidSchema(f"the id {own[:80]!r} is no URI") from problem


def _is_meta(reference: str) -> bool:
    return reference.partition("://")[2].startswith("json-schema.org/")


def _id(node: Any) -> str | None:
    if not isinstance(node, dict):
        return None
    found = node.get("$id", node.get("id"))
    return found.removesuffix("#") if isinstance(found, str) and found else None


def _parts(node: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """All objects in a document, whether they are schemas or not. Values of enum, const and the like are none."""
    if depth > MAX_DEPTH:
        raise InvalidSchema("it is nested too deeply")
    if isinstance(node, dict):
        yield node
        for key, each in node.items():
            if key not in ("enum", "const", "default", "examples"):
                yield from _parts(each, depth + 1)
    elif isinstance(node, list):
        for each in node:
            yield from _parts(each, depth + 1)
