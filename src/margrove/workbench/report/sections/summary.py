"""The summary: the most important results in sentences."""

from __future__ import annotations

from typing import Any

from margrove.workbench.report.blocks import Block, Card, Cards, Remark, Remarks, Section, Words
from margrove.workbench.report.judgement import ClassJudgement, NumberJudgement
from margrove.workbench.report.profile import TableProfile
from margrove.workbench.report.subject import Subject
from margrove.workbench.report.texts import count, counted, listed, number, percent, visible

__all__ = ["summary_section"]

_STRONGEST = 3


def summary_section(
    subject: Subject,
    judgement: Any,
    profile: TableProfile,
    comparison: Any,
    diagnosis: Any,
) -> Section:
    blocks: list[Block] = [Words(_verdict(subject, judgement), "lead")]
    sentences = []
    if comparison is not None:
        names = [model.name for model in comparison.models]
        among = f"Of {counted(len(names), 'model')} that were compared: "
        sentences.append(among + visible(comparison.sentence, 2000))
    strongest = [f"“{visible(name, 40)}”" for name in subject.moving_names[:_STRONGEST]]
    if strongest:
        sentences.append(
            f"Of single columns, {listed(strongest)} {'moves' if len(strongest) == 1 else 'move'} "
            "the answer most."
        )
    proof = getattr(subject.facts, "proof", None)
    if proof is not None:
        sentences.append(
            "Its duality gap proves that no machine of its kind, with these rows and parameters, "
            f"is better by more than {percent(proof.relative_gap, 3)}."
        )
    if sentences:
        blocks.append(Words(" ".join(sentences)))
    blocks.append(Cards(tuple(_cards(subject, judgement, profile))))
    if not subject.is_held_out and judgement is not None:
        words = (
            "No rows were held out: the figures are those of the training rows, and will be worse "
            "for new rows."
        )
        blocks.append(Remarks((Remark("warning", words),)))
    if diagnosis is not None:
        blocks.append(Remarks((_doctor_remark(diagnosis),)))
    return Section("summary", "Summary", blocks)


def _doctor_remark(diagnosis: Any) -> Remark:
    if not diagnosis.findings:
        return Remark("good", "The doctor found nothing wrong with the data.")
    worst = diagnosis.findings[0]
    words = f"The doctor found in the data: {diagnosis.verdict}. The first: "
    return Remark(worst.severity, words + visible(worst.message, 400))


def _verdict(subject: Subject, judgement: Any) -> str:
    target = (
        f"“{visible(subject.target)}”"
        if subject.target
        else ("the class" if subject.task == "classification" else "the target")
    )
    who = visible(subject.estimator)
    rows = "it has not seen" if subject.is_held_out else "it was trained on"
    if isinstance(judgement, ClassJudgement):
        low, high = judgement.interval
        label, baseline = judgement.baseline
        return (
            f"{who} predicts {target} with {percent(judgement.accuracy)} accuracy "
            f"({_bare(low)} to {_bare(high)}) on {counted(judgement.n_rows, 'row')} {rows}; always "
            f"predicting “{visible(label, 40)}” would reach {percent(baseline)}."
        )
    if isinstance(judgement, NumberJudgement):
        found = judgement.residuals
        explained = "" if found.r2 is None else f" and explains {_r2(judgement)} of the variance"
        return (
            f"{who} predicts {target} with an error of {number(found.root_mean_squared_error)} "
            f"(root mean square){explained}, on {counted(judgement.n_rows, 'row')} {rows}; always "
            f"predicting the mean would be off by {number(judgement.baseline_error)}."
        )
    return f"{who} was fitted to {counted(subject.n_rows, 'row')}."


def _bare(share: float) -> str:
    return percent(share).removesuffix(" %")


def _r2(judgement: NumberJudgement) -> str:
    r2 = judgement.residuals.r2
    assert r2 is not None
    if r2 < 0.0:
        return "none"
    if judgement.interval is None:
        return percent(r2)
    low, high = judgement.interval
    return f"{percent(r2)} ({100 * low:.1f} to {100 * high:.1f})"


def _cards(subject: Subject, judgement: Any, profile: TableProfile) -> list[Card]:
    cards = []
    if isinstance(judgement, ClassJudgement):
        low, high = judgement.interval
        cards.append(
            Card("accuracy", percent(judgement.accuracy), f"95 %: {_bare(low)} to {_bare(high)}")
        )
        roc = judgement.roc
        if roc is not None and roc.curves:
            note = "mean over classes" if len(roc.curves) > 1 else "0.5 is chance"
            cards.append(Card("area under ROC", number(roc.area, 3), note))
        if judgement.reliability is not None:
            curve = judgement.reliability.curve
            cards.append(
                Card("calibration error", percent(curve.expected_error),
                     f"{percent(curve.chance_error)} is chance")
            )  # fmt: skip
        cards.append(Card("classes", count(len(judgement.confusion.classes))))
    elif isinstance(judgement, NumberJudgement):
        found = judgement.residuals
        ends = judgement.interval
        note = "" if ends is None else f"95 %: {number(ends[0], 3)} to {number(ends[1], 3)}"
        cards += [
            Card("R²", number(found.r2, 3), note),
            Card("mean absolute error", number(found.mean_absolute_error)),
            Card("root mean squared error", number(found.root_mean_squared_error),
                 f"{number(judgement.baseline_error)} for the mean"),
        ]  # fmt: skip
    cards.append(Card("training rows", count(profile.n_rows), counted(profile.n_columns, "column")))
    if subject.is_held_out and judgement is not None:
        cards.append(Card("held-out rows", count(judgement.n_rows)))
    return cards
