"""Margin machines in model files: their values, and the conditions that these satisfy."""

from __future__ import annotations

from typing import Any

import numpy as np

from margrove.exceptions import ModelFileError
from margrove.exchange.model_file.checks import (
    OUTPUT,
    Check,
    Sizes,
    array,
    either,
    flag,
    instance_of,
    labels,
    listed,
    mapping,
    matrix,
    names,
    optional,
    plain,
    real,
    refuse_unless,
    size,
    whole,
)
from margrove.exchange.model_file.kinds import Kind, Part
from margrove.margin.kernels import kernel_class

__all__ = ["COLUMNS", "MARGIN_KINDS", "MARGIN_PARTS", "kernel_part", "kernel_part_name"]

COLUMNS: dict[str, Check] = {"n_features_in_": size("d", 1), "feature_names_in_?": names("d")}

_KERNEL = "kernel "  # and its name


def kernel_part_name(thing: Any) -> str | None:
    """The name in files of a registered kernel; None for any other object."""
    from margrove.margin.kernels import Kernel

    is_known = isinstance(thing, Kernel) and kernel_class(thing.name) is type(thing)
    return f"{_KERNEL}{thing.name}" if is_known else None


def kernel_part(part_name: str) -> Part | None:
    """A kernel in a file: its name and its parameters, never its code.

    None if the name is not one of a kernel.
    """
    if not part_name.startswith(_KERNEL):
        return None
    name = part_name.removeprefix(_KERNEL)
    found = kernel_class(name)
    if found is None:
        raise ModelFileError(
            f"its kernel {name[:50]!r} is not registered in this process. A model file contains "
            "the name and the parameters of a kernel, not its code. Register it before loading: "
            f"margrove.register_kernel({name[:50]!r}, function), or import the module that does."
        )
    return Part(
        "",
        {parameter: real() for parameter in found.parameters()},
        make=lambda given: found(**given),
    )


def _a_kernel(value: Any, where: str, sizes: Sizes) -> None:
    refuse_unless(kernel_part_name(value) is not None, f"{where} is a {type(value).__name__}")


MARGIN_PARTS: dict[str, Part] = {
    "price of agreement": Part(
        "margrove.margin.svm.calibration:PriceOfAgreement",
        {
            "log_loss": real(finite=False),
            "log_loss_unconstrained": real(finite=False),
            "n_rows_changed": whole(0),
        },
    ),
    "stream": Part(
        "margrove.margin.solvers.linear.sgd:SgdState",
        {
            "V": array("f8", "d K"),
            "U": array("f8", "d K"),
            "bias": array("f8", "K"),
            "mean_bias": array("f8", "K"),
            "scales": array("f8", "4"),
            "length": real(finite=False),
        },
    ),
}


# -- linear machines --

_MISTAKES: dict[str, Check] = {
    "n_iter_": whole(0),
    "mistakes_": real(finite=False),
    "class_mistakes_": array("f8", "K"),
    "separated_?": flag,
    "margin_?": real(finite=False),
    "class_margins_?": array("f8", "K"),
    "radius_?": real(finite=False),
    "novikoff_bound_?": real(finite=False),
}


def _n_machines(n_classes: int) -> int:
    """The number of machines, one against the rest; two classes need one machine."""
    return 1 if n_classes == 2 else n_classes


def _one_against_the_rest(fitted: dict[str, Any], sizes: Sizes) -> None:
    refuse_unless(sizes["C"] >= 2, "there are fewer than two classes")
    sizes.agree("K", _n_machines(sizes["C"]), "classes_")
    _stream_fits(fitted, sizes)


def _stream_fits(fitted: dict[str, Any], sizes: Sizes) -> None:
    if fitted.get("_stream") is not None:
        wanted = (sizes["d"], sizes["K"])
        refuse_unless(fitted["_stream"].V.shape == wanted, "_stream has another shape")


def _one_machine(fitted: dict[str, Any], sizes: Sizes) -> None:
    sizes.agree("K", 1, "intercept_")
    _stream_fits(fitted, sizes)


def _behind_average(value: Any, where: str, sizes: Sizes) -> None:
    """A check of the weights behind the average, with which `partial_fit` continues."""
    mapping(plain, ("coef", "intercept", "drift_coef", "drift_intercept", "presentations"))(
        value, where, sizes
    )
    for name in value:
        shape = "K d" if name.endswith("coef") else "K"
        array("f8 i8", shape, finite=True)(value[name], f"{where}[{name!r}]", sizes)


_STREAM = instance_of(MARGIN_PARTS["stream"].home)

_PERCEPTRON = Kind(
    "margrove.margin.perceptron.perceptron:Perceptron",
    {
        **COLUMNS,
        "coef_": matrix("f8", "K d"),
        "intercept_": array("f8", "K", finite=True),
        "_behind_average": optional(_behind_average),
        "classes_": labels("C"),
        "t_": real(),
        **_MISTAKES,
    },
    examine=_one_against_the_rest,
)
_LINEAR_SVC = Kind(
    "margrove.margin.linear.linear_svc:LinearSVC",
    {
        **COLUMNS,
        "coef_": matrix("f8", "K d"),
        "intercept_": array("f8", "K", finite=True),
        "classes_": labels("C"),
        "n_iter_": whole(0),
        "t_?": real(),
        "_stream?": _STREAM,
    },
    examine=_one_against_the_rest,
    skipped=frozenset({"_record"}),
)
_LINEAR_SVR = Kind(
    "margrove.margin.linear.linear_svr:LinearSVR",
    {
        **COLUMNS,
        "coef_": array("f8", "d", finite=True),
        "intercept_": array("f8", "K", finite=True),
        "n_iter_": whole(0),
        "t_?": real(),
        "_stream?": _STREAM,
    },
    examine=_one_machine,
    skipped=frozenset({"_record"}),
)


# -- kernel machines --

_EXPANSION: dict[str, Check] = {
    **COLUMNS,
    "support_": array("i4 i8", "S", low=-1),
    "support_vectors_": matrix("f4 f8", "V D"),
    "intercept_": array("f8", "M", finite=True),
    "kernel_": _a_kernel,
}


def _expansion_fits(fitted: dict[str, Any], sizes: Sizes) -> None:
    """Check support vectors, or the numbers of columns of a Gram matrix."""
    if type(fitted["kernel_"]).name == "precomputed":
        rows = fitted["support_"]
        refuse_unless(
            np.all((rows >= 0) & (rows < sizes["d"])), "support_ has rows that are not there"
        )
    else:
        sizes.agree("V", sizes["S"], "support_")
        sizes.agree("D", sizes["d"], "support_vectors_")


def _support_vector_classifier_fits(fitted: dict[str, Any], sizes: Sizes) -> None:
    _expansion_fits(fitted, sizes)
    n_classes, n_rows = sizes["C"], fitted["dual_coef_"].shape[0]
    refuse_unless(n_classes >= 2, "there are fewer than two classes")
    by_pairs = n_classes > 2 and n_rows == n_classes - 1
    n_machines = n_classes * (n_classes - 1) // 2 if by_pairs else _n_machines(n_classes)
    sizes.agree("M", n_machines, "intercept_")
    refuse_unless(by_pairs or n_rows == n_machines, "dual_coef_ has another shape")
    refuse_unless(int(fitted["n_support_"].sum()) == sizes["S"], "n_support_ does not add up")


def _support_vector_classifier(class_name: str) -> Kind:
    return Kind(
        f"margrove.margin.svm.svc:{class_name}",
        {
            **_EXPANSION,
            "n_support_": array("i4", "C", low=0),
            "dual_coef_": matrix("f8", "* S"),
            "classes_": labels("C"),
            "class_weight_": array("f8", "C"),
            "feature_scale_": real(),
            "n_iter_": array("i4", "M"),
            "fit_status_": whole(0, 1),
            "shape_fit_": listed(whole(0), "2", tuple),
            "probA_?": array("f8", "M", finite=True),
            "probB_?": array("f8", "M", finite=True),
            "price_of_agreement_?": optional(instance_of(MARGIN_PARTS["price of agreement"].home)),
        },
        examine=_support_vector_classifier_fits,
        skipped=frozenset({"_record"}),
    )


def _single_machine_fits(fitted: dict[str, Any], sizes: Sizes) -> None:
    _expansion_fits(fitted, sizes)
    sizes.agree("M", 1, "intercept_")
    refuse_unless(int(fitted["n_support_"][0]) == sizes["S"], "n_support_ does not add up")


def _single_machine(home: str, **more: Check) -> Kind:
    return Kind(
        home,
        {
            **_EXPANSION,
            "n_support_": array("i4", "1", low=0),
            "dual_coef_": matrix("f8", "1 S"),
            "feature_scale_": real(),
            "n_iter_": whole(0),
            "fit_status_": whole(0, 1),
            "shape_fit_": listed(whole(0), "2", tuple),
            **more,
        },
        examine=_single_machine_fits,
        skipped=frozenset({"_record"}),
    )


def _kernel_perceptron_fits(fitted: dict[str, Any], sizes: Sizes) -> None:
    _expansion_fits(fitted, sizes)
    refuse_unless(sizes["C"] >= 2, "there are fewer than two classes")
    sizes.agree("M", _n_machines(sizes["C"]), "intercept_")
    sizes.agree("K", sizes["M"], "class_mistakes_")


_KERNEL_PERCEPTRON = Kind(
    "margrove.margin.perceptron.kernel_perceptron:KernelPerceptron",
    {
        **_EXPANSION,
        "dual_coef_": array("f8", "M S", finite=True),
        "classes_": labels("C"),
        "alpha_?": either(array("f8", "*"), array("f8", "* *")),
        **_MISTAKES,
    },
    examine=_kernel_perceptron_fits,
)


# -- feature maps --


def _monomials_fit(fitted: dict[str, Any], sizes: Sizes) -> None:
    parent, starts = fitted["_parent"], fitted["_degree_starts"]
    refuse_unless(sizes["n"] >= 1, "there are no monomials")
    refuse_unless(np.all(parent[1:] < np.arange(1, sizes["n"])), "a monomial has no parent")
    refuse_unless(
        starts[:2] == [0, 1] and sorted(starts) == starts and starts[-1] == sizes["n"],
        "_degree_starts does not add up",
    )
    refuse_unless(
        len(starts) == fitted["_highest_degree"] + 2,
        "_highest_degree does not match _degree_starts",
    )


def _feature_map(class_name: str, **more: Check) -> Kind:
    return Kind(
        f"margrove.margin.kernels.feature_maps:{class_name}",
        {
            **COLUMNS,
            "scale_": array("f8", "n", finite=True),
            "_parent": array("i8", "n", low=0),
            "_variable": array("i8", "n", low=0, below="d"),
            "_degree_starts": listed(whole(0)),
            "_highest_degree": whole(0),
            **more,
            **OUTPUT,
        },
        examine=_monomials_fit,
    )


MARGIN_KINDS: dict[str, Kind] = {
    "Perceptron": _PERCEPTRON,
    "KernelPerceptron": _KERNEL_PERCEPTRON,
    "SVC": _support_vector_classifier("SVC"),
    "NuSVC": _support_vector_classifier("NuSVC"),
    "SVR": _single_machine("margrove.margin.svm.svr:SVR"),
    "NuSVR": _single_machine("margrove.margin.svm.svr:NuSVR", epsilon_=real(finite=False)),
    "OneClassSVM": _single_machine(
        "margrove.margin.svm.one_class_svm:OneClassSVM", offset_=array("f8", "1", finite=True)
    ),
    "LinearSVC": _LINEAR_SVC,
    "LinearSVR": _LINEAR_SVR,
    "PolynomialMap": _feature_map("PolynomialMap"),
    "RBFTaylorMap": _feature_map("RBFTaylorMap", gamma_=real(), error_bound_=real(finite=False)),
}
