"""Programs with one change: what tools compare graders on beside right and wrong ones."""

from __future__ import annotations

import ast
import random
from typing import Any


def altered(text: str, chance: random.Random) -> str:
    """`text` with one number, operator or result changed; as it is when it has none."""
    return _Altering(chance).apply(text)


class _Altering(ast.NodeTransformer):
    """Changes one number, operator or result."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance

    def apply(self, text: str) -> str:
        tree = ast.parse(text)
        places = [node for node in ast.walk(tree) if isinstance(node, ast.BinOp | ast.Return) or _is_number(node)]
        self._chosen = self._chance.choice(places) if places else None
        return ast.unparse(ast.fix_missing_locations(self.visit(tree)))

    def visit(self, node: ast.AST) -> Any:
        if node is not self._chosen:
            return self.generic_visit(node)
        if isinstance(node, ast.BinOp):
            others = [op for op in (ast.Add, ast.Sub, ast.Mult, ast.Div) if not isinstance(node.op, op)]
            return ast.BinOp(left=node.left, op=self._chance.choice(others)(), right=node.right)
        if isinstance(node, ast.Return):
            wrapped = [ast.Constant(None), ast.Tuple([node.value or ast.Constant(0)] * 2, ast.Load())]
            wrapped += [ast.List([node.value or ast.Constant(0)], ast.Load())]
            return ast.Return(self._chance.choice(wrapped))
        assert isinstance(node, ast.Constant)
        return ast.Constant(_number(node) + self._chance.choice((1, -1, 1e-9, 0.01)))


def _is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def _number(node: ast.Constant) -> float:
    assert isinstance(node.value, int | float)
    return node.value
