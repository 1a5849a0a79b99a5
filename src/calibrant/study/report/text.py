"""Terminal text of a study."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from calibrant.formatting import percent, printable, sentence
from calibrant.reports.text_tables import add_row, table_of, to_text
from calibrant.study.report.headline import headline_data, promise_data, several_words
from calibrant.study.report.story import story, way_sentences
from calibrant.study.report.tables import (
    COLUMNS,
    NOTHING_LEARNED,
    bundle_rows,
    candidate_rows,
    scope_data,
    truth_data,
)
from calibrant.study.report.wording import judged_rows
from calibrant.study.result import PointResult, StudyResult

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table


_STYLES = {"good": "bold green", "bad": "bold yellow", "unknown": "bold"}
_SHORT = ("Acc.", "Prec.", "Recall", "F1", "NLL", "ECE", "MCE")


def render_study(result: StudyResult, *, width: int = 100, color: bool = False) -> str:
    """Render a study for the terminal: the choice first, then candidates and promises."""
    return to_text(_parts(result), width, color)


def _parts(result: StudyResult) -> Iterator[RenderableType]:
    from rich.text import Text

    lead = headline_data(result)
    yield Text(_to_printable(lead["headline"]), style=_STYLES[lead["state"]])
    yield Text(_to_printable(" ".join([*lead["chosen"], *lead["calibrated"]])))
    for title, words in story(result):
        if title in ("The race of the models", "Cross-entropy with temperature"):
            yield Text(_to_printable(words))
    yield _candidates(result)
    yield Text(_to_printable(_legend(result)))
    for row in candidate_rows(result):
        if row["failed"]:
            yield Text(
                _to_printable(f"{row['name']} could not be {row['lacking']}: {row['failed']}")
            )
    yield from _promises(result)
    yield from _scope(result)
    yield from _truth(result)
    for note in result.notes:
        yield Text(f"Note: {_to_printable(sentence(note))}")


def _to_printable(text: str) -> str:
    return printable(text.replace("\N{NO-BREAK SPACE}", " "))


def _candidates(result: StudyResult) -> Table:
    """Return the paper's table: a row for each candidate, then the bundle."""
    table = table_of("Candidate", *_SHORT, "ECE\nafter T")
    for row in candidate_rows(result):
        if row["failed"]:
            continue
        words = ["chosen"] if row["chosen"] else ["reference"] if row["reference"] else []
        words += [] if row["learned"] else [NOTHING_LEARNED]
        mark = f" ({', '.join(words)})" if words else ""
        cells = [*row["cells"], row["scaled"][1]]
        add_row(table, f"{row['name']}{mark}", *map(_cell, cells))
    for row, name in zip(bundle_rows(result), ("The bundle", "Cross-entropy + T"), strict=False):
        add_row(table, name, *map(_cell, row["cells"]), "")
    return table


def _cell(cell: dict[str, Any]) -> str:
    return f"{cell['value']}{'*' if cell['best'] else ' '}"


def _legend(result: StudyResult) -> str:
    assert len(_SHORT) == len(COLUMNS)
    return (
        f"Figures of the {judged_rows(result)}. * best of the candidates, perhaps by chance. "
        "Precision, recall and F1: means over classes. NLL: plain log loss (gamma 0) for all. "
        "ECE, MCE: mean and largest gap between what is said and what happens. After T: after "
        f"temperature scaling on the calibrate rows. The bundle: {bundle_rows(result)[0]['name']}."
        f"{''.join(f' {words}' for words in way_sentences(result))}"
    )


def _promises(result: StudyResult) -> Iterator[RenderableType]:
    from rich.text import Text

    for point in result.points:
        data = promise_data(point, result)
        yield Text()
        yield Text(
            f"{_to_printable(data['title'])}: {_badge(point, data)}", style=_STYLES[data["state"]]
        )
        texts = (data["words"], data["costs"], data["missing"])
        yield Text(_to_printable(" ".join(words for words in texts if words)))
        for check in data["checks"]:
            yield Text(_to_printable(f"{check['badge']}. {check['where']}: {check['words']}"))
    if several := several_words(result):
        yield Text()
        yield Text(_to_printable(several))


def _scope(result: StudyResult) -> Iterator[RenderableType]:
    from rich.text import Text

    known = scope_data(result.out_of_scope)
    if known is None or result.out_of_scope is None:
        return
    rule = result.out_of_scope
    words = f"The out-of-scope rule ({rule.score}) stops {percent(rule.flagged)} of the "
    words += "in-scope test rows"
    if rule.scores:
        caught = percent(rule.scores[rule.score]["caught"])
        words += f", and {caught} of the {known['outside']} that belong to no class"
    yield Text()
    yield Text(_to_printable(f"{words}. What it stops goes to a person."))


def _badge(point: PointResult, data: dict[str, Any]) -> str:
    badge = str(data["badge"]).lower()
    return badge if point.decides else f"{badge} (an alternative, which the bundle does not use)"


def _truth(result: StudyResult) -> Iterator[RenderableType]:
    from rich.text import Text

    known = truth_data(result)
    if known is None:
        return
    table = table_of("Candidate", "True error", "after T", "ECE of\nthe test rows")
    for row in known["table"]:
        add_row(table, row["name"], row["own"], row["scaled"], row["estimate"])
    add_row(table, known["bundle"], known["calibrated"], "", "")
    yield table
    what = "messages" if result.kind == "text" else "rows"
    yield Text(
        f"The truth, from {known['rows']} fresh {what}: of those that belong to a class the bundle "
        f"is right on {known['accuracy']}, the best possible classifier on {known['bayes']}. "
        f"{known['each']}".rstrip()
    )
