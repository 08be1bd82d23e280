"""A fitted tree as an expression of standard SQL, in which NULL is missing.

A tree is a list of "CASE WHEN ... THEN prediction", one line a leaf, and the first line that holds
counts. That makes it short: a row that comes to the lines of a branch has failed those of the
branches before it, so the last branch of a node needs no condition. The branch with most leaves
comes last. Each condition of a line then leads to at most half of the leaves above it, and a line
has at most log2(leaves) of them, however deep the tree is. Databases limit how deep an expression
may nest, not how long a CASE may be.

Where rows with missing values take all branches of a node (C4.5), the answer is a sum over leaves.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from margrove.grove.read import (
    Condition,
    TreeNames,
    branch_conditions,
    conditions_of_leaves,
    has_shared_rows,
    names_of,
    tree_of,
)
from margrove.grove.serve import LEAF, TreeArrays

__all__ = ["export_sql"]

_NEVER, _ALWAYS = "1 = 0", "1 = 1"


def export_sql(
    model: Any,
    *,
    table: str | Sequence[str] | None = None,
    columns: Mapping[str, str] | Sequence[str] | None = None,
    output: int | None = None,
    name: str = "prediction",
) -> str:
    """A fitted tree as SQL: an expression, or a query that adds its predictions to a table.

    Names are always quoted identifiers ("..."), strings always quoted literals ('...') in which
    backslashes mean nothing, as the standard says. MySQL does so in its modes ANSI_QUOTES and
    NO_BACKSLASH_ESCAPES.

    Parameters
    ----------
    model : fitted DecisionTreeClassifier or DecisionTreeRegressor
        Labels and categories must be strings, numbers or booleans.
    table : str or sequence of str, optional
        A table, or (schema, table). Then the result is a query for all its columns and the
        prediction. By default it is the expression alone, for a query of yours. Take care of the
        spelling of columns there: SQLite reads an unknown "name" as the string 'name'.
    columns : mapping or sequence of str, optional
        The column of each feature, by its name or in the order of the features. By default columns
        are called as the features are.
    output : int, optional
        Which output, of a tree with several.
    name : str, default="prediction"
        What the column of predictions is called.

    Returns
    -------
    str
        NULL is missing. NaN, where a database has it beside NULL, is not: use NULLIF(x, 'NaN').

    Examples
    --------
    >>> from margrove import DecisionTreeClassifier
    >>> from margrove.grove.export.exports import export_sql
    >>> model = DecisionTreeClassifier().fit([[1.0], [2.0], [4.0]], ["low", "low", "high"])
    >>> print(export_sql(model, columns=["size"]))
    CASE
      WHEN "size" > 3.0 THEN 'high'
      ELSE 'low'
    END
    """
    tree, names = tree_of(model), names_of(model)
    qualified = _qualified(table)
    terms = _Terms(tree, names, _columns(names, columns, qualified), _checked(output, names))
    expression = _sum_of_leaves(terms) if has_shared_rows(tree) else _first_that_holds(terms)
    if qualified is None:
        return expression
    return f"SELECT *,\n{expression}\nAS {_identifier(name)}\nFROM {qualified}"


def _checked(output: int | None, names: TreeNames) -> int:
    if output is None and names.n_outputs > 1:
        raise ValueError(f"output must say which of the {names.n_outputs} outputs is wanted.")
    if output is not None and not 0 <= output < names.n_outputs:
        raise ValueError(f"output must be from 0 to {names.n_outputs - 1}. Got {output!r}.")
    return int(output or 0)


# -- words of the language -----------------------------------------------------------------------


def _identifier(name: str) -> str:
    return '"' + _text(name).replace('"', '""') + '"'


def _text(text: str) -> str:
    """Refuse what no query can hold."""
    if not isinstance(text, str) or not text:
        raise ValueError(f"A name must be a string that is not empty. Got {text!r}.")
    return _sendable(text)


def _sendable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{text[:80]!a} holds half a character, which SQL cannot.") from None
    if "\0" in text:
        raise ValueError(f"{text[:80]!a} holds the character NUL, which SQL cannot.")
    return text


def _literal(value: Any) -> str:
    if type(value) is bool:
        return "TRUE" if value else "FALSE"
    if type(value) is int or (type(value) is float and math.isfinite(value)):
        return repr(value)
    if type(value) is str:
        return "'" + _sendable(value).replace("'", "''") + "'"
    raise TypeError(
        f"The label {str(value)[:80]!a} is a {type(value).__name__}, which SQL cannot hold. Fit "
        "the tree to strings or numbers."
    )


def _qualified(table: str | Sequence[str] | None) -> str | None:
    if table is None:
        return None
    parts = [table] if isinstance(table, str) else list(table)
    return ".".join(map(_identifier, parts))


def _columns(names: TreeNames, given: Any, table: str | None) -> list[str]:
    """The column of each feature, as an identifier."""
    found: list[Any]
    if isinstance(given, Mapping):
        strange = [name for name in given if name not in names.features]
        if strange:
            raise ValueError(f"columns names {strange[0]!r}, which is no feature of the tree.")
        found = [given.get(name, name) for name in names.features]
    else:
        found = list(names.features if given is None else given)
    if isinstance(given, str) or len(found) != len(names.features):
        raise ValueError(
            f"columns must name one column for each of the {len(names.features)} features. "
            f"Got {len(found)}."
        )
    if len(set(found)) < len(found):
        raise ValueError("Two features have the same column; columns=[...] can tell them apart.")
    return [
        _identifier(name) if table is None else f"{table}.{_identifier(name)}" for name in found
    ]


# -- conditions ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Terms:
    """What a query says of the nodes of a tree."""

    tree: TreeArrays
    names: TreeNames
    columns: list[str]
    output: int

    def prediction(self, leaf: int) -> str:
        found = self.names.prediction(self.tree.value[leaf].tolist())
        return _literal(found[self.output] if self.names.n_outputs > 1 else found)

    def conditions(self, node: int) -> list[str]:
        """What each branch of a node asks."""
        asked = branch_conditions(self.tree, self.names, node)
        return [self.condition(condition) for condition in asked]

    def condition(self, asked: Condition) -> str:
        """True where a row passes, NULL or false where it does not."""
        column = self.column(asked)
        if asked.kind == "categories":
            return _label_condition(column, asked)
        known = _range_condition(column, asked)
        if asked.missing == 0.0:
            return known
        if known == _NEVER:
            return f"{column} IS NULL"
        return f"({column} IS NULL OR {known})"

    def share(self, asked: Condition) -> str:
        """How much of a row passes, where missing values pass in part."""
        column, missing = self.column(asked), repr(asked.missing)
        if asked.kind == "categories":
            passing, failing = _among(column, asked.categories), _among(column, _excluded(asked))
            return f"CASE WHEN {passing} THEN 1.0 WHEN {failing} THEN 0.0 ELSE {missing} END"
        known = _range_condition(column, asked)
        return f"CASE WHEN {column} IS NULL THEN {missing} WHEN {known} THEN 1.0 ELSE 0.0 END"

    def column(self, asked: Condition) -> str:
        if asked.number is not None:
            return self.columns[asked.number]
        products = [
            f"{own!r} * {self.number(j)}" for j, own in enumerate(asked.coefficients) if own
        ] or ["0.0"]
        return f"({' + '.join(products)})"

    def number(self, feature: int) -> str:
        """A column as sums have it: of categories, their number."""
        labels = self.names.categories.get(feature)
        if labels is None:
            return self.columns[feature]
        cases = " ".join(f"WHEN {_literal(label)} THEN {k}" for k, label in enumerate(labels))
        return f"CASE {self.columns[feature]} {cases} END" if labels else "NULL"


def _range_condition(column: str, asked: Condition) -> str:
    if asked.low >= asked.high:
        return _NEVER
    bounds = []
    if asked.low > -math.inf:
        bounds.append(f"{column} > {asked.low!r}")
    if asked.high < math.inf:
        bounds.append(f"{column} <= {asked.high!r}")
    return " AND ".join(bounds) or f"{column} IS NOT NULL"


def _label_condition(column: str, asked: Condition) -> str:
    if asked.missing == 0.0:
        return _among(column, asked.categories)
    excluded = _excluded(asked)
    if not excluded:
        return _ALWAYS
    return f"({column} IS NULL OR NOT {_among(column, excluded)})"


def _excluded(asked: Condition) -> list[Any]:
    passing = set(asked.categories)
    return [label for label in asked.seen if label not in passing]


def _among(column: str, labels: Sequence[Any]) -> str:
    if len(labels) < 2:
        return f"{column} = {_literal(labels[0])}" if labels else _NEVER
    return f"{column} IN ({', '.join(map(_literal, labels))})"


# -- a row takes one way -------------------------------------------------------------------------


def _first_that_holds(terms: _Terms) -> str:
    """CASE WHEN ... THEN prediction ... ELSE prediction END; see the module."""
    tree = terms.tree
    n_leaves = _leaves_below(tree)
    lines: list[str] = []
    waiting: list[tuple[int, tuple[str, ...]]] = [(0, ())]
    while waiting:
        node, asked = waiting.pop()
        if tree.kind[node] == LEAF:
            start = f"WHEN {' AND '.join(asked)} THEN" if asked else "ELSE"
            lines.append(f"  {start} {terms.prediction(node)}")
            continue
        children = tree.children_of(node)
        last = _last_branch(tree, node, n_leaves[children].tolist())
        conditions = terms.conditions(node)
        waiting.append((int(children[last]), asked))
        for branch in reversed(range(len(children))):
            if branch != last:
                waiting.append((int(children[branch]), (*asked, conditions[branch])))
    if len(lines) == 1:
        return terms.prediction(0)
    return "\n".join(["CASE", *lines, "END"])


def _last_branch(tree: TreeArrays, node: int, n_leaves: list[int]) -> int:
    """That with most leaves; of equals that of missing values, which is the longest to ask for."""
    branches = range(len(n_leaves))
    return max(branches, key=lambda b: (n_leaves[b], b == tree.missing_child[node], b))


def _leaves_below(tree: TreeArrays) -> np.ndarray:
    """int64 (N,): leaves in the subtree of each node."""
    found = (tree.kind == LEAF).astype(np.int64)
    for node in range(len(tree) - 1, 0, -1):
        found[tree.parent[node]] += found[node]
    return found


# -- a row takes several ways --------------------------------------------------------------------


def _sum_of_leaves(terms: _Terms) -> str:
    """The values of leaves, each times its share of the row; of classes the one with most."""
    ways = [
        (leaf, _share_of_row(terms, asked))
        for leaf, asked in conditions_of_leaves(terms.tree, terms.names)
    ]
    if not terms.names.is_classifier:
        return _sum_of_value(terms, ways, terms.output)
    start = sum(map(len, terms.names.classes[: terms.output]))
    labels = terms.names.classes[terms.output]
    sums = [_sum_of_value(terms, ways, start + k) for k in range(len(labels))]
    shares = ",\n".join(f"{own} AS share{k}" for k, own in enumerate(sums))
    return f"(SELECT {_label_with_most(labels)}\nFROM (SELECT\n{shares}) AS shares)"


def _share_of_row(terms: _Terms, asked: Sequence[Condition]) -> str:
    whole = [terms.condition(own) for own in asked if own.missing in (0.0, 1.0)]
    parts = [terms.share(own) for own in asked if own.missing not in (0.0, 1.0)]
    if whole:
        parts.append(f"CASE WHEN {' AND '.join(whole)} THEN 1.0 ELSE 0.0 END")
    return " * ".join(parts)


def _sum_of_value(terms: _Terms, ways: list[tuple[int, str]], place: int) -> str:
    value = terms.tree.value[:, place].tolist()
    products = [f"{value[leaf]!r} * {share}" for leaf, share in ways if value[leaf] != 0.0]
    while len(products) > 1:  # in pairs, so that the expression is not deep
        pairs = [products[k : k + 2] for k in range(0, len(products), 2)]
        products = [pair[0] if len(pair) == 1 else f"({pair[0]}\n + {pair[1]})" for pair in pairs]
    return products[0] if products else "0.0"


def _label_with_most(labels: Sequence[Any]) -> str:
    """Of equals the first: one that is no less than those after it, if no earlier one was."""
    last = len(labels) - 1
    if last == 0:
        return _literal(labels[0])
    lines = []
    for k in range(last):
        wins = " AND ".join(f"share{k} >= share{other}" for other in range(k + 1, last + 1))
        lines.append(f"  WHEN {wins} THEN {_literal(labels[k])}")
    return "\n".join(["CASE", *lines, f"  ELSE {_literal(labels[last])}", "END"])
