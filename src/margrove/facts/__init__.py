"""Facts about a fitted model, as plain values.

`describe` is the one place that looks into an estimator. Plots, reports, the command line and web
pages render what it returns: frozen dataclasses of numbers, strings and read-only arrays, which
`as_dict` turns into what JSON can hold. Rows are always rows of the X that `fit` got.
`strongest_features` names the largest weights of any linear model; `sketch_tree`, `tree_regions`,
`gain_curves` and `pruning_errors` are the data behind the pictures of trees, `out_of_bag_curve`,
`ranked_importances`, `proximity_plane` and `interval_coverage` behind those of forests,
`boosting_errors`, `margin_distributions` and `boosting_sketches` behind those of AdaBoost,
`loss_curve` and `gradient_stages` behind those of gradient boosting, of which `round_facts` tells
what a round did. `stump_rules` puts boosted stumps into words. `confusion`, `roc_curves`,
`precision_recall_curves`, `margins_of`, `residual_facts`, `worst_mistakes` and
`partial_dependence_facts` are about the predictions of any model. Modules named `lecture_*` are the
data behind the figures of the lectures.
"""

from margrove.facts.dependence import (
    DependenceCurve,
    PartialDependenceFacts,
    partial_dependence_facts,
)
from margrove.facts.describing import describe, is_described
from margrove.facts.machine_values import (
    ClassifierFacts,
    Facts,
    KernelFacts,
    LinearFacts,
    LinearMachineFacts,
    MachineFacts,
    OneClassFacts,
    PerceptronFacts,
    PerceptronMachineFacts,
    Probabilities,
    Proof,
    RegressorFacts,
    StrongFeatures,
    Trace,
    WeightedFeature,
)
from margrove.facts.models.boosting import BoostingFacts
from margrove.facts.models.boosting_stages import (
    BoostingErrors,
    BoostingSketches,
    MarginDistribution,
    RoundSketch,
    boosting_errors,
    boosting_sketches,
    margin_distributions,
)
from margrove.facts.models.forest_diagnostics import (
    IntervalCoverage,
    OutOfBagCurve,
    ProximityPlane,
    interval_coverage,
    out_of_bag_curve,
    proximity_plane,
)
from margrove.facts.models.forests import (
    BaggingFacts,
    EnsembleFacts,
    ForestFacts,
    MemberSizes,
    OutOfBagFacts,
)
from margrove.facts.models.gradient_boosting import GradientFacts
from margrove.facts.models.gradient_stages import (
    GradientStages,
    LossCurve,
    RoundFacts,
    gradient_stages,
    loss_curve,
    round_facts,
)
from margrove.facts.models.importances import RankedImportances, ranked_importances
from margrove.facts.models.split_gains import GainCurve, GainCurves, gain_curves
from margrove.facts.models.strongest import strongest_features
from margrove.facts.models.tree_sketches import SketchNode, SplitHistogram, TreeSketch, sketch_tree
from margrove.facts.models.trees import PruningErrors, TreeRegions, pruning_errors, tree_regions
from margrove.facts.outlines import outline
from margrove.facts.prediction_values import (
    ConfusionMatrix,
    MarginFacts,
    Mistake,
    PrecisionRecallCurve,
    PrecisionRecallCurves,
    ResidualFacts,
    RocCurve,
    RocCurves,
    WorstMistakes,
)
from margrove.facts.predictions import (
    confusion,
    margins_of,
    precision_recall_curves,
    residual_facts,
    roc_curves,
    worst_mistakes,
)
from margrove.facts.stump_rules import StumpRule, stump_rules
from margrove.facts.values import Outline, SupportKind, TreeFacts

__all__ = [
    "BaggingFacts",
    "BoostingErrors",
    "BoostingFacts",
    "BoostingSketches",
    "ClassifierFacts",
    "ConfusionMatrix",
    "DependenceCurve",
    "EnsembleFacts",
    "Facts",
    "ForestFacts",
    "GainCurve",
    "GainCurves",
    "GradientFacts",
    "GradientStages",
    "IntervalCoverage",
    "KernelFacts",
    "LinearFacts",
    "LinearMachineFacts",
    "LossCurve",
    "MachineFacts",
    "MarginDistribution",
    "MarginFacts",
    "MemberSizes",
    "Mistake",
    "OneClassFacts",
    "OutOfBagCurve",
    "OutOfBagFacts",
    "Outline",
    "PartialDependenceFacts",
    "PerceptronFacts",
    "PerceptronMachineFacts",
    "PrecisionRecallCurve",
    "PrecisionRecallCurves",
    "Probabilities",
    "Proof",
    "ProximityPlane",
    "PruningErrors",
    "RankedImportances",
    "RegressorFacts",
    "ResidualFacts",
    "RocCurve",
    "RocCurves",
    "RoundFacts",
    "RoundSketch",
    "SketchNode",
    "SplitHistogram",
    "StrongFeatures",
    "StumpRule",
    "SupportKind",
    "Trace",
    "TreeFacts",
    "TreeRegions",
    "TreeSketch",
    "WeightedFeature",
    "WorstMistakes",
    "boosting_errors",
    "boosting_sketches",
    "confusion",
    "describe",
    "gain_curves",
    "gradient_stages",
    "interval_coverage",
    "is_described",
    "loss_curve",
    "margin_distributions",
    "margins_of",
    "out_of_bag_curve",
    "outline",
    "partial_dependence_facts",
    "precision_recall_curves",
    "proximity_plane",
    "pruning_errors",
    "ranked_importances",
    "residual_facts",
    "roc_curves",
    "round_facts",
    "sketch_tree",
    "strongest_features",
    "stump_rules",
    "tree_regions",
    "worst_mistakes",
]
