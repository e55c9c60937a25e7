"""Reading YAML, with mistakes told as one sentence."""

from pathlib import Path
from typing import Any

import yaml

from etude.errors import UserError


class _Strict(yaml.SafeLoader):
    """YAML in which a key written twice is a mistake, not the loss of what stood there first.

    So is an alias within what it stands for, which would have no end.
    """

    def construct_document(self, node: yaml.Node) -> Any:
        self.deep_construct = True  # only then is a node looked for within itself
        return super().construct_document(node)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: dict[str, int] = {}
        for key, _ in node.value:
            word, line = str(key.value), key.start_mark.line + 1
            if word in seen:
                raise UserError(f"{self.name}, line {line}: {word} already stands in line {seen[word]}")
            seen[word] = line
        return super().construct_mapping(node, deep)


def read_yaml(file: Path) -> Any:
    """The content of a YAML file.

    Raises:
        UserError: it cannot be read or is not YAML (the line is named), holds a key twice, or itself.
    """
    try:
        with file.open(encoding="utf-8") as stream:
            return yaml.load(stream, Loader=_Strict)
    except OSError as error:
        raise UserError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not UTF-8 text") from error
    except yaml.YAMLError as error:
        raise not_yaml(error, file) from error


def not_yaml(error: yaml.YAMLError, file: Path | str) -> UserError:
    """The sentence for a file that cannot be read as YAML."""
    mark = getattr(error, "problem_mark", None)
    line = f", line {mark.line + 1}" if mark else ""
    problem = getattr(error, "problem", None) or getattr(error, "reason", error)  # of a byte that no text has
    return UserError(f"{file}{line}: this is not YAML: {problem}")
