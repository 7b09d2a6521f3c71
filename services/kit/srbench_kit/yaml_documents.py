"""The YAML half of `documents`, imported when YAML is read."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import yaml

from srbench_kit.errors import InvalidInput
from srbench_kit.values import Json


class _StrictLoader(yaml.SafeLoader):
    """Safe YAML without aliases, merge keys, duplicate keys, timestamps and keys that are not text."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            event = self.peek_event()  # type: ignore[no-untyped-call]
            line = event.start_mark.line + 1
            raise InvalidInput("YAML_ALIAS", f"line {line}: YAML aliases are not allowed", line=line)
        return super().compose_node(parent, index)

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        found: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            key, line = self.construct_object(key_node, deep=True), key_node.start_mark.line + 1
            if not isinstance(key, str):
                raise InvalidInput("BAD_KEY", f"line {line}: the key {key!r} is not text", line=line)
            if key in found:
                raise InvalidInput("DUPLICATE_KEY", f"duplicate key {key} (line {line})", field=key, line=line)
            found[key] = self.construct_object(value_node, deep=True)
        return found


_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def load(text: str, name: str, max_depth: int) -> Json:
    """The document, of JSON's types only; numbers may still not be finite. Raises: `InvalidInput`, see `load_yaml`."""
    try:
        value = yaml.load(text, Loader=_StrictLoader)
    except InvalidInput as error:
        raise InvalidInput(error.reason, f"{name}: {error.message}", **error.facts) from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it cannot be read"
        raise InvalidInput("BAD_YAML", f"{name} is not YAML: {problem}{where}") from None
    except RecursionError:
        raise InvalidInput("TOO_DEEP", f"{name} is nested deeper than {max_depth} levels") from None
    _check_json(value, name)
    result: Json = value
    return result


def _check_json(value: Any, name: str) -> None:
    match value:
        case None | bool() | int() | float() | str():
            pass
        case list():
            for item in value:
                _check_json(item, name)
        case dict():
            for item in value.values():
                _check_json(item, name)
        case _:
            raise InvalidInput("BAD_YAML", f"{name} holds a {type(value).__name__}, which JSON cannot say")
