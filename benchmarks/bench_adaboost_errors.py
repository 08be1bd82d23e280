"""Errors of AdaBoost: the letters of the lecture, Hastie's ten normals, rules for texts."""

from __future__ import annotations

import sys

import numpy as np
from sklearn.datasets import make_hastie_10_2

from data import FOLDER, HAS_REAL
from margrove import AdaBoostClassifier, DecisionTreeClassifier
from margrove.grove.prune.pruning import prune

ROUNDS = (5, 100, 1000)
LECTURE = (8.4, 3.3, 3.1)
SEEDS = range(5)


class PrunedTree(DecisionTreeClassifier):
    """As C4.5 does it: gain ratio, two samples in two branches at least, pessimistic pruning."""

    def fit(self, X, y, sample_weight=None):
        """Weights that sum to one become such that sum to the number of rows."""
        weight = None if sample_weight is None else sample_weight * len(y) / np.sum(sample_weight)
        super().fit(X, y, weight)
        self.__dict__ = prune(self, "pessimistic").__dict__
        return self


def report() -> str:
    lines = [*hastie_lines()]
    if HAS_REAL:
        lines += ["", *letter_lines(), "", *text_lines()]
    return "\n".join(lines)


def hastie_lines():
    """2000 rows to train, 10000 to test, 400 stumps; Elements of Statistical Learning, 10.2."""
    lines = [
        f"Hastie's ten normals (ESL 10.2): 2000 to train, 10000 to test, {len(SEEDS)} seeds.",
        "",
        "| algorithm | test error % | standard deviation |",
        "|---|---|---|",
    ]
    errors = {}
    for seed in SEEDS:
        X, y = make_hastie_10_2(12_000, random_state=seed)
        for algorithm in ("discrete", "real", "gentle", "logit"):
            model = AdaBoostClassifier(n_estimators=400, algorithm=algorithm)
            model.fit(X[:2000], y[:2000])
            errors.setdefault(algorithm, []).append(1.0 - model.score(X[2000:], y[2000:]))
        one = DecisionTreeClassifier(max_depth=1).fit(X[:2000], y[:2000])
        errors.setdefault("one stump", []).append(1.0 - one.score(X[2000:], y[2000:]))
    for name, own in errors.items():
        lines.append(f"| {name} | {100 * np.mean(own):.2f} | {100 * np.std(own):.2f} |")
    return lines


def letter_lines():
    """AdaBoost.M1 of pruned trees by gain ratio: given weights, and samples drawn by them."""
    sys.path.insert(0, FOLDER)
    import load

    X, y, X_test, y_test = load.load_split("letter", dtype="float64")
    lines = [
        f"Letter, AdaBoost.M1 over pruned trees by gain ratio, {len(y)} / {len(y_test)} rows.",
        "Trees are given samples drawn by the weights, or the weights. Errors in percent.",
        "",
        "| rounds | lecture | samples: test | train | nodes | weights: test | train | nodes |",
        "|---|---|---|---|---|---|---|---|",
    ]
    columns = [letter_columns(X, y, X_test, y_test, resample) for resample in (True, False)]
    published = dict(zip(ROUNDS, LECTURE, strict=True))
    for rounds in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000):
        cells = " | ".join(own.get(rounds, " | | ") for own in columns)
        lines.append(f"| {rounds} | {published.get(rounds, '')} | {cells} |")
    return lines


def letter_columns(X, y, X_test, y_test, resample):
    """Test error, training error and nodes after each number of rounds."""
    base = PrunedTree(criterion="gain_ratio", min_samples_leaf=2)
    model = AdaBoostClassifier(
        base, n_estimators=ROUNDS[-1], algorithm="m1", resample=resample, random_state=0
    ).fit(X, y)
    test = 1.0 - np.array(list(model.staged_score(X_test, y_test)))
    training = model.history_.training_error
    nodes = np.cumsum([member.tree_.node_count for member in model.estimators_])
    return {
        t + 1: f"{100 * test[t]:.2f} | {100 * training[t]:.3f} | {nodes[t]:,}"
        for t in range(len(model))
    }


def text_lines():
    """Word stumps on short messages: the strongest rules."""
    from sklearn.feature_extraction.text import CountVectorizer

    from margrove.facts import stump_rules

    sys.path.insert(0, FOLDER)
    import load

    lines = ["Stumps over words, the strongest rules:", ""]
    for name, rounds in (("sms_spam", 200), ("clinc150", 200)):
        texts, y, texts_test, y_test = _texts(load, name)
        words = CountVectorizer(binary=True, min_df=2)
        X, X_test = words.fit_transform(texts), words.transform(texts_test)
        model = AdaBoostClassifier(n_estimators=rounds).fit(X, y)
        lines.append(
            f"- {name}, {X.shape[0]} x {X.shape[1]}, {model.n_classes_} classes, {len(model)} "
            f"rounds: test accuracy {100 * model.score(X_test, y_test):.1f} %"
        )
        rules = stump_rules(model, n=8, feature_names=words.get_feature_names_out())
        lines += [f"    - {rule.text}" for rule in rules]
    return lines


def _texts(load, name):
    from sklearn.model_selection import train_test_split

    texts, y = load.load(name)
    train, test, y_train, y_test = train_test_split(
        list(texts), np.asarray(y), test_size=0.2, random_state=0
    )
    return train, y_train, test, y_test
