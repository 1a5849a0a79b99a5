"""The data sets: where their rows are, and what the command is asked for."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from calibrant.data import return_reasons
from calibrant.data.row_files import read_rows
from calibrant.study import StudyConfig

__all__ = ["FULL", "TOY", "DataSet"]

MOST_ROWS = 10_000
_LEAST_COMPLAINTS = 30


@dataclass(frozen=True)
class DataSet:
    """One data set and the question that is put to it.

    Parameters
    ----------
    name : as in the tables of results
    kind : "table" or "text"
    label : the label column
    hold : the promise that is asked for, fixed before any result was seen
    file : "folder/name" below a folder of CALIBRANT_DATA; "" for made rows
    prepare : writes the files that the command reads into a folder, where the file as it is will
        not do; returns the file of the rows, and the file of golden rows if there is one
    text : the column of texts, None for a table
    drop : columns that are left out
    cut : whether the label is a number that is cut at its median
    flags : of the command, for rows of toy size
    """

    name: str
    kind: Literal["table", "text"]
    label: str
    hold: str
    file: str = ""
    prepare: Callable[[Path | None, Path], tuple[Path, Path | None]] | None = None
    text: str | None = None
    drop: tuple[str, ...] = ()
    cut: bool = False
    flags: tuple[str, ...] = field(default=(), repr=False)

    def files(self, folder: Path) -> tuple[Path, Path | None]:
        """Return the file of the rows and that of the golden rows, made in `folder` if needed."""
        source = find(self.file) if self.file else None
        if self.prepare is None:
            assert source is not None
            return source, None
        folder.mkdir(parents=True, exist_ok=True)
        return self.prepare(source, folder)

    def settings(self, folder: Path, seed: int) -> dict[str, Any]:
        """Return the settings of the study: those that say what the rows are, and the promise."""
        data, golden = self.files(folder)
        out = {"data": str(data), "label": self.label, "text": self.text, "drop": self.drop}
        out |= {"cut": self.cut, "rows": MOST_ROWS, "seed": seed, "hold": (self.hold,)}
        return out | ({} if golden is None else {"golden": str(golden), "overlap": "drop"})

    def config(self, folder: Path, seed: int) -> StudyConfig:
        """Return the study that the command runs."""
        return StudyConfig(**self.settings(folder, seed))

    def command(self, folder: Path, seed: int) -> list[str]:
        """Return the arguments of `calibrant train`, without the output folder."""
        settings = self.settings(folder, seed)
        out = ["train", settings["data"], "--label", self.label]
        out += ["--tabular"] if self.text is None else ["--text", self.text]
        out += [part for name in self.drop for part in ("--drop", name)]
        out += ["--cut"] if self.cut else []
        if "golden" in settings:
            out += ["--golden", settings["golden"], "--overlap", "drop"]
        out += ["--rows", str(MOST_ROWS), "--seed", str(seed), "--hold", self.hold]
        return [*out, *self.flags]


def find(file: str) -> Path:
    """Return a file below a folder that CALIBRANT_DATA names."""
    roots = [root for root in os.environ.get("CALIBRANT_DATA", "").split(os.pathsep) if root]
    for root in roots:
        path = Path(os.path.expanduser(root)) / file
        if path.is_file():
            return path
    raise FileNotFoundError(
        f"{file} is not in {os.pathsep.join(roots) or 'CALIBRANT_DATA, which is not set'}: name "
        "the folder of the data sets in CALIBRANT_DATA."
    )


def _posts_without_header(source: Path | None, folder: Path) -> tuple[Path, None]:
    """Cut the header of each post off: it names the sender and often the group."""
    table = pq.read_table(source, columns=["text", "label_name"])
    texts = [text.partition("\n\n") for text in table["text"].to_pylist()]
    bodies = [body if blank else head for head, blank, body in texts]
    return _write(pa.table({"text": bodies, "label_name": table["label_name"]}), folder / "posts")


def _questions_in_scope(source: Path | None, folder: Path) -> tuple[Path, None]:
    """Leave out the questions of no intent: the peers have no word for them."""
    table = read_rows(source)
    return _write(table.filter(pc.greater_equal(table["label"], 0)), folder / "questions")


def _frequent_complaints(source: Path | None, folder: Path) -> tuple[Path, None]:
    """Leave out issues with so few complaints that not every split has one."""
    table = read_rows(source).select(["text", "label_name"])
    counts = Counter(table["label_name"].to_pylist())
    frequent = [name for name, n in counts.items() if n >= _LEAST_COMPLAINTS]
    rows = table.filter(pc.is_in(table["label_name"], pa.array(frequent)))
    return _write(rows, folder / "complaints")


def _messages(logs: int, golden: int) -> Callable[[Path | None, Path], tuple[Path, Path | None]]:
    """Draw messages of the built-in corpus: noisy logs, and a golden set with another prior."""

    def prepare(source: Path | None, folder: Path) -> tuple[Path, Path]:
        paths = []
        for name, n in (("logs", logs), ("golden", golden)):
            path = folder / f"{name}-{n}.csv"
            if not path.exists():
                return_reasons.draw(n, source=name, seed=0).write(path)
            paths.append(path)
        return paths[0], paths[1]

    return prepare


def _made_sales(source: Path | None, folder: Path) -> tuple[Path, None]:
    """Make up a table of sales."""
    from reproductions.bigmart_rows import bigmart_rows

    return _write(bigmart_rows({"made": True, "rows": 600}), folder / "sales")


def _write(table: pa.Table, path: Path) -> tuple[Path, None]:
    file = path.with_suffix(".parquet")
    if not file.exists():
        pq.write_table(table, file)
    return file, None


_SALES = {"label": "Item_Outlet_Sales", "cut": True, "drop": ("Item_Identifier",)}

TABLES = (
    DataSet(
        "adult", "table", "income", ">50K: precision>=0.8", "adult/adult.csv.gz", drop=("split",)
    ),
    DataSet(
        "bank_marketing", "table", "y", "yes: precision>=0.5",
        "bank_marketing/bank-additional-full.csv.gz", drop=("duration",),
    ),
    DataSet(
        "credit_default", "table", "default payment next month", "1: precision>=0.6",
        "credit_default/credit_default.csv.gz", drop=("ID",),
    ),
    DataSet(
        "telco_churn", "table", "Churn", "Yes: precision>=0.6", "telco_churn/telco_churn.csv.gz",
        drop=("customerID",),
    ),
    DataSet(
        "mammography", "table", "label", "1: precision>=0.5", "mammography/mammography.csv.gz"
    ),
    DataSet(
        "creditcard_fraud", "table", "Class", "1: precision>=0.9",
        "creditcard_fraud_undersampled/creditcard_fraud_undersampled.csv.gz", drop=("Time",),
    ),
    DataSet(
        "bigmart", "table", hold="high: precision>=0.85", file="bigmart/bigmart_train.csv.gz",
        **_SALES,
    ),
)  # fmt: skip
"""Tables. `duration` is known only after the call; `Item_Identifier` has 1,559 values."""

TEXTS = (
    DataSet(
        "it_tickets", "text", "label_name", "Purchase: precision>=0.9",
        "it_tickets/it_tickets.parquet", text="text",
    ),
    DataSet(
        "womens_clothing", "text", "Recommended IND", "0: precision>=0.5",
        "womens_clothing/womens_clothing_reviews.csv.gz", text="Review Text",
    ),
    DataSet(
        "sms_spam", "text", "label_name", "spam: precision>=0.9", "sms_spam/sms_spam.jsonl.gz",
        text="text",
    ),
    DataSet(
        "banking77", "text", "label_name", "accuracy>=0.9", "banking77/banking77.jsonl.gz",
        text="text",
    ),
    DataSet(
        "clinc150", "text", "label_name", "accuracy>=0.9", "clinc150/clinc150_imbalanced.jsonl.gz",
        _questions_in_scope, "text",
    ),
    DataSet(
        "newsgroups20", "text", "label_name", "accuracy>=0.9", "newsgroups20/newsgroups20.parquet",
        _posts_without_header, "text",
    ),
    DataSet(
        "cfpb_small", "text", "label_name",
        "Charged fees or interest you didn't expect: precision>=0.6",
        "cfpb_small/cfpb_loan_issues.jsonl.gz", _frequent_complaints, "text",
    ),
    DataSet(
        "return_reasons", "text", "reason", "item_defective: precision>=0.85",
        prepare=_messages(8_000, 2_000), text="message",
    ),
)  # fmt: skip
"""Texts; the last is the built-in corpus, whose golden rows have another prior than its logs."""

_QUICK = ("--candidates", "ce,focal:gamma=3", "--pack-anyway")

FULL = (*TABLES, *TEXTS)
TOY = (
    DataSet(
        "made_sales", "table", hold="high: precision>=0.85", prepare=_made_sales, flags=_QUICK,
        **_SALES,
    ),
    DataSet(
        "return_reasons", "text", "reason", "item_defective: precision>=0.85",
        prepare=_messages(600, 300), text="message", flags=_QUICK,
    ),
)  # fmt: skip
"""Rows that need no file, to see that everything runs."""
