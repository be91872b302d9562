"""Pages are checked as they are typed: in one shell, which has only what the page set up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.check_readme import Runner, Step, fresh_path, matches, steps_of

DOCUMENT = """
<!-- run: background until "ready" -->
```console
$ . .venv/bin/activate
$ make run
```

```console
$ echo a; echo b
a
b
$ true
```

```python
print(1)
```

```text
1
```
"""


def test_blocks_become_steps_with_what_they_must_print() -> None:
    assert steps_of(DOCUMENT) == [
        Step("console", 'background until "ready"', ". .venv/bin/activate\nmake run", None),
        Step("console", "", "echo a; echo b", "a\nb\n"),
        Step("console", "", "true", None),
        Step("python", "", "print(1)\n", "1\n"),
    ]


def test_dots_stand_for_anything_and_the_rest_is_literal() -> None:
    assert matches("a ...\n...\nlast (1)", "a thing\nmore\nand more\nlast (1)")
    assert not matches("a ...\nlast", "b thing\nlast")
    assert not matches("1+1", "11")


@pytest.fixture
def runner(tmp_path: Path) -> Iterator[Runner]:
    folder, home = tmp_path / "project", tmp_path / "home"
    tools = folder / ".venv" / "bin"
    tools.mkdir(parents=True)
    home.mkdir()
    (folder / ".venv" / "pyvenv.cfg").touch()
    (tools / "tool").write_text("#!/bin/sh\necho here\n")
    (tools / "tool").chmod(0o755)
    (tools / "activate").write_text(f"PATH={tools}:$PATH\n")
    made = Runner(folder, home, {})
    yield made
    made.close()


def test_a_command_in_an_environment_is_found_only_after_a_line_that_activates_it(runner: Runner) -> None:
    problem = runner.run(Step("console", "", "tool", "here"))
    assert problem is not None and "exit status 127" in problem and "tool: command not found" in problem
    assert runner.run(Step("console", "", ". .venv/bin/activate", None)) is None
    assert runner.run(Step("console", "", "tool", "here")) is None
    assert runner.run(Step("python", "", "print('also')\n", "also")) is None


def test_another_terminal_has_nothing_activated(runner: Runner) -> None:
    assert runner.run(Step("console", "", ". .venv/bin/activate", None)) is None
    problem = runner.run(Step("console", 'background until "here"', "tool", None))
    assert problem is not None and "command not found" in problem
    assert runner.run(Step("console", 'background until "here"', ". .venv/bin/activate\ntool", None)) is None


def test_what_fails_or_prints_something_else_is_reported(runner: Runner) -> None:
    assert "exit status 3" in (runner.run(Step("console", "", "(exit 3)", None)) or "")
    assert "exit status 1" in (runner.run(Step("console", "", "false | true", None)) or "")
    assert "expected:\na" in (runner.run(Step("console", "", "echo b", "a")) or "")
    assert runner.run(Step("console", "elsewhere, by another test", "(exit 3)", None)) is None


def test_folders_of_environments_are_taken_off_the_path(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").touch()
    (tmp_path / "bin").mkdir()
    assert fresh_path(f"/usr/bin:{tmp_path}/bin:/bin") == "/usr/bin:/bin"
