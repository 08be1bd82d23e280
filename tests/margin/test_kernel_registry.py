"""A kernel is added in one file: everything else reads the registry."""

from __future__ import annotations

import importlib
import io
import pickle
import subprocess
import sys
from pathlib import Path

import click
import numpy as np
import pytest
import scipy.sparse as sp

import margrove
from margrove.cli.options import learner_options, parsed_parameters
from margrove.exceptions import InvalidDataError, ModelFileError, UnsavableModelError
from margrove.margin.kernels import KERNELS, DotKernel, KernelParameter
from margrove.margin.kernels.registry import kernel_table, tuned_widths
from margrove.select.errors import InvalidRequestError
from margrove.studio.learners.registry import LEARNERS
from margrove.workbench.workflow import make_learner

CLASS = '''
from dataclasses import dataclass
from typing import ClassVar
import numpy as np
from margrove.margin.kernels import DotKernel, parameter, registered

@registered
@dataclass(frozen=True)
class Cauchy(DotKernel):
    """1 / (1 + gamma ||x - z||^2)"""

    name: ClassVar[str] = "cauchy"
    translation_invariant: ClassVar[bool] = True
    gamma: float = parameter(1.0, low=0.0, tuned=(-1.0, 1.0))

    def finish(self, dots, a2, b2):
        dots *= -2.0
        dots += a2[:, None]
        dots += b2
        np.maximum(dots, 0.0, out=dots)
        dots *= self.gamma
        dots += 1.0
        np.reciprocal(dots, out=dots)

    def diagonal(self, A):
        return np.ones(len(A))
'''

FUNCTION = '''
import margrove
from margrove.margin.kernels import KernelParameter

def cauchy(X, Z, gamma=1.0):
    """1 / (1 + gamma ||x - z||^2)"""
    squared = (X**2).sum(axis=1)[:, None] + (Z**2).sum(axis=1) - 2 * X @ Z.T
    return 1 / (1 + gamma * squared.clip(0.0))

margrove.register_kernel(
    "cauchy", cauchy, positive_definite=True, reads_sparse=False,
    invariances=("translation_invariant", "rotation_invariant", "permutation_invariant"),
    parameters={"gamma": KernelParameter(1.0, low=0.0, tuned=(-1.0, 1.0))},
)
'''

X, LABELS = margrove.datasets.make_moons(60, noise=0.2, return_X_y=True)
MACHINES = [
    margrove.SVC(kernel="cauchy", gamma=2.0),
    margrove.SVR(kernel="cauchy", gamma=2.0),
    margrove.OneClassSVM(kernel="cauchy", gamma=2.0),
    margrove.KernelPerceptron(kernel="cauchy", gamma=2.0),
]


@pytest.fixture(params=[CLASS, FUNCTION], ids=["class", "function"])
def module(request, tmp_path, monkeypatch):
    """A module of a user that registers a kernel when it is imported."""
    name = f"kernel_of_{request.node.callspec.id.replace('-', '_')}"
    Path(tmp_path, f"{name}.py").write_text(request.param)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield importlib.import_module(name)
    KERNELS.pop("cauchy", None)
    sys.modules.pop(name, None)


def value_of(model, rows):
    scores = getattr(model, "decision_function", model.predict)
    return scores(rows)


def saved(model) -> bytes:
    file = io.BytesIO()
    margrove.save(model, file)
    return file.getvalue()


@pytest.mark.parametrize("machine", MACHINES, ids=lambda own: type(own).__name__)
def test_machines_fit_save_and_load_with_it_by_name(module, machine) -> None:
    model = machine.fit(X, LABELS)
    assert model.kernel_ == KERNELS["cauchy"](gamma=2.0)
    again = margrove.load(io.BytesIO(saved(model)))
    assert again.kernel_ == model.kernel_
    assert np.array_equal(value_of(again, X), value_of(model, X))
    copied = pickle.loads(pickle.dumps(model))
    assert np.array_equal(value_of(copied, X), value_of(model, X))
    there = machine.fit(sp.csr_array(X), LABELS)
    assert np.allclose(value_of(there, X), value_of(again, X), atol=2e-2)


def test_a_file_is_refused_where_it_is_not_registered(module, tmp_path) -> None:
    path = tmp_path / "model.margrove"
    margrove.save(margrove.SVC(kernel="cauchy").fit(X, LABELS), path)
    code = f"import margrove; margrove.load({str(path)!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ModelFileError" in done.stderr
    assert "kernel 'cauchy' is not registered in this process" in done.stderr
    assert "margrove.register_kernel('cauchy', function)" in done.stderr
    kept = KERNELS.pop("cauchy")
    with pytest.raises(ModelFileError, match="'cauchy' is not registered"):
        margrove.load(path)
    with pytest.raises(ValueError, match=r"must be one of \['chi2'.*'cauchy'.*register_kernel"):
        margrove.SVC(kernel="cauchy").fit(X, LABELS)
    KERNELS["cauchy"] = kept
    assert margrove.load(path).kernel_.name == "cauchy"


def test_its_gamma_is_tuned_on_its_grid(module) -> None:
    assert tuned_widths("cauchy") == (-1.0, 1.0)
    search = margrove.SVCCV(Cs=[1.0], gammas=3, kernel="cauchy", cv=3).fit(X, LABELS)
    usual = margrove.SVC(kernel="cauchy").fit(X, LABELS).kernel_.gamma
    assert np.allclose(search.gammas_, usual * np.array([0.1, 1.0, 10.0]))
    tuning = margrove.autotune(margrove.SVC(kernel="cauchy"), X, LABELS, cv=3)
    tried = {own["gamma"] for own in tuning.tuning_.candidates}
    assert np.allclose(sorted(tried), usual * np.array([0.1, 1.0, 10.0]), rtol=1e-3)


def test_the_command_line_offers_it(module) -> None:
    @click.command()
    @learner_options
    def command(**options) -> None: ...

    option = next(own for own in command.params if own.name == "parameters")
    offered = option.shell_complete(click.Context(command), "kernel=")
    assert "kernel=cauchy" in [own.value for own in offered]
    assert option.shell_complete(click.Context(command), "C=") == []
    parsed = parsed_parameters(("kernel=cauchy",))
    assert make_learner("svm", "classification", parameters=parsed).kernel == "cauchy"
    with pytest.raises(InvalidRequestError, match=r"no kernel 'gaussian'. There are cauchy, chi2"):
        make_learner("svm", "regression", parameters={"kernel": "gaussian"})


def test_the_studio_offers_it(module) -> None:
    for learner in ("SVC", "SVR", "KernelPerceptron"):
        told = {own["name"]: own for own in LEARNERS[learner].as_dict()["parameters"]}
        titles = {own["value"]: own["title"] for own in told["kernel"]["choices"]}
        assert titles["cauchy"] == "cauchy: 1 / (1 + gamma ||x - z||^2)"
        assert "cauchy" in told["gamma"]["when"]["values"]
        assert "cauchy" not in told["degree"]["when"]["values"]


def test_it_is_listed_for_documentation_and_property_tests(module) -> None:
    row = "| `'cauchy'` | 1 / (1 + gamma ‖x - z‖^2) | `gamma` | yes |"
    assert row in kernel_table()
    kernel = KERNELS["cauchy"]
    assert kernel.translation_invariant
    assert kernel.rotation_invariant
    assert kernel.permutation_invariant
    assert kernel.parameters() == {"gamma": KernelParameter(1.0, low=0.0, tuned=(-1.0, 1.0))}


@pytest.mark.nojit
def test_the_table_of_the_documentation_is_that_of_the_registry() -> None:
    page = Path(__file__).parents[2] / "docs" / "howto" / "add-a-kernel.md"
    assert kernel_table() in page.read_text(encoding="utf-8")


@pytest.mark.nojit
def test_what_is_registered_wrongly_is_refused() -> None:
    def product(X, Z, power=1.0):
        return (X @ Z.T) ** power

    for wrong in ("", None):
        with pytest.raises(ValueError, match="name must be a nonempty string"):
            margrove.register_kernel(wrong, product)
    with pytest.raises(ValueError, match=r"invariances must be among .* Got 'mirrored'"):
        margrove.register_kernel("product", product, invariances=("mirrored",))
    with pytest.raises(ValueError, match=r"has no parameter 'gamma'. It has \['power'\]"):
        margrove.register_kernel("product", product, parameters={"gamma": KernelParameter()})
    assert "product" not in KERNELS


@pytest.mark.nojit
def test_other_parameters_and_ranges_of_functions() -> None:
    def product(X, Z, power=1.0):
        return (X @ Z.T) ** power

    told = {"power": KernelParameter(2, low=1, high=3, whole=True)}
    kernel = margrove.register_kernel("power", product, nonnegative=True, parameters=told)
    try:
        assert kernel()([[2.0]], [[3.0]]) == 36.0
        assert kernel(power=1)([[2.0]], [[3.0]]) == 6.0
        with pytest.raises(ValueError, match=r"'power' parameter .* must be from 1 to 3. Got 4"):
            kernel(power=4)
        with pytest.raises(ValueError, match=r"whole number. Got 1.5"):
            kernel(power=1.5)
        with pytest.raises(InvalidDataError, match="'power' needs features >= 0, got -1"):
            margrove.SVC(kernel="power").fit([[1.0], [-1.0]], [0, 1])
        assert margrove.SVC(kernel="power").__sklearn_tags__().input_tags.positive_only
    finally:
        del KERNELS["power"]


def test_a_function_sees_rows_of_any_size_as_they_are() -> None:
    seen = []

    def product(X, Z):
        seen.append(float(np.abs(X).max()))
        return X @ Z.T

    margrove.SVC(kernel=product).fit([[-1e10], [1e10]], [0, 1])
    assert set(seen) == {1e10}


def test_a_kernel_class_that_is_not_registered_is_not_saved() -> None:
    class Doubled(DotKernel):
        """2 x.z"""

        name = "doubled"

        def finish(self, dots, a2, b2):
            dots *= 2.0

    with pytest.raises(UnsavableModelError, match=r"is not registered.*kernels\.registered"):
        saved(margrove.SVC(kernel=Doubled()).fit(X, LABELS))


@pytest.mark.parametrize(
    "program",
    [
        "import margrove; found = margrove.kernels.KERNELS",
        "from margrove.margin.kernels import KERNELS as found",
        "from margrove.margin.kernels import register_kernel, KERNELS as found",
    ],
)
def test_a_new_process_knows_the_kernels_of_the_library(program) -> None:
    """Whatever is imported first: doors load modules one at a time."""
    done = subprocess.run(
        [sys.executable, "-c", f"{program}; print(sorted(found))"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert "'rbf'" in done.stdout
    assert "'chi2'" in done.stdout
