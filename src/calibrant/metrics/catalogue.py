"""Names, titles and definitions of the metrics that `evaluate` reports."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """Title and definition of a metric, and whether lower or higher is better."""

    title: str
    definition: str
    better: str = "lower"


_BINS = "{n_bins} bins; a bin holds its lower edge, the last also 1"
_MACRO = "mean over classes that occur as label or prediction"
_RANK = "one class against the rest, mean over classes with rows inside and outside"

CATALOGUE: dict[str, Entry] = {
    "ece_ew": Entry(
        "ECE, equal width",
        f"mean over rows of |event rate - mean score| in {_BINS}; equally wide, L1, {{target}}",
    ),
    "ece_em": Entry(
        "ECE, equal mass",
        f"the same in {_BINS}; equally filled, tied scores together, L1, {{target}}",
    ),
    "mce": Entry(
        "MCE", f"largest |event rate - mean score| of a non-empty bin; equally wide, {_BINS}, "
        "{target}; one row alone in a bin can decide it",
    ),
    "ece_debiased": Entry(
        "ECE, debiased (L2)",
        "root mean square gap less what chance adds (Kumar et al. 2019); {n_bins} equally filled "
        "bins, L2, {target}",
    ),
    "ece_sweep_ew": Entry(
        "ECE sweep, equal width",
        "ECE with the most equally wide bins whose event rates do not fall (Roelofs et al. 2022); "
        "L1, {target}",
    ),
    "ece_sweep_em": Entry(
        "ECE sweep, equal mass",
        "ECE with the most equally filled bins whose event rates do not fall (Roelofs et al. "
        "2022); L1, {target}",
    ),
    "ece_classwise": Entry(
        "ECE, class-wise",
        "mean over the {k} classes of the ECE of that class's probability (SCE); {n_bins} equally "
        "wide bins, L1",
    ),
    "ace": Entry(
        "ACE", "mean over the {k} classes of the ECE of that class's probability; {n_bins} equally "
        "filled bins, L1",
    ),
    "ece_smooth": Entry(
        "Smooth ECE",
        "the bandwidth that equals the kernel-smoothed error (Blasiok & Nakkiran 2024); {target}",
    ),
    "ks": Entry(
        "KS calibration error",
        "largest absolute running sum of (event - score)/n in the order of the scores; {target}",
    ),
    "nll": Entry("NLL (log loss)", "mean of -log p(label), in nats; nothing is clipped"),
    "brier": Entry(
        "Brier score",
        "mean squared error of P(positive) for two classes; for more, of all probabilities, summed "
        "over classes",
    ),
    "accuracy": Entry("Accuracy", "share of rows whose most probable class is the label", "higher"),
    "precision_macro": Entry(
        "Precision, macro", f"{_MACRO}; a class never predicted counts 0", "higher"
    ),
    "recall_macro": Entry("Recall, macro", f"{_MACRO}; a class without rows counts 0", "higher"),
    "f1_macro": Entry("F1, macro", f"mean of the F1s, not F1 of the means; {_MACRO}", "higher"),
    "matthews": Entry(
        "Matthews correlation", "correlation of label and prediction (multiclass form)", "higher"
    ),
    "auroc": Entry("AUROC", f"chance that an event outranks a non-event, ties half; {_RANK}",
                   "higher"),
    "auprc": Entry("AUPRC", f"average precision, no interpolation; {_RANK}", "higher"),
    "aurc": Entry(
        "AURC", "mean error rate among the most confident rows, over all coverages"
    ),
    "ece_ew_top_label": Entry(
        "ECE of the top label, equal width",
        "mean over rows of |accuracy - mean confidence| in {n_bins} equally wide bins; L1, "
        "top-label",
    ),
    "ece_em_top_label": Entry(
        "ECE of the top label, equal mass",
        "mean over rows of |accuracy - mean confidence| in {n_bins} equally filled bins; L1, "
        "top-label",
    ),
}  # fmt: skip

NAMES = tuple(CATALOGUE)


def title_of(name: str) -> str:
    """Return the title of a metric for people."""
    return CATALOGUE[name].title if name in CATALOGUE else name


def better_of(name: str) -> str:
    """Return which way a metric is better, `lower` or `higher`, or nothing if unknown."""
    return CATALOGUE[name].better if name in CATALOGUE else ""
