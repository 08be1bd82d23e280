"""A fitted tree as an expression of standard SQL, in which NULL is missing.

A tree is a list of "CASE WHEN ... THEN prediction", one line for each leaf, and the first line that
is true counts. That makes it short: a row that reaches the lines of a branch has failed those of
the branches before it, so the last branch of a node needs no condition. The branch with most leaves
comes last. Each condition of a line then at least halves the number of leaves, so a line has at
most log2(leaves) conditions, however deep the tree is. Databases limit how deep an expression may
nest, not how long a CASE may be.

If rows with missing values take all branches of a node (C4.5), the prediction is a sum over leaves.
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
        prediction. By default it is only the expression, for a query of your own. Check the
        spelling of columns there: SQLite reads an unknown "name" as the string 'name'.
    columns : mapping or sequence of str, optional
        The column of each feature, by its name or in the order of the features. By default columns
        have the names of the features.
    output : int, optional
        Which output, if the tree has several.
    name : str, default="prediction"
        The name of the column of predictions.

    Returns
    -------
    str
        NULL is missing. NaN, in databases that have it, is not: use NULLIF(x, 'NaN').

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


# -- identifiers and literals --------------------------------------------------------------------


def _identifier(name: str) -> str:
    return '"' + _text(name).replace('"', '""') + '"'


def _text(text: str) -> str:
    """The name, if a query can contain it; else a ValueError."""
    if not isinstance(text, str) or not text:
        raise ValueError(f"A name must be a string that is not empty. Got {text!r}.")
    return _sendable(text)


def _sendable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"{text[:80]!a} contains half a character, which SQL cannot contain. Rename it."
        ) from None
    if "\0" in text:
        raise ValueError(
            f"{text[:80]!a} contains the character NUL, which SQL cannot contain. Rename it."
        )
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
            raise ValueError(f"columns names {strange[0]!r}, which is not a feature of the tree.")
        found = [given.get(name, name) for name in names.features]
    else:
        found = list(names.features if given is None else given)
    if isinstance(given, str) or len(found) != len(names.features):
        raise ValueError(
            f"columns must name one column for each of the {len(names.features)} features. "
            f"Got {len(found)}."
        )
    if len(set(found)) < len(found):
        raise ValueError("Two features have the same column. Use columns=[...] with other names.")
    return [
        _identifier(name) if table is None else f"{table}.{_identifier(name)}" for name in found
    ]


# -- conditions ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Terms:
    """The parts of a query that stand for the nodes of a tree."""

    tree: TreeArrays
    names: TreeNames
    columns: list[str]
    output: int

    def prediction(self, leaf: int) -> str:
        found = self.names.prediction(self.tree.value[leaf].tolist())
        return _literal(found[self.output] if self.names.n_outputs > 1 else found)

    def conditions(self, node: int) -> list[str]:
        """The condition of each branch of a node."""
        conditions = branch_conditions(self.tree, self.names, node)
        return [self.condition(condition) for condition in conditions]

    def condition(self, condition: Condition) -> str:
        """True for rows that meet the condition, NULL or false for others."""
        column = self.column(condition)
        if condition.kind == "categories":
            return _label_condition(column, condition)
        known = _range_condition(column, condition)
        if condition.missing == 0.0:
            return known
        if known == _NEVER:
            return f"{column} IS NULL"
        return f"({column} IS NULL OR {known})"

    def share(self, condition: Condition) -> str:
        """The share of a row that meets the condition: for missing values, that of the branch."""
        column, missing = self.column(condition), repr(condition.missing)
        if condition.kind == "categories":
            passing = _among(column, condition.categories)
            failing = _among(column, _excluded(condition))
            return f"CASE WHEN {passing} THEN 1.0 WHEN {failing} THEN 0.0 ELSE {missing} END"
        known = _range_condition(column, condition)
        return f"CASE WHEN {column} IS NULL THEN {missing} WHEN {known} THEN 1.0 ELSE 0.0 END"

    def column(self, condition: Condition) -> str:
        if condition.number is not None:
            return self.columns[condition.number]
        products = [
            f"{coef!r} * {self.number(j)}" for j, coef in enumerate(condition.coefficients) if coef
        ] or ["0.0"]
        return f"({' + '.join(products)})"

    def number(self, feature: int) -> str:
        """A column as a number: for categories, the number of the category."""
        labels = self.names.categories.get(feature)
        if labels is None:
            return self.columns[feature]
        cases = " ".join(f"WHEN {_literal(label)} THEN {k}" for k, label in enumerate(labels))
        return f"CASE {self.columns[feature]} {cases} END" if labels else "NULL"


def _range_condition(column: str, condition: Condition) -> str:
    if condition.low >= condition.high:
        return _NEVER
    bounds = []
    if condition.low > -math.inf:
        bounds.append(f"{column} > {condition.low!r}")
    if condition.high < math.inf:
        bounds.append(f"{column} <= {condition.high!r}")
    return " AND ".join(bounds) or f"{column} IS NOT NULL"


def _label_condition(column: str, condition: Condition) -> str:
    if condition.missing == 0.0:
        return _among(column, condition.categories)
    excluded = _excluded(condition)
    if not excluded:
        return _ALWAYS
    return f"({column} IS NULL OR NOT {_among(column, excluded)})"


def _excluded(condition: Condition) -> list[Any]:
    passing = set(condition.categories)
    return [label for label in condition.seen if label not in passing]


def _among(column: str, labels: Sequence[Any]) -> str:
    if len(labels) < 2:
        return f"{column} = {_literal(labels[0])}" if labels else _NEVER
    return f"{column} IN ({', '.join(map(_literal, labels))})"


# -- rows that reach one leaf --------------------------------------------------------------------


def _first_that_holds(terms: _Terms) -> str:
    """CASE WHEN ... THEN prediction ... ELSE prediction END; see the module."""
    tree = terms.tree
    n_leaves = _leaves_below(tree)
    lines: list[str] = []
    waiting: list[tuple[int, tuple[str, ...]]] = [(0, ())]
    while waiting:
        node, above = waiting.pop()
        if tree.kind[node] == LEAF:
            start = f"WHEN {' AND '.join(above)} THEN" if above else "ELSE"
            lines.append(f"  {start} {terms.prediction(node)}")
            continue
        children = tree.children_of(node)
        last = _last_branch(tree, node, n_leaves[children].tolist())
        conditions = terms.conditions(node)
        waiting.append((int(children[last]), above))
        for branch in reversed(range(len(children))):
            if branch != last:
                waiting.append((int(children[branch]), (*above, conditions[branch])))
    if len(lines) == 1:
        return terms.prediction(0)
    return "\n".join(["CASE", *lines, "END"])


def _last_branch(tree: TreeArrays, node: int, n_leaves: list[int]) -> int:
    """The branch with most leaves; if tied, that of missing values, which has the longest test."""
    branches = range(len(n_leaves))
    return max(branches, key=lambda b: (n_leaves[b], b == tree.missing_child[node], b))


def _leaves_below(tree: TreeArrays) -> np.ndarray:
    """int64 (N,): the number of leaves in the subtree of each node."""
    found = (tree.kind == LEAF).astype(np.int64)
    for node in range(len(tree) - 1, 0, -1):
        found[tree.parent[node]] += found[node]
    return found


# -- rows that reach several leaves --------------------------------------------------------------


def _sum_of_leaves(terms: _Terms) -> str:
    """The sum of the leaves' values times their shares of the row; for classes, the largest."""
    leaves = [
        (leaf, _share_of_row(terms, conditions))
        for leaf, conditions in conditions_of_leaves(terms.tree, terms.names)
    ]
    if not terms.names.is_classifier:
        return _sum_of_value(terms, leaves, terms.output)
    start = sum(map(len, terms.names.classes[: terms.output]))
    labels = terms.names.classes[terms.output]
    sums = [_sum_of_value(terms, leaves, start + k) for k in range(len(labels))]
    shares = ",\n".join(f"{total} AS share{k}" for k, total in enumerate(sums))
    return f"(SELECT {_label_with_most(labels)}\nFROM (SELECT\n{shares}) AS shares)"


def _share_of_row(terms: _Terms, conditions: Sequence[Condition]) -> str:
    """The share of a row that meets all conditions, as a product."""
    certain = [terms.condition(one) for one in conditions if one.missing in (0.0, 1.0)]
    factors = [terms.share(one) for one in conditions if one.missing not in (0.0, 1.0)]
    if certain:
        factors.append(f"CASE WHEN {' AND '.join(certain)} THEN 1.0 ELSE 0.0 END")
    return " * ".join(factors)


def _sum_of_value(terms: _Terms, leaves: list[tuple[int, str]], place: int) -> str:
    value = terms.tree.value[:, place].tolist()
    products = [f"{value[leaf]!r} * {share}" for leaf, share in leaves if value[leaf] != 0.0]
    while len(products) > 1:  # in pairs, so that the expression is not deep
        pairs = [products[k : k + 2] for k in range(0, len(products), 2)]
        products = [pair[0] if len(pair) == 1 else f"({pair[0]}\n + {pair[1]})" for pair in pairs]
    return products[0] if products else "0.0"


def _label_with_most(labels: Sequence[Any]) -> str:
    """The label with the largest share; if tied, the first one.

    It is the first label whose share is not smaller than those after it.
    """
    last = len(labels) - 1
    if last == 0:
        return _literal(labels[0])
    lines = []
    for k in range(last):
        wins = " AND ".join(f"share{k} >= share{other}" for other in range(k + 1, last + 1))
        lines.append(f"  WHEN {wins} THEN {_literal(labels[k])}")
    return "\n".join(["CASE", *lines, f"  ELSE {_literal(labels[last])}", "END"])
