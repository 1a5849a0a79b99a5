"""Card sections on the model: use, metrics, failure modes, data and origin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from calibrant.bundle.calib_rows import FILE
from calibrant.bundle.card.wording import as_code, escape_html, list_names
from calibrant.data.encoders.image_encoder import ImageEncoder
from calibrant.data.encoders.ngram_encoder import NgramEncoder
from calibrant.data.encoders.subword_encoder import SubwordEncoder
from calibrant.data.encoders.text_encoder import TextEncoder
from calibrant.formatting import format_count, number, printable
from calibrant.metrics.catalogue import title_of

if TYPE_CHECKING:
    from calibrant.bundle.bundle import Bundle
    from calibrant.data.row_scorer import RowScorer
    from calibrant.ood import OodRule

_REDACTED_NOTE = (
    "E-mail addresses, phone numbers, order numbers and similar data are redacted from every text "
    "by patterns before it is read. Names and unusual numbers may remain."
)

_UNREDACTED_NOTE = "Texts are read without redaction."


def input_lines(scorer: RowScorer) -> Iterator[str]:
    """Describe the required inputs."""
    encoder = scorer.encoder
    if scorer.text:
        yield f"Pass texts: a list, or a table with the column {as_code(scorer.column)}."
    elif not isinstance(encoder, ImageEncoder):
        yield f"Pass table rows with the columns {list_names(scorer.columns.names)}."
    else:
        height, width = encoder.size_
        colour = "in grey (1 channel)" if encoder.channels_ == 1 else "in colour (3 channels)"
        yield (
            f"Pass images of {height} x {width} pixels {colour}, with integer pixel values from "
            "0 to 255."
        )
        if scorer.resize:
            yield (
                "Image files of other sizes are scaled to cover that size and centre-cropped. "
                "Arrays of other sizes are rejected."
            )
        else:
            yield "Images of other sizes are rejected."


def misread_line(scorer: RowScorer) -> str:
    """Describe known errors that follow from the encoding."""
    encoder = scorer.encoder
    if isinstance(encoder, TextEncoder):
        return (
            "Words that did not occur in the train texts, including misspelt words and other "
            "languages, are all read as one unknown word. Only the first "
            f"{encoder.max_length:,} words of a text are read."
        )
    if isinstance(encoder, SubwordEncoder):
        return (
            "Words are split into sub-word tokens, so none is unknown. But texts in a language or "
            "domain that is rare in the pretraining and train texts are scored with the same "
            f"confidence as any other. At most {encoder.max_length:,} tokens of a text are read, "
            "including the special tokens."
        )
    if isinstance(encoder, NgramEncoder):
        return (
            "A text is read as the set of its words, pairs of words and runs of characters: their "
            "order beyond that, and all that did not occur in the train texts, are ignored. A text "
            "without a known one cannot be scored."
        )
    if isinstance(encoder, ImageEncoder):
        return (
            "Images that differ from the train images (another camera, light, distance or "
            "background, a drawing instead of a photo) are scored as if they were similar."
        )
    if "boosting" in scorer.networks:  # an ensemble scores what all of its members can read
        beyond = "A number that is a little beyond them is scored like the farthest of them."
        return (
            "A row with a category that did not occur in the train rows, or with a number far from "
            "theirs, gets the same probability for every class. "
            + (beyond if set(scorer.networks) == {"boosting"} else "")
        ).rstrip()
    return (
        "Categories that did not occur in the train rows are read as one category, or as none "
        "of the known ones. Numbers far from those of the train rows are not clipped."
    )


def stored_data_lines(scorer: RowScorer) -> Iterator[str]:
    """Describe how data are processed, and which train data are in the folder."""
    encoder = scorer.encoder
    if scorer.text:
        yield _REDACTED_NOTE if scorer.redact else _UNREDACTED_NOTE
    if isinstance(encoder, TextEncoder):
        yield _words("tokenizer.json", "words", int(encoder.min_count), "time")
    elif isinstance(encoder, NgramEncoder):
        what = "words and short runs of characters"
        yield _words("ngrams.json", what, int(encoder.min_count), "text")
    elif isinstance(encoder, SubwordEncoder):
        yield (
            "The bundle contains no texts. `tokenizer.json` is that of the pretrained network and "
            "contains nothing from the train texts."
        )
    elif isinstance(encoder, ImageEncoder):
        yield (
            "The bundle contains no images. The manifest contains the size of the train images, "
            "and the mean and standard deviation of each channel."
        )
    else:
        yield (
            "The bundle contains no rows. The manifest contains the names of the columns and "
            "categories of the train rows, and the mean and scale of each numeric column."
        )
    if "boosting" in scorer.networks:
        yield (
            "`model.txt` contains the smallest and largest number of each numeric column among the "
            "train rows, and the numbers at which the trees split."
        )


def _words(file: str, what: str, min_count: int, unit: str) -> str:
    often = f" that occur at least {format_count(min_count, unit)}"
    if unit == "text":
        often = f" that occur in at least {format_count(min_count, unit)}"
    often = "" if min_count == 1 else often
    return (
        f"The bundle contains no texts, but `{file}` contains {what} of the train "
        f"texts{often}, up to the size of the vocabulary, including rare words and names."
    )


def describe_model(scorer: RowScorer) -> Iterator[str]:
    """Describe the model, its averaging and its size."""
    config, size = scorer.config, scorer.size
    names = " and ".join(as_code(name) for name in dict.fromkeys(scorer.networks))
    if config["model"] == "ensemble":
        members = format_count(len(config["members"]), "model")
        shares = config.get("weights")
        weighted = "" if shares is None else f" with the weights {_list_shares(shares)}"
        yield (
            f"It is an ensemble that averages the probabilities of {members}, {names}{weighted}; "
            f"{size} in total."
        )
    elif config["model"] == "mc_dropout":
        yield (
            f"It averages the probabilities of {config['passes']:,} thinned copies of one network, "
            f"{names}, with {size}. Each copy drops a different, fixed set of units, so "
            "that the result for a row is always the same."
        )
    else:
        yield f"The model is {names}, with {size}."
    if scorer.note:
        yield scorer.note


def _list_shares(shares: Sequence[float]) -> str:
    return ", ".join(f"{share:.2f}" for share in shares)


_FIGURES = ("accuracy", "nll", "ece_em")  # Test metrics on the card


def intended_use(bundle: Bundle) -> Iterator[str]:
    """Describe inputs and outputs."""
    if bundle.scorer is None:
        yield "Pass the logits of the classifier that it was made for, and of no other."
    else:
        yield from input_lines(bundle.scorer)
    yield ("It returns a probability for each class and, with an operating point, a decision.")


def figures(bundle: Bundle) -> Iterator[str]:
    """List a few test metrics, if packed."""
    metrics = _as_mapping(bundle.metrics.get("test"))
    shown = [name for name in _FIGURES if _has_value(metrics, name)]
    if not shown:
        yield "No test metrics were packed."
        return
    n = bundle.metrics.get("n")
    rows = format_count(n, "test row") if isinstance(n, int) else "the test rows"
    for name in shown:
        low, high = (metrics[name].get(end) for end in ("low", "high"))
        span = "" if low is None or high is None else f" ({number(low)} to {number(high)})"
        yield f"{title_of(name)}: {number(metrics[name]['value'])}{span}, on {rows}."


def failure_modes(bundle: Bundle) -> Iterator[str]:
    """Describe known failure modes of this kind of model."""
    if bundle.ood is None:
        yield (
            "There is no out-of-scope rule: a row of none of the classes is scored as "
            "if it belonged to one."
        )
    elif bundle.ood.score == "unreadable":
        yield "A row is out of scope if the model cannot read it: its logits are all equal then."
    else:
        rule = bundle.ood
        yield (
            f"A row is out of scope if the {rule.score} of its logits is above "
            f"{_threshold_text(rule)}. It was fitted on {format_count(rule.n, 'row')} in scope, "
            f"of which it flags at most {100 * (1 - rule.quantile):.3g} %. Unusual rows with "
            "similar scores are not flagged."
        )
    equal = bundle.ood is not None and bundle.ood.equal
    if equal and bundle.scorer is not None and bundle.scorer.knows_far_numbers:
        yield (
            "So is a row with a number whose distance from the train range of its column "
            "exceeds the width of that range."
        )
    if equal and isinstance(getattr(bundle.scorer, "encoder", None), NgramEncoder):
        yield "So is a text without a known n-gram."
    yield "When the class frequencies change, probabilities are biased until it is recalibrated."
    if bundle.scorer is not None:
        yield misread_line(bundle.scorer)


def _threshold_text(rule: OodRule) -> str:
    if rule.by_class is None:
        return f"{rule.threshold:.4g}"
    low, high = min(rule.by_class), max(rule.by_class)
    return f"the threshold of its predicted class ({low:.4g} to {high:.4g})"


def hand_over(bundle: Bundle) -> Iterator[str]:
    """Describe which rows go to a person, with what information."""
    if not bundle.points:
        yield "It makes no decisions: the use of its probabilities is up to its users."
        return
    yield "A row goes to a person if its decision is `abstain`: no operating point acts on it."
    if bundle.ood is not None:
        yield "So does every row with `out_of_scope` true, however confident its scores are."
    yield "The most probable class and all probabilities are included as a hint, not a decision."


def data_handling(bundle: Bundle) -> Iterator[str]:
    """Describe how data are processed, and which data are in the folder."""
    calib = FILE in _as_mapping(bundle.manifest.get("files"))
    if bundle.scorer is not None:
        yield from stored_data_lines(bundle.scorer)
    elif calib:
        yield "It reads scores, not rows."
    else:
        yield "It contains no rows and reads scores only."
    if calib:
        yield (
            f"`{FILE}` contains the logits, the class and the weight (if any) of every calibrate "
            "row, for exploring thresholds, and nothing else from those rows."
        )
    for name, part in _splits(bundle).items():
        source = (
            f" from {escape_html(printable(str(part['source'])))}" if part.get("source") else ""
        )
        digest = f" ({str(part['sha256'])[:16]}…)" if part.get("sha256") else ""
        rows = format_count(part["rows"], "row")
        yield f"{escape_html(printable(name))}: {rows}{source}{digest}."


def origin(bundle: Bundle) -> Iterator[str]:
    """Report the time, package versions and source files of the bundle."""
    provenance = bundle.provenance
    if bundle.scorer is not None:
        yield from describe_model(bundle.scorer)
    versions = ", ".join(f"{name} {version}" for name, version in provenance["packages"].items())
    yield f"Packed {provenance['created']} with {versions}, Python {provenance['python']}."
    for source in provenance["sources"]:
        role = source["role"].replace("_", " ")
        name = escape_html(printable(source["name"]))
        yield f"The {role} is from `{name}`, {source['sha256'][:16]}…"
    yield f"`manifest.json` (format {bundle.manifest['format']}) contains every value and hash."


def _splits(bundle: Bundle) -> Mapping[str, Mapping[str, Any]]:
    """Return the packed splits, ignoring malformed entries."""
    return {
        str(name): part
        for name, part in _as_mapping(bundle.provenance.get("splits")).items()
        if isinstance(part, Mapping) and isinstance(part.get("rows"), int)
    }


def _as_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _has_value(metrics: Mapping[str, Any], name: str) -> bool:
    return isinstance(_as_mapping(metrics.get(name)).get("value"), int | float)
