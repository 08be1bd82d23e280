"""Trees written as text, Graphviz, Python, SQL and JSON: what computes is run and compared."""

from __future__ import annotations

import dataclasses
import html
import json
import math
import re
import sqlite3
import types

import numpy as np
import pandas as pd
import pytest
from tests.grove.hand_made import (
    HOSTILE_NAMES,
    arrays,
    chain,
    model_of,
    prediction_of,
    random_model,
    random_rows,
    shares_of_leaves,
    value_of_row,
)

from margrove import DecisionTreeClassifier, DecisionTreeRegressor
from margrove.datasets import load_iris
from margrove.grove.export.exports import (
    export_dot,
    export_json,
    export_python,
    export_sql,
    export_text,
    tree_as_dict,
    tree_from_json,
)
from margrove.grove.serve.tree_arrays import LEAF, MULTIWAY, OBLIQUE, SUBSET, THRESHOLD
from margrove.grove.serve.tree_walk import leaves_of

DEPTH = 20_000
ALL_KINDS = (THRESHOLD, SUBSET, MULTIWAY, OBLIQUE)
OUTPUTS = ("classes", "two", "number", "numbers")
EXPORTS = (export_text, export_dot, export_python, export_sql, export_json)


def weather():
    nodes = [
        {"kind": MULTIWAY, "feature": 0, "branches": [0, 1, 2], "children": [1, 4, 5], "missing": 2,
         "samples": 14, "value": [5 / 14, 9 / 14]},
        {"kind": THRESHOLD, "feature": 1, "threshold": 77.5, "children": [2, 3], "missing": 1,
         "samples": 5, "value": [0.6, 0.4]},
        {"kind": LEAF, "samples": 2, "value": [0.0, 1.0]},
        {"kind": LEAF, "samples": 3, "value": [1.0, 0.0]},
        {"kind": LEAF, "samples": 4, "value": [0.0, 1.0]},
        {"kind": SUBSET, "feature": 2, "branches": [0, 1, 1], "children": [6, 7],
         "samples": 5, "value": [0.4, 0.6]},
        {"kind": LEAF, "samples": 3, "value": [0.0, 1.0]},
        {"kind": LEAF, "samples": 2, "value": [0.75, 0.25]},
    ]  # fmt: skip
    return model_of(
        arrays(nodes, n_features=3),
        n_features=3,
        names=["outlook", "humidity", "wind"],
        categories={0: ["sunny", "overcast", "rain"], 2: ["none", "some", "strong"]},
        classes=[["no", "yes"]],
    )


def expected_of(model, row):
    """Value and prediction of a row as handed in, by the slow walk."""
    value = value_of_row(model.arrays_, model._rows([row])[0])
    return value, prediction_of(model, value)


def agrees(model, found, row) -> bool:
    """Exactly, or within rounding where a row was shared among leaves."""
    value, expected = expected_of(model, row)
    if len(shares_of_leaves(model.arrays_, model._rows([row])[0])) == 1:
        return found == expected
    if not hasattr(model, "classes_"):
        return bool(np.allclose(found, expected, rtol=1e-12, atol=1e-12))
    classes = model.classes_ if isinstance(model.classes_, list) else [model.classes_]
    parts = np.split(value, np.cumsum([len(own) for own in classes])[:-1])
    found = found if isinstance(found, tuple) else (found,)
    return all(
        part[own.tolist().index(label)] > part.max() - 1e-12
        for own, part, label in zip(classes, parts, found, strict=True)
    )


# -- text ----------------------------------------------------------------------------------------


def test_text_of_the_weather() -> None:
    assert export_text(weather()) == (
        "|--- outlook = sunny\n"
        "|   |--- humidity <= 77.500\n"
        "|   |   |--- class: yes, share 1.000, 2 samples\n"
        "|   |--- humidity > 77.500\n"
        "|   |   |--- class: no, share 1.000, 3 samples\n"
        "|--- outlook = overcast\n"
        "|   |--- class: yes, share 1.000, 4 samples\n"
        "|--- outlook = rain\n"
        "|   |--- wind = none\n"
        "|   |   |--- class: yes, share 1.000, 3 samples\n"
        "|   |--- wind in {some, strong}\n"
        "|   |   |--- class: no, share 0.750, 2 samples\n"
    )


def test_text_to_a_depth_and_with_missing_values() -> None:
    assert export_text(weather(), max_depth=1, decimals=1, show_missing=True) == (
        "|--- outlook = sunny\n"
        "|   |--- truncated branch of depth 1\n"
        "|--- outlook = overcast\n"
        "|   |--- class: yes, share 1.0, 4 samples\n"
        "|--- outlook = rain or missing\n"
        "|   |--- truncated branch of depth 1\n"
    )
    assert export_text(weather(), max_depth=0) == "|--- truncated branch of depth 2\n"
    with pytest.raises(ValueError, match="max_depth must be a whole number"):
        export_text(weather(), max_depth=-1)
    with pytest.raises(ValueError, match="decimals must be a whole number"):
        export_text(weather(), decimals=1.5)


def test_text_of_numbers() -> None:
    tree = arrays([{"kind": LEAF, "value": [1.5, 2e-9]}], n_features=1)
    model = model_of(tree, n_features=1, n_outputs=2)
    assert export_text(model) == "|--- value: [1.500, 2e-09], 1 samples\n"


def test_text_has_a_line_for_each_branch_and_leaf() -> None:
    for seed in range(5):
        model = random_model(seed, kinds=ALL_KINDS, shared=True)
        tree = model.arrays_
        lines = export_text(model).splitlines()
        assert len(lines) == len(tree) - 1 + tree.n_leaves
        assert all(line.isprintable() for line in lines)


def test_text_of_a_chain_is_not_quadratic() -> None:
    lines = export_text(chain(DEPTH)).splitlines()
    assert len(lines) == 2 * DEPTH + DEPTH + 1
    assert max(map(len, lines)) < 300
    assert lines[-2].endswith("[19999] |--- x0 > 19999.000")
    assert lines[-1].endswith("[20000] |--- class: b, share 0.750, 1 samples")
    short = export_text(chain(DEPTH), max_depth=2).splitlines()
    assert short[-1] == f"|   |   |--- truncated branch of depth {DEPTH - 2}"


# -- Graphviz ------------------------------------------------------------------------------------


def dot_strings(source):
    """The quoted strings of a DOT file as Graphviz shows them."""
    found = re.findall(r'"((?:[^"\\]|\\.)*)"', source, flags=re.DOTALL)
    return [
        html.unescape(re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], text))
        for text in found
    ]


def test_dot_of_the_weather() -> None:
    source = export_dot(weather())
    lines = source.splitlines()
    assert lines[0] == "digraph tree {"
    assert lines[-1] == "}"
    assert r'0 [label="outlook\ngini = 0.500\n14 samples\nyes"];' in lines
    assert r'1 [label="humidity <= 77.500\ngini = 0.500\n5 samples\nno"];' in lines
    assert r'2 [label="gini = 0.500\n2 samples\nyes"];' in lines
    assert '0 -> 1 [label="sunny"];' in lines
    assert '1 -> 2 [label="yes"];' in lines
    assert '1 -> 3 [label="no"];' in lines
    assert sum(" -> " in line for line in lines) == 7


def test_dot_to_a_depth() -> None:
    lines = export_dot(weather(), max_depth=1).splitlines()
    assert [line for line in lines if "->" in line] == [
        '0 -> 1 [label="sunny"];',
        "1 -> hidden1;",
        '0 -> 4 [label="overcast"];',
        '0 -> 5 [label="rain"];',
        "5 -> hidden5;",
    ]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_cannot_leave_their_strings_in_dot(name) -> None:
    nodes = [
        {"kind": THRESHOLD, "feature": 0, "threshold": 1.0, "children": [1, 2], "value": [1, 0]},
        {"kind": LEAF, "value": [1, 0]},
        {"kind": LEAF, "value": [0, 1]},
    ]
    tree = arrays(nodes, n_features=1)
    source = export_dot(model_of(tree, n_features=1, names=[name], classes=[[name, "b"]]))
    outside = re.sub(r'"(?:[^"\\]|\\.)*"', '""', source)
    assert outside == (
        "digraph tree {\n"
        'node [shape=box, fontname=""];\n'
        'edge [fontname=""];\n'
        '0 [label=""];\n1 [label=""];\n0 -> 1 [label=""];\n2 [label=""];\n0 -> 2 [label=""];\n}\n'
    )
    question, *_, label = dot_strings(source)[2].split("\n")
    for text in (question.removesuffix(" <= 1.000"), label):
        assert text == name or eval(text) == name


def test_dot_of_a_chain() -> None:
    lines = export_dot(chain(DEPTH)).splitlines()
    assert sum(" -> " in line for line in lines) == 2 * DEPTH
    assert f'{2 * DEPTH - 2} -> {2 * DEPTH} [label="no"];' in lines


# -- Python --------------------------------------------------------------------------------------


def executed(source, name="predict"):
    source.encode("ascii")
    module = types.ModuleType("exported")
    exec(compile(source, "exported", "exec"), module.__dict__)
    return getattr(module, name)


@pytest.mark.parametrize("outputs", OUTPUTS)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_python_predicts_alike(seed, shared, outputs) -> None:
    model = random_model(seed, kinds=ALL_KINDS, shared=shared, outputs=outputs, n_splits=15)
    predict = executed(export_python(model))
    names = model.feature_names_in_.tolist()
    n_missing = 0
    for row in random_rows(seed, model, 60):
        n_missing += None in row
        found = predict(row)
        assert agrees(model, found, row)
        assert predict(dict(zip(names, row, strict=True))) == found
        assert predict([math.nan if cell is None else cell for cell in row]) == found
        assert predict(np.array(row, dtype=object)) == found
    assert n_missing > 10


def test_python_has_the_name_it_was_given_and_needs_no_import() -> None:
    source = export_python(weather(), "play")
    assert "import" not in source
    play = executed(source, "play")
    assert play(["sunny", 70, None]) == "yes"
    assert play({"outlook": "sunny", "humidity": 80, "wind": None}) == "no"
    assert play({"outlook": "hail", "humidity": 80, "wind": "some"}) == "no"  # as missing: rain
    with pytest.raises(KeyError):
        play({"outlook": "sunny"})
    with pytest.raises(ValueError, match="a row has 3 values, not 1"):
        play(["sunny"])
    for name in ("", "2fast", "class", "a b", "f(): pass\nimport os\ndef g", "größe", None):
        with pytest.raises(ValueError, match="function_name"):
            export_python(weather(), name)


def test_python_rounds_numbers_as_the_tree_does() -> None:
    threshold = 0.1
    nodes = [
        {"kind": THRESHOLD, "feature": 0, "threshold": threshold, "children": [1, 2]},
        {"kind": LEAF, "value": [1.0]},
        {"kind": LEAF, "value": [2.0]},
    ]
    model = model_of(arrays(nodes, n_features=1), n_features=1)
    predict = executed(export_python(model))
    for number in (0.1, np.nextafter(0.1, 1.0), np.float32(0.1), np.float64(0.1), 0, 2**60):
        row = np.array([[number]], dtype=np.float64)
        assert predict([number]) == model.arrays_.value[leaves_of(model.arrays_, row)[0], 0]


def test_labels_that_have_no_literal_are_refused() -> None:
    tree = arrays([{"kind": LEAF, "value": [1.0]}], n_features=1)
    model = model_of(tree, n_features=1, classes=[[np.datetime64("2020-01-01")]])
    with pytest.raises(TypeError, match="is a date, which Python source cannot hold"):
        export_python(model)
    with pytest.raises(TypeError, match="is a date, which SQL cannot hold"):
        export_sql(model)
    assert "2020-01-01" in export_json(model)


@pytest.mark.parametrize("left_is_deep", [False, True])
def test_python_of_a_chain(left_is_deep) -> None:
    model = chain(DEPTH, n_features=2, left_is_deep=left_is_deep)
    predict = executed(export_python(model))
    rows = np.random.default_rng(0).uniform(-5, DEPTH + 5, size=(20, 2))
    leaves = leaves_of(model.arrays_, rows)
    labels = model.classes_[model.arrays_.value[leaves].argmax(axis=1)]
    assert [predict(row) for row in rows] == labels.tolist()


# -- SQL -----------------------------------------------------------------------------------------


def queried(model, rows, sql, table="rows", columns=None):
    """The last column of a query over a table of these rows."""
    columns = model.feature_names_in_.tolist() if columns is None else columns
    quoted = ['"' + name.replace('"', '""') + '"' for name in columns]
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute(f'CREATE TABLE "{table}" ({", ".join(quoted)})')
        holes = ", ".join("?" * len(columns))
        connection.executemany(f'INSERT INTO "{table}" VALUES ({holes})', rows)
        return [row[-1] for row in connection.execute(sql)]
    finally:
        connection.close()


@pytest.mark.parametrize("outputs", OUTPUTS)
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_sql_predicts_alike(seed, shared, outputs) -> None:
    model = random_model(seed, kinds=ALL_KINDS, shared=shared, outputs=outputs, n_splits=15)
    rows = random_rows(seed, model, 60)
    several = model.n_outputs_ > 1
    found = [
        queried(model, rows, export_sql(model, table="rows", output=k if several else None))
        for k in range(model.n_outputs_)
    ]
    for row, *own in zip(rows, *found, strict=True):
        assert agrees(model, tuple(own) if several else own[0], row)


def test_sql_asks_whether_a_value_is_there() -> None:
    nodes = [
        {"kind": THRESHOLD, "feature": 0, "threshold": math.inf, "children": [1, 4], "missing": 1},
        {"kind": THRESHOLD, "feature": 0, "threshold": 1.0, "children": [2, 3]},
        {"kind": LEAF, "value": [1.0]},
        {"kind": LEAF, "value": [2.0]},
        {"kind": LEAF, "value": [3.0]},
    ]
    model = model_of(arrays(nodes, n_features=1), n_features=1, names=["x"])
    sql = export_sql(model, table="rows")
    assert 'WHEN "rows"."x" IS NULL THEN 3.0' in sql
    assert queried(model, [[0.0], [1e300], [None]], sql) == [1.0, 2.0, 3.0]


def test_sql_of_the_weather() -> None:
    assert export_sql(weather()) == (
        "CASE\n"
        "  WHEN \"outlook\" = 'sunny' AND \"humidity\" <= 77.5 THEN 'yes'\n"
        "  WHEN \"outlook\" = 'sunny' THEN 'no'\n"
        "  WHEN \"outlook\" = 'overcast' THEN 'yes'\n"
        "  WHEN \"wind\" IN ('some', 'strong') THEN 'no'\n"
        "  ELSE 'yes'\n"
        "END"
    )


def test_sql_takes_columns_and_tables_by_their_names() -> None:
    rows = [["sunny", 70.0, "none"], [None, 70.0, "some"], ["hail", None, None]]
    columns = ["sky", "h", "w"]
    expected = ["yes", "no", "yes"]
    for given in (columns, dict(zip(["outlook", "humidity", "wind"], columns, strict=True))):
        sql = export_sql(weather(), table="days", columns=given, name="pl\"ay'")
        assert '"days"."sky"' in sql
        assert 'AS "pl""ay\'"' in sql
        assert queried(weather(), rows, sql, table="days", columns=columns) == expected
    sql = export_sql(weather(), table=("main", "days"))
    assert sql.endswith('FROM "main"."days"')
    columns = ["outlook", "humidity", "wind"]
    assert queried(weather(), rows, sql, "days") == expected
    expression = export_sql(weather())
    assert queried(weather(), rows, f"SELECT {expression} FROM rows") == expected


def test_sql_refuses_what_it_cannot_say() -> None:
    model = weather()
    for columns in (["a", "b"], "abc", ["a", "a", "b"]):
        with pytest.raises(ValueError, match="column"):
            export_sql(model, columns=columns)
    with pytest.raises(ValueError, match="'sky', which is not a feature"):
        export_sql(model, columns={"sky": "a"})
    for name in ("a\0b", "\ud800", "", 3):
        with pytest.raises(ValueError, match=r"SQL cannot|must be a string"):
            export_sql(model, columns=[name, "b", "c"])
        with pytest.raises(ValueError, match=r"SQL cannot|must be a string"):
            export_sql(model, table=("main", name))
    with pytest.raises(ValueError, match="output must be from 0 to 0"):
        export_sql(model, output=1)
    with pytest.raises(ValueError, match="output must say which of the 2"):
        export_sql(random_model(0, kinds=ALL_KINDS, outputs="two"))


@pytest.mark.parametrize("label", [7, -2.5, True, "o'clock", "'; DROP TABLE rows; --"])
def test_sql_gives_labels_back_as_they_are(label) -> None:
    tree = arrays([{"kind": LEAF, "value": [1.0]}], n_features=1)
    model = model_of(tree, n_features=1, names=["x"], classes=[[label]])
    assert queried(model, [[0.0]], export_sql(model, table="rows")) == [label]


def test_sql_of_a_tree_that_shares_rows_may_have_one_class() -> None:
    nodes = [
        {"kind": THRESHOLD, "feature": 0, "threshold": 1.0, "children": [1, 2], "missing": -1,
         "value": [1.0]},
        {"kind": LEAF, "value": [1.0]},
        {"kind": LEAF, "value": [1.0]},
    ]  # fmt: skip
    model = model_of(arrays(nodes, n_features=1), n_features=1, names=["x"], classes=[["a"]])
    assert queried(model, [[0.0], [None]], export_sql(model, table="rows")) == ["a", "a"]


@pytest.mark.parametrize("left_is_deep", [False, True])
def test_sql_of_a_chain_is_short_and_flat(left_is_deep) -> None:
    model = chain(DEPTH, n_features=50, left_is_deep=left_is_deep)
    names = [f"x{j}" for j in range(50)]
    sql = export_sql(model, table="rows")
    assert sql.count(" AND ") == 0
    rows = np.random.default_rng(0).uniform(-5, DEPTH + 5, size=(20, 50))
    leaves = leaves_of(model.arrays_, rows)
    labels = model.classes_[model.arrays_.value[leaves].argmax(axis=1)]
    assert queried(model, rows.tolist(), sql, columns=names) == labels.tolist()


def test_a_line_of_sql_has_few_conditions() -> None:
    for seed in range(3):
        model = random_model(seed, kinds=ALL_KINDS, n_splits=300)
        most = max(line.count(" AND ") for line in export_sql(model).splitlines())
        assert most + 1 <= math.log2(model.arrays_.n_leaves)


@pytest.mark.nightly
def test_sql_of_a_chain_that_shares_rows() -> None:
    model = chain(DEPTH)
    model.feature_names_in_ = np.array(["x"], dtype=object)
    shared = np.where(model.arrays_.n_children, -1, 0).astype(np.int32)
    model.arrays_ = dataclasses.replace(model.arrays_, missing_child=shared)
    rows = [[None], [-1.0], [0.5], [1e9]]
    found = queried(model, rows, export_sql(model, table="rows"))
    assert found[1:] == ["b", "a", "b"]
    shares = model.arrays_.value[model.arrays_.kind == LEAF].mean(axis=0)  # all leaves weigh 1
    assert found[0] == model.classes_[shares.argmax()]


# -- JSON ----------------------------------------------------------------------------------------


def assert_same_arrays(found, expected) -> None:
    for field in dataclasses.fields(expected):
        name, array = field.name, getattr(expected, field.name)
        own = getattr(found, name)
        assert own.dtype == array.dtype, name
        assert own.shape == array.shape, name
        assert np.array_equal(own, array, equal_nan=array.dtype.kind == "f"), name


@pytest.mark.parametrize("outputs", OUTPUTS)
@pytest.mark.parametrize("seed", range(6))
def test_json_comes_back_as_the_same_arrays(seed, outputs) -> None:
    model = random_model(seed, kinds=ALL_KINDS, shared=True, outputs=outputs, n_splits=25)
    text = export_json(model)
    text.encode("ascii")
    assert_same_arrays(tree_from_json(text), model.arrays_)
    assert_same_arrays(tree_from_json(text.encode()), model.arrays_)
    assert_same_arrays(tree_from_json(tree_as_dict(model)), model.arrays_)
    assert json.loads(text) == tree_as_dict(model)
    assert tree_as_dict(model)["features"] == model.feature_names_in_.tolist()


def test_json_of_many_categories() -> None:
    branches = np.random.default_rng(0).integers(0, 2, size=100).tolist()
    nodes = [
        {"kind": SUBSET, "feature": 0, "branches": branches, "children": [1, 2]},
        {"kind": LEAF},
        {"kind": LEAF},
    ]
    tree = arrays(nodes, n_features=1)
    found = tree_as_dict(model_of(tree, n_features=1, categories={0: list(range(100))}))
    assert found["nodes"][0]["branches"] == branches
    assert_same_arrays(tree_from_json(found), tree)


def test_json_of_a_chain() -> None:
    for left_is_deep in (False, True):
        model = chain(DEPTH, left_is_deep=left_is_deep)
        assert_same_arrays(tree_from_json(export_json(model)), model.arrays_)


def small():
    """A leaf for each kind of question, as a dict."""
    nodes = [
        {"kind": THRESHOLD, "feature": 0, "threshold": 1.5, "children": [1, 8], "value": [1, 0]},
        {"kind": SUBSET, "feature": 1, "branches": [0, 1], "children": [2, 3], "value": [1, 0]},
        {"kind": LEAF, "value": [1, 0]},
        {"kind": MULTIWAY, "feature": 1, "branches": [2, 0, 1], "children": [4, 5, 6],
         "value": [1, 0]},
        {"kind": LEAF, "value": [0.5, 0.5]},
        {"kind": LEAF, "value": [0, 1]},
        {"kind": LEAF, "value": [0, 1]},
        {"kind": LEAF, "value": [0, 1]},
        {"kind": OBLIQUE, "coef": [1.0, 0.0], "threshold": 0.0, "children": [9, 10],
         "value": [1, 0]},
        {"kind": LEAF, "value": [0, 1]},
        {"kind": LEAF, "value": [0, 1]},
    ]  # fmt: skip
    del nodes[7]
    nodes[0]["children"], nodes[7]["children"] = [1, 7], [8, 9]
    tree = arrays(nodes, n_features=2)
    model = model_of(tree, n_features=2, categories={1: list("abc")}, classes=[["n", "y"]])
    return json.loads(export_json(model))


def test_the_small_tree_is_sound() -> None:
    assert len(tree_from_json(small())) == 10


@pytest.mark.parametrize(
    ("node", "field", "wrong", "message"),
    [
        (0, "kind", "tree", "Node 0: \"kind\" must be one of"),
        (0, "kind", ["leaf"], "Node 0: \"kind\""),
        (0, "kind", None, "Node 0: \"kind\""),
        (0, "kind", "leaf", "a leaf has"),
        (0, "children", [1, 1], "child of two"),
        (0, "children", [1, 2], "child of two"),
        (0, "children", [1], "two children"),
        (0, "children", [], "numbers of nodes after it"),
        (0, "children", [0, 7], "numbers of nodes after it"),
        (0, "children", [-1, 7], "numbers of nodes after it"),
        (0, "children", [1, 10], "numbers of nodes after it"),
        (0, "children", [1, 2**70], "numbers of nodes after it"),
        (0, "children", [True, 7], "numbers of nodes after it"),
        (0, "children", [1.0, 7], "numbers of nodes after it"),
        (0, "children", [7, 1], "run of numbers"),
        (1, "children", [3, 2], "run of numbers"),
        (3, "children", [4, 5], "Node 3"),
        (7, "children", [8, 8], "child of two"),
        (0, "missing", 2, "\"missing\""),
        (0, "missing", -2, "\"missing\""),
        (0, "missing", False, "\"missing\""),
        (3, "missing", 3, "\"missing\""),
        (0, "feature", 2, "\"feature\" must be from 0 to 1"),
        (0, "feature", -1, "\"feature\""),
        (0, "feature", "0", "\"feature\""),
        (0, "threshold", math.nan, "\"threshold\""),
        (0, "threshold", math.inf, "\"threshold\""),
        (0, "threshold", -math.inf, "\"threshold\""),
        (0, "threshold", 10**400, "\"threshold\""),
        (0, "threshold", "1", "\"threshold\""),
        (7, "threshold", None, "\"threshold\""),
        (1, "branches", [0, 2], "\"branches\""),
        (1, "branches", [0, -1], "\"branches\""),
        (1, "branches", [0, 1, 1, 1], "longer than the 3 labels"),
        (1, "branches", {"0": 1}, "\"branches\""),
        (3, "branches", [3, 0, 1], "\"branches\""),
        (3, "branches", [-2, 0, 1], "\"branches\""),
        (7, "coef", [1.0], "\"coef\""),
        (7, "coef", [1.0, math.nan], "\"coef\""),
        (7, "coef", None, "\"coef\""),
        (2, "weight", -1.0, "\"weight\" must not be negative"),
        (2, "weight", math.inf, "\"weight\""),
        (2, "impurity", math.nan, "\"impurity\""),
        (2, "decrease", None, "\"decrease\""),
        (2, "samples", 1.5, "\"samples\""),
        (2, "samples", -1, "\"samples\""),
        (2, "samples", 2**63, "\"samples\""),
        (2, "value", [1.0], "list of 2 finite"),
        (2, "value", [1.0, math.nan], "list of 2 finite"),
        (2, "value", [0.5, 0.6], "sum up to 1"),
        (2, "value", [1.5, -0.5], "sum up to 1"),
        (2, "value", "10", "list of 2 finite"),
        (2, "more", 1, "Node 2: a leaf has"),
    ],
)  # fmt: skip
def test_what_is_no_tree_is_refused(node, field, wrong, message) -> None:
    source = small()
    source["nodes"][node][field] = wrong
    with pytest.raises(ValueError, match=message):
        tree_from_json(source)


@pytest.mark.parametrize(
    ("field", "wrong", "message"),
    [
        ("format", "another tree", "not a tree of margrove"),
        ("format", None, "not a tree of margrove"),
        ("version", 2, "reads formats up to 1"),
        ("version", 0, "\"version\""),
        ("version", "1", "\"version\""),
        ("version", True, "\"version\""),
        ("task", "clustering", "\"task\""),
        ("task", "regression", "\"outputs\""),
        ("task", [], "\"task\""),
        ("features", [], "\"features\""),
        ("features", "ab", "\"features\""),
        ("features", [1, 2], "\"features\""),
        ("features", ["a"], "Node 1: \"feature\"|\"categories\""),
        ("features", ["a", "b", "c"], "\"coef\""),
        ("outputs", [], "\"outputs\""),
        ("outputs", [[]], "\"outputs\""),
        ("outputs", [None], "\"outputs\""),
        ("outputs", [["a", "b", "c"]], "list of 3 finite"),
        ("categories", [], "\"categories\""),
        ("categories", {"x": ["a"]}, "\"categories\""),
        ("categories", {"-1": ["a"]}, "\"categories\""),
        ("categories", {"01": ["a"]}, "\"categories\""),
        ("categories", {"2": ["a"]}, "\"categories\""),
        ("categories", {"9" * 5000: ["a"]}, "\"categories\""),
        ("categories", {"\u0661": ["a"]}, "\"categories\""),
        ("categories", {"1": "abc"}, "\"categories\""),
        ("categories", {"1": ["a"]}, "longer than the 1 labels"),
        ("nodes", [], "\"nodes\""),
        ("nodes", {}, "\"nodes\""),
        ("nodes", [[]], "\"nodes\""),
    ],
)  # fmt: skip
def test_what_describes_no_tree_is_refused(field, wrong, message) -> None:
    source = small()
    source[field] = wrong
    with pytest.raises(ValueError, match=message):
        tree_from_json(source)


@pytest.mark.parametrize("field", ["format", "version", "task", "features", "outputs",
                                   "categories", "nodes"])  # fmt: skip
def test_nothing_may_be_absent(field) -> None:
    source = small()
    del source[field]
    with pytest.raises(ValueError, match=field):
        tree_from_json(source)


def test_every_node_must_hang_below_another() -> None:
    source = small()
    source["nodes"].append(source["nodes"][2])
    with pytest.raises(ValueError, match="Node 10 is the child of no node"):
        tree_from_json(source)


@pytest.mark.parametrize(
    "source",
    [
        "",
        "{",
        "[]",
        "null",
        "1",
        b"\xff\xfe\xfa",
        b"\x80",
        "[" * 100_000,
        '{"format": ' * 100_000,
        '{"format": NaN}',
        '{"format": "margrove tree", "format": "margrove tree"}',
        '{"format": "margrove tree", "version": ' + "9" * 10_000 + "}",
        '{"format": "margrove tree", "version": 1e999}',
    ],
)
def test_what_is_no_json_is_refused(source) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        tree_from_json(source)


def test_a_file_cut_short_or_with_a_wrong_byte_never_crashes() -> None:
    text = json.dumps(small())
    rng = np.random.default_rng(0)
    for end in range(0, len(text), 17):
        with pytest.raises(ValueError, match=r"\w"):
            tree_from_json(text[:end])
    n_refused = 0
    for _ in range(300):
        place = int(rng.integers(len(text)))
        changed = text[:place] + chr(rng.integers(32, 127)) + text[place + 1 :]
        try:
            tree = tree_from_json(changed)
        except ValueError:
            n_refused += 1
        else:
            assert len(tree) == 10
    assert n_refused > 100


# -- all of them ---------------------------------------------------------------------------------


@pytest.mark.parametrize("export", EXPORTS)
def test_a_tree_of_one_leaf(export) -> None:
    tree = arrays([{"kind": LEAF, "value": [1.0]}], n_features=1)
    assert "only" in export(model_of(tree, n_features=1, classes=[["only"]]))


@pytest.mark.parametrize("export", EXPORTS)
def test_a_long_name_is_not_repeated_without_end(export) -> None:
    model = weather()
    model.feature_names_in_ = np.array(["a" * 1_000_000, "b", "c"], dtype=object)
    assert len(export(model)) < 6_000_000


def test_unseen_labels_and_missing_ones_go_the_same_way() -> None:
    rows = [["hail", 1.0, "none"], [None, 1.0, "none"]]
    predict = executed(export_python(weather()))
    assert predict(rows[0]) == predict(rows[1]) == expected_of(weather(), rows[1])[1]
    found = queried(weather(), rows, export_sql(weather(), table="rows"))
    assert found == [predict(row) for row in rows]


# -- fitted trees --------------------------------------------------------------------------------


def table(seed):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            'out"look': rng.choice(["sunny", "it's", "over\ncast"], 150),
            "humidity": rng.normal(size=150).round(2),
            "wind": rng.choice(["some", "none"], 150),
        }
    )
    y = rng.normal(size=150) + (frame["wind"] == "some") * (frame["humidity"] > 0.0)
    for column in ('out"look', "humidity"):
        frame.loc[rng.random(150) < 0.2, column] = None
    return frame, y


def plain_rows(frame):
    cells = frame.astype(object).to_numpy().tolist()
    return [[None if pd.isna(cell) else cell for cell in row] for row in cells]


@pytest.mark.parametrize("split", ["binary", "multiway"])
@pytest.mark.parametrize("seed", range(3))
def test_fitted_classifiers_are_exported_as_they_predict(seed, split) -> None:
    frame, y = table(seed)
    y = np.digitize(y, [-0.5, 0.5])
    model = DecisionTreeClassifier(
        categorical_features="from_dtype", split=split, min_samples_leaf=3
    ).fit(frame, y)
    rows, labels = plain_rows(frame), model.predict(frame)
    predict = executed(export_python(model))
    assert [predict(row) for row in rows] == labels.tolist()
    assert [predict(row) for _, row in frame.iterrows()] == labels.tolist()
    found = queried(model, rows, export_sql(model, table="rows"))
    if split == "binary":
        assert found == labels.tolist()
    else:  # the sum of shares is rounded otherwise, which may decide between equals
        shares = model.predict_proba(frame)
        assert np.all(shares[np.arange(len(rows)), found] > shares.max(axis=1) - 1e-12)


@pytest.mark.parametrize("split", ["binary", "multiway"])
def test_fitted_regressors_are_exported_as_they_predict(split) -> None:
    frame, y = table(5)
    model = DecisionTreeRegressor(
        categorical_features="from_dtype", split=split, min_samples_leaf=3
    ).fit(frame, y)
    rows, numbers = plain_rows(frame), model.predict(frame)
    predict = executed(export_python(model))
    assert [predict(row) for row in rows] == numbers.tolist()
    found = queried(model, rows, export_sql(model, table="rows"))
    assert found == pytest.approx(numbers, rel=1e-12)
    assert split == "multiway" or found == numbers.tolist()


@pytest.mark.parametrize("split", ["binary", "multiway"])
def test_fitted_trees_come_back_from_json(split) -> None:
    frame, y = table(6)
    model = DecisionTreeRegressor(categorical_features="from_dtype", split=split).fit(frame, y)
    tree = tree_from_json(export_json(model))
    assert_same_arrays(tree, model.arrays_)
    again = model._with_arrays(tree)
    assert np.array_equal(again.predict(frame), model.predict(frame))


def test_several_outputs_of_a_fitted_tree() -> None:
    X, y = load_iris(return_X_y=True)
    Y = np.column_stack([y, X[:, 0] > 5.8])
    model = DecisionTreeClassifier(max_depth=4).fit(X, Y)
    predict = executed(export_python(model))
    expected = model.predict(X)
    assert [list(predict(row)) for row in X] == expected.tolist()
    for k in range(2):
        sql = export_sql(model, table="rows", output=k)
        columns = ["x0", "x1", "x2", "x3"]
        assert queried(model, X.tolist(), sql, columns=columns) == expected[:, k].tolist()
    assert_same_arrays(tree_from_json(export_json(model)), model.arrays_)
    assert export_text(model).count("class: [") == model.get_n_leaves()


def test_exact_thresholds_survive_python_and_json() -> None:
    X = (np.random.default_rng(0).normal(size=(300, 2)) / 3.0).tolist()
    y = np.random.default_rng(1).integers(0, 2, size=300)
    model = DecisionTreeClassifier().fit(X, y)
    predict = executed(export_python(model))
    assert [predict(row) for row in X] == y.tolist()
    asks = np.flatnonzero(model.arrays_.kind == THRESHOLD)
    edge = np.zeros((len(asks), 2))
    edge[np.arange(len(asks)), model.arrays_.feature[asks]] = model.arrays_.threshold[asks]
    assert [predict(row) for row in edge] == model.predict(edge).tolist()
