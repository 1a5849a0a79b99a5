"""Table of methods in calibrators.md, generated from the methods."""

from __future__ import annotations

from docs.tables import table

BEGIN, END = "<!-- methods: made by docs/generate.py -->", "<!-- end of methods -->"
PARTS = "as its parts"
FACTS = {
    "keeps_argmax": "keeps predictions",
    "keeps_ranking": "keeps order",
    "takes_weights": "takes weights",
    "needs_every_class": "needs every class",
}


def with_methods(text: str) -> str:
    """Replace what stands between the marks by the facts of today."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"docs/calibrators.md needs the marks {BEGIN} and {END}.")
    return f"{before}{BEGIN}\n\n{methods_table()}\n{END}{after}"


def methods_table() -> str:
    """Return a row for each method of this package: its name, its class, and what holds for it."""
    from calibrant.calibrators import list_methods

    # Skip methods of installed plugins.
    ours = {n: k for n, k in list_methods().items() if k.__module__.startswith("calibrant.")}
    columns = {fact: [_fact(getattr(kind, fact)) for kind in ours.values()] for fact in FACTS}
    common = [fact for fact, values in columns.items() if set(values) <= {"yes", PARTS}]
    varied = [fact for fact in FACTS if fact not in common]
    rows = []
    for i, (name, kind) in enumerate(ours.items()):
        link = f"[`{kind.__name__}`](api.md#calibrant.calibrators.{kind.__name__})"
        what = (kind.__doc__ or "").strip().splitlines()[0]
        rows.append((f"{link}<br>`{name}`", what, *(columns[fact][i] for fact in varied)))
    notes = "".join(f"\nThis holds for all of them: {FACTS[fact]}.\n" for fact in common)
    return table(("method", "what it does", *(FACTS[fact] for fact in varied)), rows) + notes


def _fact(value: object) -> str:
    if isinstance(value, property):
        return PARTS
    return "yes" if value else "–"
