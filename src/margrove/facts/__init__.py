"""What is to be known about a fitted model, as plain values.

`describe` is the one place that looks into an estimator. Plots, reports, the command line and web
pages render what it returns: frozen dataclasses of numbers, strings and read-only arrays, which
`as_dict` turns into what JSON can hold. Rows are always rows of the X that `fit` got.
`strongest_features` names the largest weights of any linear model; `sketch_tree`, `tree_regions`,
`gain_curves` and `pruning_errors` are the data behind the pictures of trees.
"""

from margrove.facts.describing import describe, is_described
from margrove.facts.outlines import outline
from margrove.facts.strongest import strongest_features
from margrove.facts.trees import (
    GainCurve,
    GainCurves,
    PruningErrors,
    SketchNode,
    SplitHistogram,
    TreeRegions,
    TreeSketch,
    gain_curves,
    pruning_errors,
    sketch_tree,
    tree_regions,
)
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
    "ClassifierFacts",
    "Facts",
    "GainCurve",
    "GainCurves",
    "KernelFacts",
    "LinearFacts",
    "LinearMachineFacts",
    "MachineFacts",
    "OneClassFacts",
    "Outline",
    "PerceptronFacts",
    "PerceptronMachineFacts",
    "Probabilities",
    "Proof",
    "PruningErrors",
    "RegressorFacts",
    "SketchNode",
    "SplitHistogram",
    "StrongFeatures",
    "SupportKind",
    "Trace",
    "TreeFacts",
    "TreeRegions",
    "TreeSketch",
    "WeightedFeature",
    "describe",
    "gain_curves",
    "is_described",
    "outline",
    "pruning_errors",
    "sketch_tree",
    "strongest_features",
    "tree_regions",
]
