"""scikit-learn's tests that we do not intend to pass, and why.

Only five reasons count:

private     asks for a private attribute, object or function of scikit-learn's
their text  asserts a message that names their engines, or whose documented contract is only that
            an error is raised, and ours says more
their draw  asserts numbers that follow from scikit-learn's stream of random numbers
their limit asserts a refusal of what we rightly accept
our law     docs say otherwise; the sentence cites where
"""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Literal

import sklearn
from sklearn.utils.fixes import parse_version

__all__ = ["DIFFERENCES", "Difference"]

Reason = Literal["private", "their text", "their draw", "their limit", "our law"]


@dataclass(frozen=True)
class Difference:
    """Tests that are expected to fail.

    tests     a pattern of `module::test[case]`, where `*` stands for anything
    reason    one of the five
    sentence  what the test asks for, and what is here instead
    since     the first version of scikit-learn whose test this is
    before    the first version that no longer has it
    """

    tests: str
    reason: Reason
    sentence: str
    since: str = "1.8"
    before: str = "99"

    @property
    def is_current(self) -> bool:
        """Whether the installed version has these tests."""
        installed = parse_version(parse_version(sklearn.__version__).base_version)
        return bool(parse_version(self.since) <= installed < parse_version(self.before))

    def covers(self, test: str) -> bool:
        """Whether this is about the test with the given name, in the installed version."""
        pattern = self.tests.replace("[", "[[]")  # cases are in square brackets
        return self.is_current and fnmatchcase(test, pattern)


_SVM = "sklearn.svm.tests.test_svm::"
_SPARSE = "sklearn.svm.tests.test_sparse::"
_TREE = "sklearn.tree.tests.test_tree::"
_FOREST = "sklearn.ensemble.tests.test_forest::"
_BAGGING = "sklearn.ensemble.tests.test_bagging::"
_ADABOOST = "sklearn.ensemble.tests.test_weight_boosting::"
_GRADIENT = "sklearn.ensemble.tests.test_gradient_boosting::"
_HIST = "sklearn.ensemble._hist_gradient_boosting.tests.test_gradient_boosting::"

DIFFERENCES: tuple[Difference, ...] = (
    # -- support vector machines --
    Difference(
        _SVM + "test_tweak_params",
        "private",
        "Sets `_dual_coef_`; setting `dual_coef_` has the effect here.",
    ),
    Difference(
        _SVM + "test_gamma_scale",
        "private",
        "Reads `_gamma`; `kernel_.gamma` is the public name here.",
    ),
    Difference(
        _SVM + "test_svc_raises_error_internal_representation",
        "private",
        "Alters `_n_support`; altering `n_support_` is an error here.",
    ),
    Difference(
        _SVM + "test_linear_svm_convergence_warnings*",
        "their text",
        "Expects a message that names Liblinear; two passes are enough for this solver, too.",
    ),
    Difference(
        _SVM + "test_bad_input*",
        "their limit",
        "Expects that a machine fitted to dense rows refuses sparse ones.",
    ),
    Difference(
        _SVM + "test_svc_nonfinite_params*",
        "their limit",
        "Expects a failure on features near the largest float64, which are scaled here.",
    ),
    Difference(
        _SVM + "test_linearsvc_parameters[*-True-l1-squared_hinge]",
        "their limit",
        "Expects that LinearSVC refuses dual=True with an L1 penalty, which works here.",
    ),
    Difference(
        _SVM + "test_linearsvc_parameters[*-False-l2-hinge]",
        "their limit",
        "Expects that LinearSVC refuses dual=False with the hinge, which works here.",
    ),
    Difference(
        _SVM + "test_dense_liblinear_intercept_handling",
        "our law",
        "`intercept_scaling` is None by default: the intercept is not penalised (Linear machines).",
    ),
    Difference(
        _SPARSE + "test_sparse_liblinear_intercept_handling",
        "our law",
        "`intercept_scaling` is None by default: the intercept is not penalised (Linear machines).",
    ),
    Difference(
        _SVM + "test_probability_raises_futurewarning*",
        "our law",
        "`probability` is not deprecated: it is calibrated well, sharing the kernel (Parameters).",
        since="1.9",
    ),
    Difference(
        _SVM + "test_svr_errors",
        "our law",
        "A kernel function that returns a wrong shape is an error in `fit`, not in `predict` "
        "(Support vector machines).",
    ),
    # -- trees --
    Difference(
        _TREE + "test_build_pruned_tree_*",
        "private",
        "Gives `tree_` to a Cython function that takes scikit-learn's `Tree` only.",
    ),
    Difference(
        _TREE + "test_almost_constant_feature[DecisionTree*",
        "their limit",
        "Expects that values closer than 1e-7 count as equal; thresholds are exact here.",
    ),
    Difference(
        _TREE + "test_big_input",
        "their limit",
        "Expects that 1e40 is refused as too large for float32; X is float64 here.",
    ),
    Difference(
        _TREE + "test_huge_allocations",
        "their limit",
        "Expects that `max_leaf_nodes=2**65` fails; there are as many leaves as rows at most here.",
    ),
    Difference(
        _TREE + "test_missing_value_errors[tree0-*",
        "their limit",
        "Expects that NaN in a sparse matrix is refused; it is a missing value here.",
    ),
    Difference(
        _TREE + "test_error",
        "their text",
        "Gives one row with three targets that are all zero; here the wrong length is named first.",
    ),
    # -- forests --
    Difference(
        _FOREST + "test_forest_multioutput_integral_regression_target*",
        "private",
        "Draws samples again by `_generate_unsampled_indices`; ours are in `estimators_samples_`.",
    ),
    Difference(
        _FOREST + "test_validate_y_class_weight*",
        "private",
        "Calls `_validate_y_class_weight`.",
    ),
    Difference(
        _FOREST + "test_class_weights_forest*",
        "private",
        "Reads `_sample_weight`.",
    ),
    Difference(
        _FOREST + "test_oob_not_computed_twice*",
        "private",
        "Replaces `_set_oob_score_and_attributes`.",
    ),
    Difference(
        _FOREST + "test_max_samples_geq_one*",
        "private",
        "Reads `_n_samples_bootstrap`; shares above 1 are taken here, too.",
    ),
    Difference(
        _FOREST + "test_mse_criterion_object_segfault_smoke_test*",
        "private",
        "Gives a Cython object of `sklearn.tree._criterion` as the criterion.",
    ),
    # -- bagging --
    Difference(
        _BAGGING + "test_max_samples_consistency",
        "private",
        "Asks for `_max_samples`; the size of the samples is that of `estimators_samples_`.",
    ),
    Difference(
        _BAGGING + "test_warm_start_with_oob_score_fails",
        "their limit",
        "Expects that `oob_score` and `warm_start` exclude each other; they go together here.",
    ),
    Difference(
        _BAGGING + "test_warning_bootstrap_sample_weight",
        "our law",
        "A whole weight k is the row k times also without replacement, so that weights are not "
        "ignored (Everywhere).",
    ),
    Difference(
        _BAGGING + "test_invalid_sample_weight_max_samples_bootstrap_combinations",
        "our law",
        "Whole weights make as many draws as they sum to, others as many as there are rows "
        "(Forests and bagging).",
    ),
    # -- AdaBoost --
    Difference(
        _ADABOOST + "test_classification_toy",
        "our law",
        "Labels that mix strings and numbers are refused (Everywhere).",
    ),
    Difference(
        _ADABOOST + "test_estimator",
        "our law",
        "Labels that mix strings and numbers are refused (Everywhere).",
    ),
    Difference(
        _ADABOOST + "test_adaboostclassifier_without_sample_weight",
        "our law",
        "A learner without `sample_weight` gets samples drawn by the weights (AdaBoost).",
    ),
    Difference(
        _ADABOOST + "test_sample_weights_infinite",
        "their limit",
        "Expects weights that become infinite; they are kept as logarithms here.",
    ),
    # -- gradient boosting --
    Difference(
        _GRADIENT + "test_max_feature_regression*",
        "private",
        "Calls `_loss`, which is a loss of ours here.",
    ),
    Difference(
        _GRADIENT + "test_huber_overfit",
        "private",
        "Asks for the Cython object of `_loss`.",
    ),
    Difference(
        _GRADIENT + "test_oob_improvement*",
        "their draw",
        "Asserts five improvements that follow from the rows which scikit-learn draws.",
    ),
    Difference(
        _GRADIENT + "test_early_stopping_stratified",
        "their limit",
        "Expects that a class of one row is refused; that row is never set apart here.",
    ),
    Difference(
        _GRADIENT + "test_early_stopping_n_classes",
        "their limit",
        "Expects that a class without training rows is refused; each class keeps one here.",
    ),
    # -- histogram gradient boosting --
    Difference(
        _HIST + "test_should_stop*",
        "private",
        "Calls `_should_stop`.",
    ),
    Difference(
        _HIST + "test_binning_train_validation_are_separated",
        "private",
        "Asks `_bin_mapper` for its bins.",
    ),
    Difference(
        _HIST + "test_small_trainset",
        "private",
        "Calls `_get_small_trainset`; training losses are of all rows here.",
    ),
    Difference(
        _HIST + "test_sample_weight_effect*",
        "private",
        "Compares `_raw_predict`; `decision_function` and `predict` are equal to the last bit.",
    ),
    Difference(
        _HIST + "test_max_depth_max_leaf_nodes",
        "private",
        "Asks a tree of `_predictors` for its depth and leaves.",
    ),
    Difference(
        _HIST + "test_early_stopping_with_sample_weights",
        "private",
        "Replaces `check_scoring` of scikit-learn's module, and `_raw_predict`.",
    ),
    Difference(
        _HIST + "test_raw_predict_is_called_with_custom_scorer",
        "private",
        "Counts calls of `_raw_predict`.",
    ),
    Difference(
        _HIST + "test_single_node_trees*",
        "private",
        "Looks into the nodes of `_predictors`; predictions of a constant y are the same.",
    ),
    Difference(
        _HIST + "test_custom_loss*",
        "private",
        "Gives an object of `sklearn._loss` for `loss`; own losses are `GradientLoss` here.",
    ),
    Difference(
        _HIST + "test_categorical_encoding_strategies",
        "private",
        "Compares the bits of a set of categories in `_predictors`.",
    ),
    Difference(
        _HIST + "test_check_interaction_cst*",
        "private",
        "Calls `_check_interaction_cst`.",
    ),
    Difference(
        _HIST + "test_dataframe_categorical_results_same_as_ndarray*",
        "private",
        "Asks `_preprocessor` for its categories; here they are `categories_`.",
    ),
    Difference(
        _HIST + "test_categorical_different_order_same_model*",
        "private",
        "Compares the trees of `_predictors`.",
    ),
    Difference(
        _HIST + "test_categorical_bad_encoding_errors*",
        "their limit",
        "Expects that more than `max_bins` categories are refused; rare ones share a bin here.",
    ),
    Difference(
        _HIST + "test_dataframe_categorical_errors*",
        "their limit",
        "Expects that more than `max_bins` categories are refused; rare ones share a bin here.",
    ),
    Difference(
        _HIST + "test_X_val_in_fit*",
        "our law",
        "Rows held out are drawn by content, not by `train_test_split` (Gradient boosting).",
    ),
    Difference(
        _HIST + "test_class_weights",
        "our law",
        "A row of weight 3 is three rows for `min_samples_leaf`, a class weight is a factor "
        "(Everywhere).",
    ),
    Difference(
        _HIST + "test_early_stopping_classification[loss-0.1-True-5-1e-07-data1]",
        "their draw",
        "Stops by the three rows that scikit-learn draws with this seed, and not with many others.",
    ),
    # -- tests of scikit-learn 1.8 that 1.9 has changed --
    Difference(
        _SVM + "test_negative_sample_weights_mask_all_samples[*-NuSVC]",
        "their text",
        "Expects LIBSVM's words where no row is left.",
        before="1.9",
    ),
    Difference(
        _FOREST + "test_large_max_samples_exception*",
        "their limit",
        "Expects that more draws than rows are refused, which 1.9 takes, too.",
        before="1.9",
    ),
    Difference(
        _FOREST + "test_non_supported_criterion_raises_error_with_missing_values*",
        "their limit",
        "Expects that absolute errors refuse missing values, which 1.9 takes, too.",
        before="1.9",
    ),
    Difference(
        _FOREST + "test_class_weights[RandomForestClassifier]",
        "our law",
        "A row of weight 100 is a hundred rows to draw from, a class weight is a factor "
        "(Everywhere).",
        before="1.9",
    ),
    Difference(
        _GRADIENT + "test_huber_exact_backward_compat",
        "private",
        "Asks for the Cython object of `_loss`.",
        before="1.9",
    ),
    Difference(
        _HIST + "test_interaction_cst_numerically",
        "their draw",
        "Asserts a bound for each of 560 rows that 1.9 asserts for twice as many training rows.",
        before="1.9",
    ),
)
