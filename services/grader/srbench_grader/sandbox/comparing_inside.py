"""Runs the assertions of a step in a sandbox that no generated code was ever in: targets from HDF5, values as text.

Needs NumPy, SciPy, SymPy and h5py; sent in as text. Layout of targets and rules of comparison are those of SciCode's own
`scicode/parse/parse.py` and `scicode/compare/cmp.py` (github.com/scicode-bench/SciCode, Apache-2.0), in words of ours.
Says no more than whether each test passed, and the type of what went wrong: never a target.
"""

from __future__ import annotations

import base64
import io
import json
import sys
from typing import Any

import h5py
import numpy
import scipy.sparse
import sympy

SPARSE = (scipy.sparse.csr_matrix, scipy.sparse.csc_matrix, scipy.sparse.bsr_matrix, scipy.sparse.coo_matrix)


_allclose, _isclose = numpy.allclose, numpy.isclose


def lone_nothing(first: Any, second: Any) -> bool:
    """Whether one of two values is empty and the other is not: NumPy broadcasts a number to nothing, which is all close."""
    return bool((numpy.size(first) == 0) != (numpy.size(second) == 0))


def allclose(first: Any, second: Any, *more: Any, **named: Any) -> bool:
    """`numpy.allclose`, but nothing is close to no number. Upstream's takes an empty array for any number."""
    return not lone_nothing(first, second) and bool(_allclose(first, second, *more, **named))


def isclose(first: Any, second: Any, *more: Any, **named: Any) -> Any:
    """`numpy.isclose`, likewise."""
    return numpy.False_ if lone_nothing(first, second) else _isclose(first, second, *more, **named)


# Tests and the problems' own helpers call them by NumPy's names.
numpy.__dict__.update(allclose=allclose, isclose=isclose)


class Other:
    """A value of a type that no target has. Equals nothing."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return False


def decode(given: Any) -> Any:
    """What `encode` beside the program made text of."""
    kind, *rest = given
    if kind == "plain":
        return rest[0]
    if kind == "int":
        return int(rest[0], 16)
    if kind == "float":
        return float.fromhex(rest[0])
    if kind == "complex":
        return complex(float.fromhex(rest[0]), float.fromhex(rest[1]))
    if kind == "bytes":
        return base64.b64decode(rest[0])
    if kind == "tuple":
        return tuple(map(decode, rest[0]))
    if kind == "list":
        return list(map(decode, rest[0]))
    if kind == "dict":
        return {decode(key): decode(item) for key, item in rest[0]}
    if kind == "set":
        return set(map(decode, rest[0]))
    if kind == "scalar":
        return decode(rest[0])[()]
    if kind == "array":
        return numpy.frombuffer(base64.b64decode(rest[2]), dtype=numpy.dtype(rest[0])).reshape(rest[1]).copy()
    if kind == "objects":
        found = numpy.empty(len(rest[1]), dtype=object)
        for place, item in enumerate(rest[1]):
            found[place] = decode(item)
        return found.reshape(rest[0])
    if kind == "sparse":
        data, row, column = map(decode, rest[2:])
        return scipy.sparse.coo_matrix((data, (row, column)), shape=tuple(rest[1])).asformat(rest[0])
    if kind == "symbol":
        return sympy.Symbol(rest[0])
    return Other()


def targets_of(file: Any, step: str, count: int) -> list[Any]:
    """The targets of a step's tests: one value alone, several as a tuple."""
    found = []
    for number in range(1, count + 1):
        group = file[f"{step}/test{number}"]
        values = [value_of(group[name]) for name in group]
        found.append(values[0] if len(values) == 1 else tuple(values))
    return found


def value_of(item: Any) -> Any:
    """One stored value; a group marks a list, a sparse matrix or a dictionary by its first member."""
    if isinstance(item, h5py.Dataset):
        return text_or(item[()])
    first = next(iter(item))
    if first == "list":
        return [item[first][name][()] for name in item[first]]
    if first == "sparse_matrix":
        return sparse_of(item[first])
    return {key: value for name in item for key, value in [entry_of(name, item[name])]}


def entry_of(name: str, item: Any) -> tuple[Any, Any]:
    """An entry of a stored dictionary; names that are numbers were numbers."""
    if isinstance(item, h5py.Group):
        return name, sparse_of(item["sparse_matrix"])
    value = item[()]
    if isinstance(value, bytes):
        return name, value.decode()
    try:
        return float(name), value
    except ValueError:
        return name, value


def text_or(value: Any) -> Any:
    """Bytes as text, all else as it is."""
    return value.decode() if isinstance(value, bytes) else value


def sparse_of(group: Any) -> Any:
    """A stored sparse matrix, in the form that its parts are of."""
    data, shape = group["data"][()], tuple(group["shape"][()])
    if "row" in group and "col" in group:
        return scipy.sparse.coo_matrix((data, (group["row"][()], group["col"][()])), shape=shape)
    parts = (data, group["indices"][()], group["indptr"][()])
    if "blocksize" in group:
        return scipy.sparse.bsr_matrix(parts, shape=shape, blocksize=tuple(group["blocksize"][()]))
    return scipy.sparse.csr_matrix(parts, shape=shape)


def process_symbol_in_dict(given: Any) -> Any:
    """A dictionary with its symbols as their names."""
    return {name_of(key): name_of(value) for key, value in given.items()}


def name_of(value: Any) -> Any:
    """A symbol's name; all else as it is."""
    return str(value) if isinstance(value, sympy.Symbol) else value


def are_dicts_close(first: Any, second: Any, atol: float = 1e-8, rtol: float = 1e-5) -> bool:
    """Whether two dictionaries have the same keys and close values."""
    first, second = process_symbol_in_dict(first), process_symbol_in_dict(second)
    return first.keys() == second.keys() and all(
        entries_close(value, second[key], atol, rtol) for key, value in first.items()
    )


def entries_close(one: Any, other: Any, atol: float, rtol: float) -> bool:
    """Whether two values of dictionaries are close, or equal where they are no numbers."""
    if isinstance(one, str):
        return bool(one == other)
    if isinstance(one, SPARSE):
        one, other = one.toarray(), other.toarray()
        return bool(numpy.allclose(one, other, atol=atol, rtol=rtol))
    return close_or_equal(one, other, atol, rtol)


def are_csc_matrix_close(first: Any, second: Any) -> bool:
    """Whether two sparse matrices are close."""
    return bool(numpy.allclose(first.toarray(), second.toarray()))


def cmp_tuple_or_list(first: Any, second: Any) -> bool:
    """Whether two sequences are as long and close item by item."""
    return len(first) == len(second) and all(map(items_close, first, second))


def items_close(one: Any, other: Any) -> bool:
    """Whether two items of sequences are close."""
    if isinstance(one, dict):
        return are_dicts_close(one, other)
    if isinstance(one, SPARSE[:2]):
        return are_csc_matrix_close(one, other)
    return bool(one == other) if isinstance(one, bool) else close_or_equal(one, other, 1e-8, 1e-5)


def close_or_equal(one: Any, other: Any, atol: float, rtol: float) -> bool:
    """`numpy.allclose`, and equality for shapes that do not go together."""
    try:
        return bool(numpy.allclose(one, other, atol=atol, rtol=rtol))
    except ValueError:
        return bool(one == other)


def compared(asked: dict[str, Any]) -> list[str]:
    """What became of each test, to the first that did not pass: `passed`, `failed`, or the type of an error."""
    names: dict[str, Any] = {each.__name__: each for each in COMPARISONS}
    exec(asked["dependencies"], names)
    with h5py.File(io.BytesIO(base64.b64decode(asked["targets"])), "r") as file:
        targets = targets_of(file, asked["step"], len(asked["tests"]))
    said: list[str] = []
    for test, target, line in zip(asked["tests"], targets, asked["values"], strict=True):
        names["target"] = target
        said.append(one_test(test, line, names))
        if said[-1] != "passed":
            break
    return said


def one_test(test: dict[str, str], line: str, names: dict[str, Any]) -> str:
    """Runs the assertions of one test over the values in `line`."""
    try:
        names.update({f"_value{place}": decode(value) for place, value in enumerate(json.loads(line))})
        exec(test["helpers"], names)
        exec(test["check"], names)
    except AssertionError:
        return "failed"
    except Exception as error:
        return f"error {type(error).__name__}"
    return "passed"


COMPARISONS = (cmp_tuple_or_list, are_dicts_close, are_csc_matrix_close, process_symbol_in_dict)


if __name__ == "__main__":
    print(json.dumps(compared(json.load(sys.stdin))))
