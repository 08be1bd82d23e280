"""What is to be known about a fitted model, as plain values.

`describe` is the one place that looks into an estimator. Plots, reports, the command line and web
pages render what it returns: frozen dataclasses of numbers, strings and read-only arrays, which
`as_dict` turns into what JSON can hold. Rows are always rows of the X that `fit` got.
`strongest_features` names the largest weights of any linear model; `sketch_tree`, `tree_regions`,
`gain_curves` and `pruning_errors` are the data behind the pictures of trees, `out_of_bag_curve`,
`ranked_importances`, `proximity_plane` and `interval_coverage` behind those of forests,
`boosting_errors`, `margin_distributions` and `boosting_sketches` behind those of AdaBoost,
`loss_curve` and `gradient_stages` behind those of gradient boosting, of which `round_facts` tells
what a round did. `stump_rules` puts boosted stumps into words.
"""

from margrove.facts.boosting import BoostingFacts
from margrove.facts.boosting_stages import (
    BoostingErrors,
    BoostingSketches,
    MarginDistribution,
    RoundSketch,
    boosting_errors,
    boosting_sketches,
    margin_distributions,
)
from margrove.facts.describing import describe, is_described
from margrove.facts.forests import (
    BaggingFacts,
    EnsembleFacts,
    ForestFacts,
    IntervalCoverage,
    MemberSizes,
    OutOfBagCurve,
    OutOfBagFacts,
    ProximityPlane,
    RankedImportances,
    interval_coverage,
    out_of_bag_curve,
    proximity_plane,
    ranked_importances,
)
from margrove.facts.gradient_boosting import (
    GradientFacts,
    GradientStages,
    LossCurve,
    RoundFacts,
    gradient_stages,
    loss_curve,
    round_facts,
)
from margrove.facts.outlines import outline
from margrove.facts.split_gains import GainCurve, GainCurves, gain_curves
from margrove.facts.strongest import strongest_features
from margrove.facts.stump_rules import StumpRule, stump_rules
from margrove.facts.tree_sketches import SketchNode, SplitHistogram, TreeSketch, sketch_tree
from margrove.facts.trees import PruningErrors, TreeRegions, pruning_errors, tree_regions
from margrove.facts.values import (
    ClassifierFacts,
    Facts,
    KernelFacts,
    LinearFacts,
    LinearMachineFacts,
    MachineFacts,
    OneClassFacts,
    Outline,
    PerceptronFacts,
    PerceptronMachineFacts,
    Probabilities,
    Proof,
    RegressorFacts,
    StrongFeatures,
    SupportKind,
    Trace,
    TreeFacts,
    WeightedFeature,
)

__all__ = [
    "BaggingFacts",
    "BoostingErrors",
    "BoostingFacts",
    "BoostingSketches",
    "ClassifierFacts",
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
    "MemberSizes",
    "OneClassFacts",
    "OutOfBagCurve",
    "OutOfBagFacts",
    "Outline",
    "PerceptronFacts",
    "PerceptronMachineFacts",
    "Probabilities",
    "Proof",
    "ProximityPlane",
    "PruningErrors",
    "RankedImportances",
    "RegressorFacts",
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
    "boosting_errors",
    "boosting_sketches",
    "describe",
    "gain_curves",
    "gradient_stages",
    "interval_coverage",
    "is_described",
    "loss_curve",
    "margin_distributions",
    "out_of_bag_curve",
    "outline",
    "proximity_plane",
    "pruning_errors",
    "ranked_importances",
    "round_facts",
    "sketch_tree",
    "strongest_features",
    "stump_rules",
    "tree_regions",
]
