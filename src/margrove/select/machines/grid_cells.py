"""The cells of a grid of C and gamma: scores, the best cell, and the table of results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import rankdata

from margrove.margin.solvers.dual import BROKEN_OFF, CONVERGED, UNCHANGED
from margrove.select.held_out import FoldScorer
from margrove.select.machines.machine_paths import FoldPaths

__all__ = ["Cells"]

_NAMES = np.array(["dropped", "converged", "unchanged", "broken off"])
_DROPPED = 0


@dataclass(frozen=True)
class Cells:
    """One cell for each C and gamma; gamma is NaN where the kernel has none.

    Attributes
    ----------
    Cs, gammas : ndarray
    scores : ndarray of shape (n_Cs, n_gammas, n_folds)
    fit_seconds, score_seconds : ndarray of shape (n_Cs, n_gammas, n_folds)
    proofs : dict of ndarray of shape (n_Cs, n_gammas)
        Figures of the machines of a cell. For kernel machines: `kkt_violation`, the largest of any
        machine of any fold; `n_steps`, the pair steps of all machines; `mean_n_support`, the mean
        over the folds of the number of support vectors; and `ending`: "converged"; "unchanged"
        where every machine is that of the next smaller C, because none of its variables was at a
        bound; "broken off" where the solver stopped at its limit of steps; or "dropped" where not
        all folds were solved. A dropped cell has NaN in place of `kkt_violation` and
        `mean_n_support`, and its scores are NaN in the folds that were not solved.
    """

    Cs: np.ndarray
    gammas: np.ndarray
    scores: np.ndarray
    fit_seconds: np.ndarray
    score_seconds: np.ndarray
    proofs: dict[str, np.ndarray]

    @classmethod
    def of_paths(
        cls,
        Cs: np.ndarray,
        gammas: np.ndarray,
        paths: Sequence[Sequence[FoldPaths]],
        fold_scorer: FoldScorer,
    ) -> Cells:
        """The cells of a search over kernel machines; paths[gamma][fold] are those of a fold."""
        shape = (len(Cs), len(gammas), len(fold_scorer.rows.folds))
        violations, steps, supports = (np.zeros(shape) for _ in range(3))
        seconds = np.zeros(shape)
        endings = np.zeros(shape, dtype=np.int8)
        for g, folds in enumerate(paths):
            for k, fold_paths in enumerate(folds):
                found = [path for path in fold_paths if path is not None]
                if not found:  # dropped before this fold
                    continue
                violations[:, g, k] = np.max([path.violations for path in found], axis=0)
                steps[:, g, k] = np.sum([path.steps for path in found], axis=0)
                supports[:, g, k] = np.sum([path.n_support for path in found], axis=0)
                endings[:, g, k] = _common_ending(np.array([path.endings for path in found]))
                share = steps[:, g, k] + 1.0
                seconds[:, g, k] = sum(path.seconds for path in found) * share / share.sum()
        is_dropped = (endings == _DROPPED).any(axis=2)
        proofs = {
            "kkt_violation": np.where(is_dropped, np.nan, violations.max(axis=2)),
            "n_steps": steps.sum(axis=2).astype(np.int64),
            "mean_n_support": np.where(is_dropped, np.nan, supports.mean(axis=2)),
            "ending": _NAMES[_common_ending(np.moveaxis(endings, 2, 0))],
        }
        score_seconds = np.broadcast_to(fold_scorer.seconds / len(Cs), shape)
        return cls(Cs, gammas, fold_scorer.scores, seconds, score_seconds, proofs)

    @property
    def means(self) -> np.ndarray:
        return np.asarray(self.scores.mean(axis=2))

    @property
    def standard_errors(self) -> np.ndarray:
        """Standard errors of the means, from the spread over the folds."""
        n_folds = self.scores.shape[2]
        if n_folds < 2:
            return np.zeros(self.means.shape)
        return np.asarray(self.scores.std(axis=2, ddof=1) / np.sqrt(n_folds))

    def best(self, rule: str) -> tuple[int, int]:
        """The cell of the best mean score; "1se": the smoothest within one standard error of it.

        Among equal cells, the one of the smallest C, then of the smallest gamma.
        """
        means = np.where(np.isnan(self.means), -np.inf, self.means)
        flat = int(np.argmax(means))
        c, g = divmod(flat, means.shape[1])
        if rule == "1se":
            good = means >= means[c, g] - self.standard_errors[c, g]
            c, g = divmod(int(np.argmax(good)), means.shape[1])
        return c, g

    def parameters(self, c: int, g: int) -> dict[str, float]:
        cell = {"C": float(self.Cs[c])}
        return cell if np.isnan(self.gammas[g]) else cell | {"gamma": float(self.gammas[g])}

    def findings(self, c: int, g: int) -> dict[str, Any]:
        """The attributes of a search that has chosen a cell."""
        best = self.parameters(c, g)
        found = {
            "Cs_": self.Cs,
            "C_": best["C"],
            "cells_": self,
            "scores_": self.scores,
            "cv_results_": self.results(),
            "best_params_": best,
            "best_score_": float(self.means[c, g]),
            "best_index_": c * len(self.gammas) + g,
            "n_splits_": self.scores.shape[2],
        }
        if "gamma" in best:
            found |= {"gammas_": self.gammas, "gamma_": best["gamma"]}
        return found

    def results(self) -> dict[str, Any]:
        """The columns of scikit-learn's `cv_results_`, followed by `proofs`."""
        n_Cs, n_gammas, n_folds = self.scores.shape
        places = [(c, g) for c in range(n_Cs) for g in range(n_gammas)]
        table: dict[str, Any] = {}
        for name, seconds in (("fit", self.fit_seconds), ("score", self.score_seconds)):
            table[f"mean_{name}_time"] = seconds.mean(axis=2).ravel()
            table[f"std_{name}_time"] = seconds.std(axis=2).ravel()
        table["param_C"] = np.ma.MaskedArray(np.repeat(self.Cs, n_gammas), mask=False)
        if not np.isnan(self.gammas).any():
            table["param_gamma"] = np.ma.MaskedArray(np.tile(self.gammas, n_Cs), mask=False)
        table["params"] = [self.parameters(c, g) for c, g in places]
        for k in range(n_folds):
            table[f"split{k}_test_score"] = self.scores[:, :, k].ravel()
        means = self.means.ravel()
        table["mean_test_score"] = means
        table["std_test_score"] = self.scores.std(axis=2).ravel()
        table["rank_test_score"] = rankdata(
            -np.where(np.isnan(means), -np.inf, means), method="min"
        ).astype(np.int32)
        return table | {name: values.ravel() for name, values in self.proofs.items()}


def _common_ending(endings: np.ndarray) -> np.ndarray:
    """The ending of several machines (the first axis) together."""
    are_unchanged = (endings == UNCHANGED).all(axis=0)
    is_broken = (endings == BROKEN_OFF).any(axis=0)
    common = np.where(is_broken, BROKEN_OFF, np.where(are_unchanged, UNCHANGED, CONVERGED))
    return np.where((endings == _DROPPED).any(axis=0), _DROPPED, common)
