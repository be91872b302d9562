"""Import cycles between modules, counting imports under TYPE_CHECKING and inside functions.

Such an import hides a cycle from Python, not from a reader: two modules that name each other are one module in two files.
``known/cycles.txt`` lists the cycles of today, a line each. A cycle that is not part of a listed one fails the check; so does a
line whose cycle has become smaller or is gone, so that the list stays true.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tools.checks.tree import KNOWN, ROOT, Report, package_files, parsed

LIST = KNOWN / "cycles.txt"
Graph = Mapping[str, set[str]]


def module_name(path: Path, source: Path) -> str:
    """``tidelog.storage.unified_log`` for its file; a package has the name of its folder."""
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def named(tree: ast.Module, module: str, is_package: bool) -> Iterator[tuple[str, str | None]]:
    """Every import statement wherever it stands, as (module, name or None), relative ones resolved."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = module.split(".")
                kept = parents[: len(parents) - node.level + (1 if is_package else 0)]
                base = ".".join([*kept, *([base] if base else [])])
            yield from ((base, alias.name) for alias in node.names)


def graph_of(source: Path, files: Iterable[Path]) -> dict[str, set[str]]:
    """Which module names which: the submodule where ``from package import name`` names one, otherwise the package."""
    paths = {module_name(path, source): path for path in files}
    graph: dict[str, set[str]] = {}
    for module, path in paths.items():
        targets = set()
        for base, name in named(parsed(path), module, path.name == "__init__.py"):
            whole = f"{base}.{name}" if name else base
            targets |= {target for target in (whole if whole in paths else base,) if target in paths}
        graph[module] = targets - {module}
    return graph


def cycles(graph: Graph) -> list[tuple[str, ...]]:
    """The strongly connected components with more than one module, each sorted (Tarjan's algorithm without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    on_stack: set[str] = set()
    found = []
    for start in sorted(graph):
        if start in index:
            continue
        work = [(start, iter(sorted(graph[start])))]
        index[start] = low[start] = len(index)
        stack.append(start)
        on_stack.add(start)
        while work:
            module, targets = work[-1]
            step = next(targets, None)
            if step is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[module])
                if low[module] == index[module]:
                    cut = stack.index(module)
                    component, stack[cut:] = stack[cut:], []
                    on_stack -= set(component)
                    if len(component) > 1:
                        found.append(tuple(sorted(component)))
            elif step not in index:
                index[step] = low[step] = len(index)
                stack.append(step)
                on_stack.add(step)
                work.append((step, iter(sorted(graph[step]))))
            elif step in on_stack:
                low[module] = min(low[module], index[step])
    return sorted(found)


def compare(found: list[tuple[str, ...]], known: list[tuple[str, ...]]) -> list[str]:
    """What is new, and what the list names although it is no more."""
    findings = [
        f"import cycle: {', '.join(cycle)}: move what both need below them"
        for cycle in found
        if not any(set(cycle) <= set(line) for line in known)
    ]
    findings += [
        f"known/cycles.txt lists a cycle that is smaller or gone ({', '.join(line)}): python -m tools.checks cycles --write"
        for line in known
        if line not in found
    ]
    return findings


def current() -> list[tuple[str, ...]]:
    """The cycles of the tree as it is."""
    return cycles(graph_of(ROOT / "src", package_files()))


def known() -> list[tuple[str, ...]]:
    """The listed cycles."""
    return (
        [tuple(line.split()) for line in LIST.read_text(encoding="utf-8").splitlines() if line.strip()] if LIST.exists() else []
    )


def check() -> Report:
    found = current()
    return Report(compare(found, known()), [f"{len(found)} import cycles with {sum(map(len, found))} modules; the goal is none"])


def write() -> str:
    """Rewrite the list. A tree with more modules in cycles than listed is refused."""
    found, before = current(), known()
    if before and sum(map(len, found)) > sum(map(len, before)):
        return "refused: more modules are in import cycles than before"
    LIST.write_text("".join(" ".join(cycle) + "\n" for cycle in found), encoding="utf-8")
    return f"{len(found)} cycles"
