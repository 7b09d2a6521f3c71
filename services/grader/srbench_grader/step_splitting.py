"""Takes a test of a step apart, so that what is expected never meets the program that is tested.

A test is Python that computes something with the program's functions and asserts over `target`. Everything without
`target` runs beside the program, whose values are taken there; the assertion runs elsewhere, over these values. Pure.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass

from srbench_kit.errors import InvalidInput

TARGET = "target"
# What tests may import from upstream's own package; it is in place where assertions run.
COMPARISONS = frozenset({"cmp_tuple_or_list", "are_dicts_close", "are_csc_matrix_close", "process_symbol_in_dict"})
UPSTREAM = "scicode"


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitTest:
    """A test in two halves.

    Attributes:
        beside: what runs with the program; it hands each value over by `_srbench.keep(...)`.
        helpers: functions that the test itself defines, for its assertions.
        check: the assertions, over `target` and the values `_value0`, `_value1`, ... in the order in which they were kept.
    """

    beside: str
    helpers: str
    check: str


def split(test: str, where: str) -> SplitTest:
    """The halves of `test`; `where` is what messages call it.

    Raises: `InvalidInput` (`BAD_TESTS`) for a test that cannot be taken apart.
    """
    try:
        tree = ast.parse(test)
    except (SyntaxError, ValueError) as error:
        raise InvalidInput("BAD_TESTS", f"{where} is no Python: {error}") from error
    return _Splitter(tree, where).done()


class _Splitter:
    def __init__(self, tree: ast.Module, where: str) -> None:
        self._where = where
        self._expected = {TARGET}
        self._values = 0
        self._beside: list[ast.stmt] = []
        self._check: list[ast.stmt] = []
        self._functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        for node in tree.body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == UPSTREAM:
                continue
            self._statement(node)

    def done(self) -> SplitTest:
        texts = (self._beside, list(self._functions.values()), self._check)
        beside, helpers, check = (_text(nodes) for nodes in texts)
        return SplitTest(beside=beside, helpers=helpers, check=check)

    def _statement(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Assert):
            literal = not self._touches(node.test)
            self._check.append(ast.Assert(test=self._half(node.test, literal=literal)))
        elif not self._touches(node):
            self._beside.append(node)
        elif isinstance(node, ast.Assign) and not _names(node.value) - self._expected:
            # a, b = target
            for target in node.targets:
                self._expected |= _names(target)
            self._check.append(node)
        else:
            raise self._bad(node)

    def _half(self, node: ast.expr, *, literal: bool = False) -> ast.expr:
        """`node` with each part that knows nothing expected replaced by a value that is kept beside the program.

        `literal`: the assertion has no `target`; what is expected are the constants it compares with.
        """
        if isinstance(node, ast.Constant):
            return node
        if not self._touches(node) and not (literal and isinstance(node, ast.Compare | ast.BoolOp)):
            return self._kept(node)
        match node:
            case ast.Name() | ast.Starred():
                return node
            case ast.Call():
                return ast.Call(
                    func=self._function(node.func),
                    args=[self._half(each, literal=literal) for each in node.args],
                    keywords=[ast.keyword(each.arg, self._half(each.value, literal=literal)) for each in node.keywords],
                )
            case ast.Compare():
                right = [self._half(each, literal=literal) for each in node.comparators]
                return ast.Compare(left=self._half(node.left, literal=literal), ops=node.ops, comparators=right)
            case ast.BoolOp():
                return ast.BoolOp(op=node.op, values=[self._half(each, literal=literal) for each in node.values])
            case ast.BinOp():
                return ast.BinOp(left=self._half(node.left), op=node.op, right=self._half(node.right))
            case ast.UnaryOp():
                return ast.UnaryOp(op=node.op, operand=self._half(node.operand))
            case ast.Tuple() | ast.List():
                return type(node)(elts=[self._half(each) for each in node.elts], ctx=ast.Load())
            case ast.Attribute():
                return ast.Attribute(value=self._half(node.value), attr=node.attr, ctx=ast.Load())
            case ast.Subscript():
                return ast.Subscript(value=self._half(node.value), slice=self._half(node.slice), ctx=ast.Load())
            case _:
                raise self._bad(node)

    def _function(self, node: ast.expr) -> ast.expr:
        """A function that is called with something expected: upstream's, the test's own, a built-in, or a module's."""
        if isinstance(node, ast.Name) and (node.id in COMPARISONS | self._functions.keys() or hasattr(builtins, node.id)):
            return node
        if isinstance(node, ast.Attribute):
            # A method of something expected, or a module's function such as np.allclose.
            return self._half(node) if self._touches(node) else node
        raise self._bad(node)

    def _kept(self, node: ast.expr) -> ast.expr:
        name = f"_value{self._values}"
        self._values += 1
        keep = ast.Attribute(value=ast.Name("_srbench", ast.Load()), attr="keep", ctx=ast.Load())
        self._beside.append(ast.Expr(ast.Call(func=keep, args=[node], keywords=[])))
        return ast.Name(name, ast.Load())

    def _touches(self, node: ast.AST) -> bool:
        return bool(_names(node) & self._expected)

    def _bad(self, node: ast.AST) -> InvalidInput:
        return InvalidInput("BAD_TESTS", f"{self._where} cannot be taken apart at: {ast.unparse(node)[:200]}")


def _names(node: ast.AST) -> set[str]:
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def _text(nodes: list[ast.stmt] | list[ast.FunctionDef]) -> str:
    return "\n".join(ast.unparse(ast.fix_missing_locations(node)) for node in nodes)
