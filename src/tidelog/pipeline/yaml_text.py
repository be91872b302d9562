"""A pipeline's YAML: the text as plain values, and the line of each key for error messages.

``${NAME}`` in a value is the environment's NAME, ``${NAME:-text}`` has a default: keep passwords out of files.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any

from tidelog.model.errors import ConfigError
from tidelog.pipeline.model import PipelineModel
from tidelog.pipeline.reading import read_model
from tidelog.pipeline.sections import Document, Path

_VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")
MAX_DEPTH = 50


def load(path: str | FilePath) -> PipelineModel:
    """The pipeline of a file. ConfigError says what is wrong with it and where."""
    return read_model(document_of(path))


def document_of(path: str | FilePath) -> Document:
    """A file's values and their lines. ConfigError when it cannot be read or is not YAML."""
    try:
        text = FilePath(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise ConfigError(f"{path} cannot be read: {reason}. `tidelog pipeline init` writes one to begin with.") from None
    return parse(text, str(path), os.environ)


def parse(text: str, origin: str, environment: Mapping[str, str]) -> Document:
    """The values and their lines."""
    try:
        import yaml
    except ImportError:
        raise ConfigError("PyYAML is not installed: pip install 'tidelog[pipeline]'.") from None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is None:
            raise ConfigError(f"{origin} is empty. `tidelog pipeline init` writes a pipeline to begin with.")
        tree = _Tree(yaml, origin, environment)
        values = tree.value(node, ())
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise ConfigError(f"{origin}{line}: this is not YAML: {error.problem or error.context}.") from None
    except yaml.reader.ReaderError as error:
        at = text.count("\n", 0, error.position) + 1
        raise ConfigError(f"{origin}, line {at}: this is not YAML: it has the character #x{error.character:04x}.") from None
    return Document(values, origin, tree.lines, tree.written)


class _Tree:
    def __init__(self, yaml: Any, origin: str, environment: Mapping[str, str]) -> None:
        self._yaml = yaml
        self._origin = origin
        self._environment = environment
        self.lines: dict[Path, int] = {}
        self.written: dict[Path, str] = {}
        self._loader = yaml.SafeLoader("")

    def value(self, node: Any, path: Path) -> Any:
        """The value of a node; records the lines of the keys below it."""
        if len(path) > MAX_DEPTH:
            raise self._error(node, "nested too deeply")
        if isinstance(node, self._yaml.MappingNode):
            result: dict[str, Any] = {}
            for key_node, value_node in node.value:
                key = str(key_node.value)
                if key in result:
                    raise self._error(key_node, f"{'.'.join((*path, key))} is there twice")
                self.lines[(*path, key)] = key_node.start_mark.line + 1
                result[key] = self.value(value_node, (*path, key))
            return result
        if isinstance(node, self._yaml.SequenceNode):
            return [self.value(item, (*path, str(index))) for index, item in enumerate(node.value)]
        try:
            plain = self._loader.construct_object(node)
        except ValueError:  # It looks like a time or a number and is neither.
            raise self._error(node, f"{'.'.join(path)}: there is no {node.value}") from None
        if isinstance(plain, str):
            return self._filled(node, plain)
        if plain is not None:
            self.written[path] = node.value
        return plain

    def _filled(self, node: Any, text: str) -> str:
        def variable(found: re.Match[str]) -> str:
            value = self._environment.get(found[1], found[2])
            if value is None:
                raise self._error(node, f"the environment has no {found[1]}: set it, or write ${{{found[1]}:-default}}")
            return value

        return _VARIABLE.sub(variable, text)

    def _error(self, node: Any, problem: str) -> ConfigError:
        return ConfigError(f"{self._origin}, line {node.start_mark.line + 1}: {problem}.")
