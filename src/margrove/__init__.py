"""margrove: margin machines and groves of trees.

Public names are imported when they are first used, so that `import margrove` stays cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from margrove._version import __version__

if TYPE_CHECKING:
    from margrove import datasets, exceptions, facts, plot, tables, tune
    from margrove._runtime.checkpoints import checkpoint
    from margrove._runtime.slices import Progress, watch
    from margrove._runtime.warmup import warmup
    from margrove.ensemble.adaboost.classifier import AdaBoostClassifier
    from margrove.ensemble.adaboost.regressor import AdaBoostRegressor
    from margrove.ensemble.bagging.estimators import BaggingClassifier, BaggingRegressor
    from margrove.ensemble.bootstrap.error import bootstrap_error
    from margrove.ensemble.bootstrap.statistic import bootstrap
    from margrove.ensemble.forest.estimators import (
        ExtraTreesClassifier,
        ExtraTreesRegressor,
        RandomForestClassifier,
        RandomForestRegressor,
    )
    from margrove.ensemble.forest.importances import oob_importances, oob_impurity_importances
    from margrove.ensemble.forest.proximities import proximities
    from margrove.ensemble.forest.tree_correlation import tree_correlation
    from margrove.ensemble.gradient.classic_estimators import (
        GradientBoostingClassifier,
        GradientBoostingRegressor,
    )
    from margrove.ensemble.gradient.hist_estimators import (
        HistGradientBoostingClassifier,
        HistGradientBoostingRegressor,
    )
    from margrove.ensemble.gradient.losses import GradientLoss, register_gradient_loss
    from margrove.exchange.model_file.files import inspect_file, load, save
    from margrove.exchange.scikit_learn import from_sklearn
    from margrove.exchange.scikit_learn.patching import patch_sklearn, patched, unpatch_sklearn
    from margrove.grove.criteria import register_criterion
    from margrove.grove.estimators import DecisionTreeClassifier, DecisionTreeRegressor
    from margrove.grove.explain.importances import permutation_importances
    from margrove.grove.explain.partial_dependence import partial_dependence
    from margrove.grove.explain.shap import shap_values
    from margrove.grove.export.exports import (
        export_dot,
        export_json,
        export_python,
        export_sql,
        export_text,
    )
    from margrove.grove.prune.pruning import cross_validated_alpha, prune
    from margrove.grove.read.tree_reading import (
        explain,
        leaf_probabilities,
        read_tree,
        regions,
        rules,
    )
    from margrove.margin import losses
    from margrove.margin.kernels import functions as kernels
    from margrove.margin.kernels.feature_maps import PolynomialMap, RBFTaylorMap
    from margrove.margin.kernels.registry import register_kernel
    from margrove.margin.linear.linear_svc import LinearSVC
    from margrove.margin.linear.linear_svr import LinearSVR
    from margrove.margin.linear.path import linear_path
    from margrove.margin.perceptron.kernel_perceptron import KernelPerceptron
    from margrove.margin.perceptron.perceptron import Perceptron
    from margrove.margin.svm.certificate import certificate
    from margrove.margin.svm.one_class_svm import OneClassSVM
    from margrove.margin.svm.svc import SVC, NuSVC
    from margrove.margin.svm.svr import SVR, NuSVR
    from margrove.select.autotune.autotune import autotune
    from margrove.select.calibrate.calibration import calibrate
    from margrove.select.calibrate.reliability import reliability
    from margrove.select.compare.comparison import compare
    from margrove.select.learners import register_learner
    from margrove.select.machines.linear_cv import LinearSVCCV
    from margrove.select.machines.svm_cv import SVCCV, SVRCV
    from margrove.select.machines.svm_path import svm_path
    from margrove.workbench.doctor.doctor import doctor
    from margrove.workbench.report.reporting import report
    from margrove.workbench.tables.prepare.preparation import TablePreparation
    from margrove.workbench.tables.read.reading import read_table
    from margrove.workbench.tables.table_models import table_model

_HOME_OF = {
    # margin machines
    "Perceptron": "margrove.margin.perceptron.perceptron",
    "KernelPerceptron": "margrove.margin.perceptron.kernel_perceptron",
    "SVC": "margrove.margin.svm.svc",
    "NuSVC": "margrove.margin.svm.svc",
    "SVR": "margrove.margin.svm.svr",
    "NuSVR": "margrove.margin.svm.svr",
    "OneClassSVM": "margrove.margin.svm.one_class_svm",
    "LinearSVC": "margrove.margin.linear.linear_svc",
    "LinearSVR": "margrove.margin.linear.linear_svr",
    "linear_path": "margrove.margin.linear.path",
    "PolynomialMap": "margrove.margin.kernels.feature_maps",
    "RBFTaylorMap": "margrove.margin.kernels.feature_maps",
    "certificate": "margrove.margin.svm.certificate",
    "register_kernel": "margrove.margin.kernels.registry",
    # groves of trees
    "DecisionTreeClassifier": "margrove.grove.estimators",
    "DecisionTreeRegressor": "margrove.grove.estimators",
    "AdaBoostClassifier": "margrove.ensemble.adaboost.classifier",
    "AdaBoostRegressor": "margrove.ensemble.adaboost.regressor",
    "HistGradientBoostingClassifier": "margrove.ensemble.gradient.hist_estimators",
    "HistGradientBoostingRegressor": "margrove.ensemble.gradient.hist_estimators",
    "GradientBoostingClassifier": "margrove.ensemble.gradient.classic_estimators",
    "GradientBoostingRegressor": "margrove.ensemble.gradient.classic_estimators",
    "GradientLoss": "margrove.ensemble.gradient.losses",
    "register_gradient_loss": "margrove.ensemble.gradient.losses",
    "BaggingClassifier": "margrove.ensemble.bagging.estimators",
    "BaggingRegressor": "margrove.ensemble.bagging.estimators",
    "RandomForestClassifier": "margrove.ensemble.forest.estimators",
    "RandomForestRegressor": "margrove.ensemble.forest.estimators",
    "ExtraTreesClassifier": "margrove.ensemble.forest.estimators",
    "ExtraTreesRegressor": "margrove.ensemble.forest.estimators",
    "oob_importances": "margrove.ensemble.forest.importances",
    "oob_impurity_importances": "margrove.ensemble.forest.importances",
    "proximities": "margrove.ensemble.forest.proximities",
    "tree_correlation": "margrove.ensemble.forest.tree_correlation",
    "bootstrap": "margrove.ensemble.bootstrap.statistic",
    "bootstrap_error": "margrove.ensemble.bootstrap.error",
    "prune": "margrove.grove.prune.pruning",
    "cross_validated_alpha": "margrove.grove.prune.pruning",
    "read_tree": "margrove.grove.read.tree_reading",
    "rules": "margrove.grove.read.tree_reading",
    "regions": "margrove.grove.read.tree_reading",
    "leaf_probabilities": "margrove.grove.read.tree_reading",
    "explain": "margrove.grove.read.tree_reading",
    "export_text": "margrove.grove.export.exports",
    "export_python": "margrove.grove.export.exports",
    "export_sql": "margrove.grove.export.exports",
    "export_json": "margrove.grove.export.exports",
    "export_dot": "margrove.grove.export.exports",
    "permutation_importances": "margrove.grove.explain.importances",
    "shap_values": "margrove.grove.explain.shap",
    "partial_dependence": "margrove.grove.explain.partial_dependence",
    "register_criterion": "margrove.grove.criteria",
    # tuning
    "SVCCV": "margrove.select.machines.svm_cv",
    "SVRCV": "margrove.select.machines.svm_cv",
    "LinearSVCCV": "margrove.select.machines.linear_cv",
    "svm_path": "margrove.select.machines.svm_path",
    "autotune": "margrove.select.autotune.autotune",
    # judging
    "compare": "margrove.select.compare.comparison",
    "register_learner": "margrove.select.learners",
    "reliability": "margrove.select.calibrate.reliability",
    "calibrate": "margrove.select.calibrate.calibration",
    "doctor": "margrove.workbench.doctor.doctor",
    # tables
    "read_table": "margrove.workbench.tables.read.reading",
    "TablePreparation": "margrove.workbench.tables.prepare.preparation",
    "table_model": "margrove.workbench.tables.table_models",
    "report": "margrove.workbench.report.reporting",
    # keeping
    "save": "margrove.exchange.model_file.files",
    "load": "margrove.exchange.model_file.files",
    "inspect_file": "margrove.exchange.model_file.files",
    "from_sklearn": "margrove.exchange.scikit_learn",
    "checkpoint": "margrove._runtime.checkpoints",
    # in place of scikit-learn
    "patch_sklearn": "margrove.exchange.scikit_learn.patching",
    "unpatch_sklearn": "margrove.exchange.scikit_learn.patching",
    "patched": "margrove.exchange.scikit_learn.patching",
    "load_ipython_extension": "margrove.exchange.scikit_learn.patching",
    "unload_ipython_extension": "margrove.exchange.scikit_learn.patching",
    # watching and preparing
    "Progress": "margrove._runtime.slices",
    "watch": "margrove._runtime.slices",
    "warmup": "margrove._runtime.warmup",
}
_MODULES = {
    "datasets": "margrove.datasets",
    "exceptions": "margrove.exceptions",
    "facts": "margrove.facts",
    "kernels": "margrove.margin.kernels",
    "losses": "margrove.margin.losses",
    "plot": "margrove.plot",
    "tables": "margrove.tables",
    "tune": "margrove.tune",
}

__all__ = [
    "SVC",
    "SVCCV",
    "SVR",
    "SVRCV",
    "AdaBoostClassifier",
    "AdaBoostRegressor",
    "BaggingClassifier",
    "BaggingRegressor",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "GradientBoostingClassifier",
    "GradientBoostingRegressor",
    "GradientLoss",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
    "KernelPerceptron",
    "LinearSVC",
    "LinearSVCCV",
    "LinearSVR",
    "NuSVC",
    "NuSVR",
    "OneClassSVM",
    "Perceptron",
    "PolynomialMap",
    "Progress",
    "RBFTaylorMap",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "TablePreparation",
    "__version__",
    "autotune",
    "bootstrap",
    "bootstrap_error",
    "calibrate",
    "certificate",
    "checkpoint",
    "compare",
    "cross_validated_alpha",
    "datasets",
    "doctor",
    "exceptions",
    "explain",
    "export_dot",
    "export_json",
    "export_python",
    "export_sql",
    "export_text",
    "facts",
    "from_sklearn",
    "inspect_file",
    "kernels",
    "leaf_probabilities",
    "linear_path",
    "load",
    "losses",
    "oob_importances",
    "oob_impurity_importances",
    "partial_dependence",
    "patch_sklearn",
    "patched",
    "permutation_importances",
    "plot",
    "proximities",
    "prune",
    "read_table",
    "read_tree",
    "regions",
    "register_criterion",
    "register_gradient_loss",
    "register_kernel",
    "register_learner",
    "reliability",
    "report",
    "rules",
    "save",
    "shap_values",
    "svm_path",
    "table_model",
    "tables",
    "tree_correlation",
    "tune",
    "unpatch_sklearn",
    "warmup",
    "watch",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value: Any = importlib.import_module(_MODULES[name])
    elif name in _HOME_OF:
        value = getattr(importlib.import_module(_HOME_OF[name]), name)
    else:
        raise AttributeError(f"module 'margrove' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
