"""Read YAML files, and report mistakes in them as one sentence."""

from pathlib import Path
from typing import Any

import yaml

from etude.errors import UserError


class _Strict(yaml.SafeLoader):
    """A YAML loader that rejects duplicate keys, where PyYAML keeps the last one, and aliases to a node around them."""

    def construct_document(self, node: yaml.Node) -> Any:
        self.deep_construct = True  # otherwise PyYAML does not detect a node that contains itself
        return super().construct_document(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: dict[str, int] = {}
        for key, _ in node.value:
            word, line = str(key.value), key.start_mark.line + 1
            if word in seen:
                raise UserError(f"{self.name}, line {line}: {word} is in line {seen[word]} already")
            seen[word] = line
        return super().construct_mapping(node, deep)


def read_yaml(file: Path) -> Any:
    """Load a YAML file.

    Raises:
        UserError: it cannot be read, is not YAML (the line is named), has a duplicate key, or a node contains itself.
    """
    try:
        with file.open(encoding="utf-8") as stream:
            return yaml.load(stream, Loader=_Strict)
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not UTF-8 text") from error
    except (yaml.YAMLError, ValueError) as error:  # a ValueError: a date that does not exist
        raise not_yaml(error, file) from error


def not_yaml(error: Exception, file: Path | str) -> UserError:
    """Make the error for a file that cannot be parsed as YAML."""
    mark = getattr(error, "problem_mark", None)
    line = f", line {mark.line + 1}" if mark else ""
    problem = getattr(error, "problem", None) or getattr(error, "reason", error)  # `reason`: invalid byte
    if "mapping values are not allowed" in str(problem):
        problem = f"{problem}; a text that contains a colon needs quotes"
    return UserError(f"{file}{line}: this is not YAML: {problem}")
