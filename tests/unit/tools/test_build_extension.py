"""The build hook compiles once for the same sources where it may keep what it compiled."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import build_extension


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Instead of a compiler: each call is noted, and makes one module that holds what its source held."""
    calls: list[str] = []

    def compile_extensions(root: Path, target: Path) -> dict[Path, Path]:
        text = (root / "src" / "package" / "_lane.pyx").read_text()
        calls.append(text)
        module = target / "built.so"
        module.write_text(f"compiled {text}")
        return {Path("package", "_lane.so"): module}

    source = tmp_path / "src" / "package" / "_lane.pyx"
    source.parent.mkdir(parents=True)
    source.write_text("first")
    monkeypatch.setattr(build_extension, "compile_extensions", compile_extensions)
    return calls


def build(root: Path) -> dict[str, str]:
    scratch = root / "scratch"
    scratch.mkdir(exist_ok=True)
    return {str(place): module.read_text() for place, module in build_extension.kept_or_compiled(root, scratch).items()}


def test_without_a_cache_each_build_compiles(compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TIDELOG_BUILD_CACHE", raising=False)
    assert build(tmp_path) == build(tmp_path) == {"package/_lane.so": "compiled first"}
    assert compiled == ["first", "first"]


def test_same_sources_are_compiled_once(compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDELOG_BUILD_CACHE", str(tmp_path / "cache"))
    assert build(tmp_path) == build(tmp_path) == {"package/_lane.so": "compiled first"}
    assert compiled == ["first"]


@pytest.mark.parametrize("name", ["_lane.pyx", "_new.pxd"])
def test_changed_source_is_compiled(compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv("TIDELOG_BUILD_CACHE", str(tmp_path / "cache"))
    build(tmp_path)
    (tmp_path / "src" / "package" / name).write_text("second")
    build(tmp_path)
    assert len(compiled) == 2


def test_other_flags_are_another_build(compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDELOG_BUILD_CACHE", str(tmp_path / "cache"))
    build(tmp_path)
    monkeypatch.setenv("CFLAGS", "-fsanitize=address")
    build(tmp_path)
    assert len(compiled) == 2


def test_failed_build_leaves_nothing_to_use(compiled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(root: Path, target: Path) -> dict[Path, Path]:
        raise RuntimeError("no compiler")

    monkeypatch.setenv("TIDELOG_BUILD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(build_extension, "compile_extensions", failing)
    with pytest.raises(RuntimeError):
        build(tmp_path)
    assert not list(tmp_path.glob("cache/*"))
