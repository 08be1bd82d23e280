"""Tables of the user's: what is told of them, points of them, comparisons and reports."""

from __future__ import annotations

import numpy as np
import pytest
from tests.studio.content.scene_cases import GRID, require_sendable
from tests.workbench.report.payloads import payloads

pl = pytest.importorskip("polars")

from margrove.studio.content.scenes import StudioError, scene_from  # noqa: E402
from margrove.studio.pictures import picture_of  # noqa: E402
from margrove.studio.worker.answers import ANSWERS  # noqa: E402
from margrove.studio.worker.worker_main import Job  # noqa: E402

CITIES = ["Graz", "Linz", "Wien", "Steyr", "Wels", "Enns"]


def people(n: int = 120) -> pl.DataFrame:
    lot = np.random.default_rng(0)
    age = lot.integers(18, 80, n)
    return pl.DataFrame(
        {
            "age": age,
            "pay": (age * 1000 + lot.normal(0, 5000, n)).round(2),
            "job": lot.choice(["cook", "smith", "baker", None], n),
            "born": pl.Series(np.datetime64("1950-01-01") + 100 * np.arange(n)),
            "city": lot.choice(CITIES, n, p=[0.3, 0.25, 0.2, 0.1, 0.1, 0.05]),
            "rich": np.where(age + lot.normal(0, 8, n) > 50, "yes", "no"),
        }
    )  # fmt: skip


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> Job:
    path = tmp_path_factory.mktemp("tables") / "people.csv"
    people().write_csv(path)
    broken = path.with_name("broken.csv")
    broken.write_bytes(b"\x00\xff\x00" * 100)
    empty = path.with_name("empty.csv")
    empty.write_bytes(b"")
    return Job(
        tables={"file": path, "broken": broken, "empty": empty, "gone": path.with_name("gone.csv")}
    )


def ask(job, kind, **fields):
    found = ANSWERS[kind]({"kind": kind, "id": 1, "channel": "c", **fields}, job)
    require_sendable(found)
    return found


def points(job, target="rich", features=("age", "pay"), rows=100, seed=0):
    given_features = None if features is None else list(features)
    asked = {"target": target, "features": given_features, "rows": rows, "seed": seed}
    return ask(job, "table-scene", table="file", **asked)


# -- what is in it ---------------------------------------------------------------------------------


def test_a_table_is_described(job) -> None:
    told = ask(job, "table", table="file")
    assert (told["name"], told["rows"], told["target"]) == ("people.csv", 120, "rich")
    types = {own["name"]: own["type"] for own in told["columns"]}
    assert types == {
        "age": "number", "pay": "number", "job": "category", "born": "date", "city": "category",
        "rich": "category",
    }  # fmt: skip
    assert {own["name"]: own["missing"] for own in told["columns"]}["job"] > 0
    for finding in told["findings"]:
        assert finding["severity"] in ("info", "warning", "critical")
        assert finding["title"]
        assert finding["text"]


@pytest.mark.parametrize(
    "table", ["nothing", "gone", "broken", "empty", None, 3, ["file"], "../file"]
)
def test_tables_that_cannot_be_read(job, table) -> None:
    with pytest.raises(StudioError):
        ask(job, "table", table=table)


def test_what_predicting_a_column_would_be_is_what_it_becomes(job) -> None:
    columns = ask(job, "table", table="file")["columns"]
    told = {own["name"]: own["task"] for own in columns if own["type"] != "date"}
    assert set(told.values()) == {"classification", "regression"}
    for name, task in told.items():
        assert points(job, target=name, features=None)["task"] == task, name


def test_a_table_is_read_anew_when_it_has_changed(tmp_path) -> None:
    path = tmp_path / "t.csv"
    own = Job(tables={"file": path})
    people(30).write_csv(path)
    assert ask(own, "table", table="file")["rows"] == 30
    people(40).write_csv(path)
    assert ask(own, "table", table="file")["rows"] == 40


# -- points ----------------------------------------------------------------------------------------


def picture_of_points(told, learner):
    scene = scene_from(told | {"learner": learner, "parameters": {}})
    return scene, picture_of(scene, GRID)


def test_two_columns_as_points(job) -> None:
    told = points(job)
    assert told["classes"] == ["no", "yes"]
    assert told["features"] == ["age (scaled)", "pay (scaled)"]  # of very unequal spread
    scene, picture = picture_of_points(told, "SVC")
    assert len(scene.y) == 100
    assert picture["figures"]["trainError"] < 0.4


def test_columns_of_like_spread_stay_as_they_are(job) -> None:
    told = points(job, features=("age", "born"))
    assert told["features"] == ["age", "born"]
    x = np.array(told["x"])
    assert 18 <= x[:, 0].min() <= x[:, 0].max() <= 80
    assert 1950 <= x[:, 1].min() <= x[:, 1].max() <= 1984


def test_labels_become_numbers(job) -> None:
    x = np.array(points(job, features=("job", "city"), rows=120)["x"])
    assert set(x[:, 0]) == {-1.0, 0.0, 1.0, 2.0}  # missing, and three jobs in their order
    assert set(x[:, 1]) == set(range(6))


def test_principal_components_of_everything(job) -> None:
    told = points(job, features=None, rows=120)
    x = np.array(told["x"])
    assert x.shape == (120, 2)
    assert abs(x.mean(axis=0)).max() < 1e-9
    assert x[:, 0].var() >= x[:, 1].var()
    assert abs(np.corrcoef(x.T)[0, 1]) < 1e-6
    assert told["features"][0].startswith("component 1 (")
    picture_of_points(told, "DecisionTreeClassifier")


def test_the_rarest_classes_are_one(job) -> None:
    told = points(job, target="city", rows=120)
    assert len(told["classes"]) == 4
    assert told["classes"][-1] == "other"
    assert set(told["classes"][:3]) == {"Graz", "Linz", "Wien"}
    city = people()["city"].to_list()
    assert told["y"].count(3) == sum(own not in ("Graz", "Linz", "Wien") for own in city)


def test_numbers_are_drawn_over_one_column(job) -> None:
    told = points(job, target="pay", features=("age", "born"))
    assert told["task"] == "regression"
    assert told["target"] == "pay"
    scene, picture = picture_of_points(told, "DecisionTreeRegressor")
    assert scene.x.shape == (100, 1)
    assert picture["curve"] is not None
    again = points(job, target="pay", features=None)
    assert np.array(again["x"]).shape == (100, 1)


def test_fewer_rows_by_lot(job) -> None:
    assert len(points(job, rows=10)["y"]) == 10
    assert points(job, rows=10, seed=1)["x"] == points(job, rows=10, seed=1)["x"]
    assert points(job, rows=10, seed=1)["x"] != points(job, rows=10, seed=2)["x"]


def test_huge_numbers_are_told_in_other_units(tmp_path) -> None:
    path = tmp_path / "t.csv"
    pl.DataFrame(
        {"a": [k * 1e11 for k in range(30)], "b": range(30), "y": list("ab") * 15}
    ).write_csv(path)
    own = Job(tables={"file": path})
    told = ask(own, "table-scene", table="file", target="y", features=["a", "b"], rows=30, seed=0)
    assert told["features"][0] == "a / 1e12"
    picture_of_points(told, "SVC")


def test_columns_without_values_are_a_line(tmp_path) -> None:
    path = tmp_path / "t.parquet"
    cells = {"a": [1.0, 2.0], "b": [None, None], "c": [float("inf"), 3.0], "y": ["u", "v"]}
    pl.DataFrame({name: own * 20 for name, own in cells.items()}).write_parquet(path)
    own = Job(tables={"file": path})
    asked = {"table": "file", "target": "y", "rows": 40, "seed": 0}
    told = ask(own, "table-scene", features=["a", "b"], **asked)
    assert {row[1] for row in told["x"]} == {0.0}
    finite = ask(own, "table-scene", features=["a", "c"], **asked)
    assert len(finite["x"]) == 20  # rows that cannot be drawn are left out


@pytest.mark.parametrize(
    "wrong",
    [
        {"target": "nothing"}, {"target": None}, {"features": ["age"]}, {"features": "age"},
        {"features": ["age", "nothing"]}, {"features": ["age", 3]}, {"features": ["age", "rich"]},
        {"rows": 0}, {"rows": 10**9}, {"rows": "10"}, {"seed": -1}, {"seed": 0.5},
        {"table": "nothing"},
    ],
)  # fmt: skip
def test_wishes_that_are_refused(job, wrong) -> None:
    asked = {"table": "file", "target": "rich", "features": ["age", "pay"], "rows": 10, "seed": 0}
    with pytest.raises(StudioError):
        ask(job, "table-scene", **(asked | wrong))


# -- comparisons and reports -----------------------------------------------------------------------


def test_learners_are_compared(job) -> None:
    found = ask(job, "table-compare", table="file", target="rich", seconds=60)
    assert found["score"] == "accuracy"
    names = [own["learner"] for own in found["rows"]]
    assert {"baseline", "svm", "tree", "forest", "boosting"} <= set(names)
    assert found["winner"] == next(name for name in names if name != "baseline")
    for own in found["rows"]:
        assert own["low"] <= own["score"] <= own["high"]
    scores = [own["score"] for own in found["rows"]]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("seconds", [0, -1, "10", None, float("nan"), 1e9, True])
def test_times_that_are_refused(job, seconds) -> None:
    with pytest.raises(StudioError, match="seconds"):
        ask(job, "table-compare", table="file", target="rich", seconds=seconds)


@pytest.mark.parametrize(("target", "learner"), [("rich", "tree"), ("pay", "tree")])
def test_a_report_is_kept(job, target, learner) -> None:
    kept = {}
    own = Job(tables=job.tables, keep=kept.__setitem__)
    name = ask(own, "table-report", table="file", target=target, learner=learner)["report"]
    assert kept[name].startswith("<!DOCTYPE html>")
    assert "could not be made" not in kept[name]


@pytest.mark.parametrize(
    ("target", "learner"),
    [("pay", "perceptron"), ("rich", "SVC"), ("rich", None), ("rich", ["tree"])],
)
def test_learners_that_are_refused(job, target, learner) -> None:
    with pytest.raises(StudioError, match="no such learner"):
        ask(job, "table-report", table="file", target=target, learner=learner)


def test_hostile_names_do_no_harm(tmp_path) -> None:
    names = [name for name in payloads()[:12] if name == name.strip()][:6]
    frame = people(40)
    path = tmp_path / "t.parquet"
    frame.rename(dict(zip(frame.columns, names, strict=False))).write_parquet(path)
    own = Job(tables={"file": path})
    told = ask(own, "table", table="file")
    assert [column["name"] for column in told["columns"]] == names
    asked = {"target": names[5], "features": names[:2], "rows": 40, "seed": 0}
    found = ask(own, "table-scene", table="file", **asked)
    picture_of_points(found, "DecisionTreeClassifier")
