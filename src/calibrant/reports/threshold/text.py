"""Terminal text of operating points: the promise first, then the measured rates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from calibrant.errors import TargetUnreachable
from calibrant.formatting import format_count, percent, printable, quote_name, sentence
from calibrant.reports.text_tables import add_row, table_of, to_text
from calibrant.reports.threshold.wording import measured_interval, rate_value, threshold_words
from calibrant.thresholds import Band, OperatingPoint, OperatingPoints
from calibrant.thresholds.labels_needed.power import round_up
from calibrant.thresholds.proof.largest_weight import condition_clause

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

    from calibrant.thresholds import Target

Result = OperatingPoint | OperatingPoints | Band | TargetUnreachable

_SHOWN = {
    "precision": "of rows acted on, positive",
    "accuracy": "of accepted predictions, right",
    "recall": "of positive rows, acted on",
    "specificity": "of other rows, passed over",
    "npv": "of rows passed over, not positive",
    "coverage": "of all rows, acted on",
    "cost": "of a row, on average",
}
"""Rates of the table; their complements are shown only if they are held."""
_MORE = {
    "fpr": "of other rows, acted on",
    "false_discovery": "of rows acted on, not positive",
    "abstention": "of all rows, handed over",
}


def render_threshold(
    result: Result,
    *,
    notes: Sequence[str] = (),
    calibrated: bool = False,
    width: int = 100,
    color: bool = False,
) -> str:
    """Render the result of a threshold search for the terminal."""
    parts: Iterator[RenderableType]
    if isinstance(result, TargetUnreachable):
        parts = _unreachable_parts(result)
    elif isinstance(result, OperatingPoints):
        parts = _each_parts(result, notes)
    elif isinstance(result, Band):
        parts = _band_parts(result, notes, calibrated)
    else:
        parts = _point_parts(result, notes, calibrated)
    return to_text(parts, width, color)


def acting_rule(point: OperatingPoint, *, calibrated: bool = False) -> str:
    """Describe which rows are acted on.

    Log-odds are used if probabilities near 1 are not precise enough.
    """
    if point.threshold <= 0:
        return "accept every prediction" if point.of is None else "act on every row"
    verb = "accept a prediction" if point.of is None else "act on a row"
    return f"{verb} when {_score(point, calibrated)} is {_least(point)}"


def clearing_rule(point: OperatingPoint, *, calibrated: bool = False) -> str:
    """Describe which rows are cleared."""
    return f"clear a row when {_score(point, calibrated)} is below {_threshold(point)}"


def render_decisions(
    result: OperatingPoint | OperatingPoints | Band,
    decisions: Mapping[str, int],
    rows: int,
    *,
    more: Sequence[str] = (),
    calibrated: bool = False,
    width: int = 100,
) -> str:
    """Render the decisions about rows, and the rule, for the terminal."""
    from rich.text import Text

    lines = (*_decision_lines(result, decisions, rows, calibrated), *more)
    return to_text((Text(printable(line)) for line in lines), width, color=False)


def _decision_lines(
    result: OperatingPoint | OperatingPoints | Band,
    decisions: Mapping[str, int],
    rows: int,
    calibrated: bool,
) -> Iterator[str]:

    def share(n: int) -> str:
        return f"{n:,} of {format_count(rows, 'row')} ({percent(n / rows)})"

    if isinstance(result, OperatingPoints):
        for name, n in decisions.items():
            point = result.points[name]
            rule = f"where {_score(point, calibrated)} is {_least(point)}"
            yield f"Flagged as {quote_name(name)}: {share(n)}, {rule}."
        return
    yes = decisions["act"]
    if isinstance(result, Band):
        yield f"Acted on: {share(yes)}. Cleared: {share(decisions['clear'])}."
        yield f"For a person: {share(decisions['person'])}."
        yield f"The rule: {_band_rule(result, calibrated)}."
        return
    yield f"{'Accepted' if result.of is None else 'Acted on'}: {share(yes)}."
    yield f"The rule: {acting_rule(result, calibrated=calibrated)}."


def _point_parts(
    point: OperatingPoint, notes: Sequence[str], calibrated: bool
) -> Iterator[RenderableType]:
    from rich.text import Text

    yield _headline(point)
    yield Text(printable(sentence(acting_rule(point, calibrated=calibrated))))
    yield Text(printable(_chosen_on(point)))
    yield _rates(point)
    yield Text(_about_intervals(point))
    if point.baseline is not None and {"threshold", "cost"} <= set(point.baseline):
        yield Text(
            f"For comparison: acting from a decision score of {point.baseline['threshold']:.6g} "
            "on, which is best if these scores are calibrated, costs "
            f"{point.baseline['cost']:.4g} a row here."
        )
    yield from _notes((*point.notes, *notes))


def _each_parts(result: OperatingPoints, notes: Sequence[str]) -> Iterator[RenderableType]:
    """Yield one line for each class, then the unreachable targets."""
    from rich.text import Text

    points = list(result.points.values())
    promised = [point for point in points if point.guarantee is not None]
    if promised and result.confidence is not None:
        many = f"All {len(promised)} promises below hold together"
        if len(promised) == 1:
            many = "The promise below holds"
        level = f"with {100 * result.confidence:g} % confidence"
        drawn = (
            f"on new rows drawn like these {points[0].n:,}{condition_clause(promised[0].condition)}"
        )
        text = f"{many} {level}, {drawn}."
        yield Text(text, style="bold green")
    elif points:
        yield _headline(points[0])
    if points:
        yield _classes(points)
        yield Text("Precision, recall and the share flagged are as measured on these rows.")
    for error in result.unreachable.values():
        yield Text(printable(sentence(str(error))), style="bold yellow")
    if points and result.unreachable:
        yield Text(
            "Classes without a threshold are not in the file; the promises of the others stand."
        )
    twice = (
        [f"{format_count(result.flagged_twice, 'row')} would be flagged by more than one class"]
        if result.flagged_twice
        else []
    )
    own_notes = [note for point in points for note in point.notes]
    yield from _notes((*twice, *own_notes, *notes))


def _band_parts(band: Band, notes: Sequence[str], calibrated: bool) -> Iterator[RenderableType]:
    from rich.text import Text

    yield _headline(band)
    yield Text(printable(sentence(_band_rule(band, calibrated))))
    yield Text(f"{percent(band.automated)} of these rows need no person.")
    yield Text(
        printable(_chosen_on(band.upper, aim="to leave as few rows as possible to a person"))
    )
    names = ("Side", "Decision\nscore", "Rate", "Here", _level(band.upper), "Rows", "Held to")
    table = table_of(*names, words=(0, 2))
    for side, point in (("act", band.upper), ("clear", band.lower)):
        for target in point.hold:
            name = target.rate.name
            rate = point.rates[name]
            cells = (rate_value(name, rate.value), measured_interval(point, name))
            where = _least(point) if side == "act" else f"below {_threshold(point)}"
            add_row(table, side, where, name, *cells, f"{rate.n:,.0f}", _limit(target))
    yield table
    yield Text(_about_intervals(band.upper))
    yield from _notes((*band.upper.notes, *band.lower.notes, *notes))


def _headline(result: OperatingPoint | Band) -> RenderableType:
    from rich.text import Text

    if result.guarantee is not None:
        return Text(printable(sentence(result.guarantee)), style="bold green")
    text = f"No promise: {result.why}" if result.why else "No promise can be made"
    return Text(printable(sentence(text)), style="bold yellow")


def _chosen_on(point: OperatingPoint, aim: str | None = None) -> str:
    rows = format_count(point.n, "labelled row")
    which = "predicted rightly" if point.of is None else f"of class {quote_name(point.of)}"
    weighted = ", weighted" if point.weighted else ""
    among = ""
    if point.candidates > 1:
        among = f", the model being one of {point.candidates:,} that were compared on them"
    aim = aim or (f"to {point.objective.replace('_', ' ')}" if point.objective else "")
    return f"Chosen on {rows}{weighted}, {point.positives:,} of them {which}{among}, {aim}."


def _rates(point: OperatingPoint) -> Table:
    held: dict[str, list[Target]] = {}
    for target in point.hold:
        held.setdefault(target.rate.name, []).append(target)
    rows = (
        "Rows,\neffective" if point.weighted else "Rows"
    )  # equivalent number of equally weighted rows
    names = ("Rate", "Here", _level(point), rows, "Held to", "Share")
    table = table_of(*names, words=(0, 5))
    best = point.objective.rpartition(" ")[2]
    for name in dict.fromkeys((*held, best, *_SHOWN)):
        if name in point.rates:
            rate = point.rates[name]
            add_row(
                table,
                name.replace("_", " "),
                rate_value(name, rate.value),
                measured_interval(point, name),
                f"{rate.n:,.0f}",
                ", ".join(_limit(target) for target in held.get(name, [])),
                (_SHOWN | _MORE).get(name, ""),
            )
    return table


def _classes(points: Sequence[OperatingPoint]) -> Table:
    """Return a table with one line for each class."""
    names = (
        "Class",
        "Decision\nscore from",
        "Held",
        "Precision",
        "Recall",
        "Flagged",
        "Rows of it",
    )
    table = table_of(*names, words=(0,))
    for point in points:
        shares = (rate_value(name, point.rates[name].value) for name in ("precision", "recall"))
        add_row(
            table,
            point.of,
            _threshold(point),
            "\n".join(f"{target.rate.name} {_limit(target)}" for target in point.hold),
            *shares,
            rate_value("coverage", point.rates["coverage"].value),
            f"{point.positives:,}",
        )
    return table


def _level(point: OperatingPoint) -> str:
    spans = [rate.interval for rate in point.rates.values() if rate.interval is not None]
    return f"{100 * spans[0].confidence:.4g} % interval" if spans else "Interval"


def _limit(target: Target) -> str:
    shown = f"{target.value:.4g}"
    if target.rate.name != "cost":
        shown = f"{100 * target.value:.6g} %"
    return f"{target.sense} {shown}"


def _about_intervals(point: OperatingPoint) -> str:
    if point.guarantee is not None:
        return (
            "The promise counts that the threshold was chosen on these rows, and only one side of "
            "the target; intervals are two-sided and take the threshold as fixed beforehand."
        )
    return (
        "The measured rates are optimistic, because the threshold was chosen on these rows: expect "
        "less on new ones."
    )


def _score(point: OperatingPoint, calibrated: bool) -> str:
    """Name the decision score and say what it is, as an apposition between commas."""
    kind = "calibrated " if calibrated else ""
    if point.of is None:
        return f"its decision score, the highest {kind}probability,"
    return f"its decision score, {f'the {kind}' if kind else ''}P({point.of}),"


def _least(point: OperatingPoint) -> str:
    """Return the condition with the exact threshold."""
    return f"at least {_threshold(point)}"


def _threshold(point: OperatingPoint) -> str:
    """Format a threshold exactly; it has few digits unless scores are almost equal."""
    if point.works_on_probs:
        return repr(point.threshold)
    return threshold_words(point.threshold, point.logit)


def _band_rule(band: Band, calibrated: bool) -> str:
    return (
        f"act when {_score(band.upper, calibrated)} is {_least(band.upper)}, clear when it is "
        f"below {_threshold(band.lower)}, and hand the rows between to a person"
    )


def _notes(notes: Sequence[str]) -> Iterator[RenderableType]:
    from rich.text import Text

    for note in dict.fromkeys(notes):
        yield Text(f"Note: {printable(sentence(note))}")


def _unreachable_parts(error: TargetUnreachable) -> Iterator[RenderableType]:
    from rich.text import Text

    yield Text(printable(sentence(str(error))), style="bold yellow")
    yield Text("\nWhat helps:")
    for remedy in _remedies(error):
        yield Text(f"- {printable(remedy)}")


def _remedies(error: TargetUnreachable) -> Iterator[str]:
    if error.labels_needed is not None:
        more = max(0, error.labels_needed - error.n)
        among = error.positives_needed
        what = f"{error.labels_needed:,} in all" + (f", {among:,} positive" if among else "")
        yield f"label about {round_up(more):,} more rows ({what}), drawn as these were"
    else:
        yield "more labelled rows where these are few, or a model that separates the classes better"
    if error.confidence is None:
        yield "a target that asks for less"
        return
    yield (
        f"a target that asks for less, or less confidence than {100 * error.confidence:g} %: "
        "choose it once, because trying until one passes voids the promise"
    )
