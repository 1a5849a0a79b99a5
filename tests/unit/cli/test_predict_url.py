"""`calibrant predict URL`: what a service says, for a file of any size and on a bad line."""

import json
import signal
import threading

import numpy as np
import pyarrow as pa
import pyarrow.csv as pacsv
import pytest
from tests.sentences import assert_mentions
from tests.unit.bundle.model_parts import TEXTS, table_scorer, text_scorer
from tests.unit.bundle.parts import CLASSES, point, rows, temperature
from tests.unit.serving.bundles import logits_bundle
from tests.unit.serving.running import running
from tests.unit.serving.scripted import BUNDLE, SERVED, dropped, good, problem, scripted

from calibrant.bundle import BundlePoint, pack
from calibrant.cli import remote_predict
from calibrant.client import transport as client_transport
from calibrant.files.write_table import write_tables
from calibrant.ood import OodRule

NEW = ["predicted", "prob_defect", "prob_other", "decision", "acted_as", "action", "prediction_id"]


class Fake:
    """A service whose bundle finds defects in texts with an even number of characters.

    It keeps what a store would: one record for each idempotency key.
    """

    def __init__(self, script):
        self.script, self.url = script, script.url
        self.served, self.most, self.faults = dict(SERVED), 1000, []
        self.out_of_scope, self.stored, self.bodies = None, {}, []
        self.lock = threading.Lock()
        script.always = self.answer

    def answer(self, handler):
        if handler.path == "/v1/bundle":
            good(self.served)(handler)
            return
        name, body = handler.headers["Idempotency-Key"], json.loads(handler.body)
        with self.lock:
            self.bodies.append(body)
            fault = self.faults.pop(0) if self.faults else None
        if len(body["inputs"]) > self.most:
            problem(413, f"at most {self.most} are allowed at a time.")(handler)
            return
        bad = [i for i, each in enumerate(body["inputs"]) if each.get("text") == "bad"]
        if bad:
            problem(422, f"inputs[{bad[0]}].text: this is bad.")(handler)
            return
        with self.lock:
            self.stored.setdefault(name, body["inputs"])
        if fault is not None:
            fault(handler)  # the record is there, but the answer gets lost
            return
        rows = [self.row(each, f"{name}/{i}") for i, each in enumerate(body["inputs"])]
        content = {"predictions": rows, "bundle": BUNDLE, "request": name, "repeated": False}
        good(content)(handler)

    def row(self, given, id):
        probability = 0.75 if len(str(next(iter(given.values())))) % 2 == 0 else 0.25
        act, scope = probability > 0.5, self.out_of_scope and "far" in str(given)
        decision = "out_of_scope" if scope else ("act" if act else "abstain")
        return {
            "id": id,
            "label": "defect" if act else "other",
            "probabilities": {"other": 1 - probability, "defect": probability},
            "decision": decision if self.served["points"] else None,
            "acted_as": "defect" if decision == "act" else None,
            "action": "refund" if decision == "act" else None,
            "operating_point": 0 if decision == "act" else None,
            "out_of_scope": self.out_of_scope and scope,
        }

    @property
    def texts(self):
        """All texts on record, in the order of the file."""
        parts = sorted(self.stored.items(), key=lambda item: int(item[0].split("-")[1]))
        return [each["text"] for _, inputs in parts for each in inputs]


@pytest.fixture
def service(monkeypatch):
    monkeypatch.setattr(client_transport, "_backoff", lambda *about: 0.0)
    with scripted() as script:
        yield Fake(script)


def written(path, columns):
    write_tables(path, [pa.table(columns)])
    return path


def read(path):
    options = pacsv.ConvertOptions(strings_can_be_null=True)
    return pacsv.read_csv(path, convert_options=options).to_pydict()


def messages(n):
    return [f"it broke {'x' * (i % 7)} {i}" for i in range(n)]


def test_rows_come_back_in_their_order_with_the_columns_of_a_bundle(cli, service, tmp_path):
    texts = messages(1000)
    file = written(tmp_path / "in.csv", {"id": range(1000), "message": texts})
    out = tmp_path / "out.csv"
    result = cli("predict", service.url, file, "-o", out, "--use-case", "returns")
    assert result.exit_code == 0, result.output
    found = read(out)
    assert list(found) == ["id", "message", *NEW]
    assert found["message"] == texts
    even = [len(text) % 2 == 0 for text in texts]
    assert found["predicted"] == ["defect" if each else "other" for each in even]
    assert found["prob_defect"] == [0.75 if each else 0.25 for each in even]
    assert found["decision"] == ["act" if each else "abstain" for each in even]
    assert found["acted_as"] == ["defect" if each else None for each in even]
    assert len(set(found["prediction_id"])) == 1000
    assert {len(body["inputs"]) for body in service.bodies} == {256, 232}
    assert {body["use_case"] for body in service.bodies} == {"returns"}
    assert result.stdout.startswith(f"1,000 rows.\nActed on: {sum(even)} (")
    assert_mentions(result.stdout, f"in {out}")


def test_counts_as_json(cli, service, tmp_path):
    file = written(tmp_path / "in.csv", {"message": ["even", "odd", "even"]})
    found = json.loads(cli("predict", service.url, file, "--json").stdout)
    assert found == {
        "schema": 1,
        "n": 3,
        "decisions": {"act": 2, "clear": 0, "abstain": 1},
        "predicted": {"defect": 2, "other": 1},
        "out_of_scope": None,
        "rules": [],  # as an older service, it does not describe them
        "bundle": service.url,
        "bundle_hash": BUNDLE["hash"],
        "out": None,
    }


def test_a_bad_line_loses_and_doubles_nothing(cli, service, tmp_path):
    service.faults = [dropped, problem(503), dropped, problem(429, Retry_After="0"), dropped]
    file = written(tmp_path / "in.csv", {"message": messages(2000)})
    result = cli("predict", service.url, file, "-o", tmp_path / "out.csv")
    assert result.exit_code == 0, result.output
    assert service.texts == messages(2000)
    assert read(tmp_path / "out.csv")["message"] == messages(2000)
    assert len(service.bodies) > len(service.stored)  # some were sent again


def test_runs_are_recorded_apart(cli, service, tmp_path):
    file = written(tmp_path / "in.csv", {"message": ["a"]})
    for _ in range(2):
        assert cli("predict", service.url, file).exit_code == 0
    assert len(service.stored) == 2


@pytest.mark.parametrize("most", [1, 3, 100])
def test_batches_that_are_too_large_are_halved(cli, service, tmp_path, most):
    service.most = most
    file = written(tmp_path / "in.csv", {"message": messages(300)})
    result = cli("predict", service.url, file, "-o", tmp_path / "out.csv")
    assert result.exit_code == 0, result.output
    assert service.texts == messages(300)
    assert read(tmp_path / "out.csv")["message"] == messages(300)
    refused = [body for body in service.bodies if len(body["inputs"]) > most]
    assert len(refused) <= 9 * 2  # it learns: later batches are not tried whole


def test_long_texts_travel_in_smaller_batches(cli, service, tmp_path, monkeypatch):
    monkeypatch.setattr(remote_predict, "_BYTES", 1000)
    texts = ["ö" * 300, *messages(20), "ö" * 2000, "end"]
    file = written(tmp_path / "in.parquet", {"message": texts})
    assert cli("predict", service.url, file).exit_code == 0
    assert service.texts == texts
    sizes = [len(json.dumps(b["inputs"], ensure_ascii=False).encode()) for b in service.bodies]
    assert sorted(sizes)[-2] < 2000


def test_a_row_that_is_refused_is_named_and_nothing_is_written(cli, service, tmp_path):
    texts = messages(700)
    texts[600] = "bad"
    file, out = written(tmp_path / "in.csv", {"message": texts}), tmp_path / "out.csv"
    result = cli("predict", service.url, file, "-o", out)
    assert result.exit_code == 2
    assert_mentions(result.stderr, "error:", f"data row 601 of {file}", "text: this is bad.")
    assert [p.name for p in tmp_path.iterdir()] == ["in.csv"]


def test_rows_out_of_scope_are_for_a_person(cli, service, tmp_path):
    service.out_of_scope = True
    file = written(tmp_path / "in.csv", {"message": ["even", "faraway!"]})
    result = cli("predict", service.url, file, "-o", tmp_path / "out.csv")
    assert_mentions(result.stdout, "out of scope", "person", "1 (50.0 %)")
    found = read(tmp_path / "out.csv")
    assert list(found)[-2:] == ["out_of_scope", "prediction_id"]
    assert found["decision"] == ["act", "abstain"]
    assert found["out_of_scope"] == [False, True]


def test_a_service_without_points_gives_probabilities_only(cli, service, tmp_path):
    service.served["points"] = []
    file = written(tmp_path / "in.csv", {"message": ["even"]})
    result = cli("predict", service.url, file, "-o", tmp_path / "out.csv")
    assert_mentions(result.stdout, "no decisions", "operating point")
    assert list(read(tmp_path / "out.csv")) == ["message", *NEW[:3], "prediction_id"]
    refused = cli("predict", service.url, file, "--point", 0)
    assert refused.exit_code == 2
    assert_mentions(refused.stderr, "no operating point", "leave --point out")


def test_one_point_decides(cli, service, tmp_path):
    file = written(tmp_path / "in.csv", {"message": ["even"]})
    assert cli("predict", service.url, file, "--point", 0).exit_code == 0
    assert service.bodies[-1]["point"] == 0
    refused = cli("predict", service.url, file, "--point", 1)
    assert_mentions(refused.stderr, "--point", "from 0 to 0", "got 1")
    assert len(service.bodies) == 1


def test_the_column_of_texts_and_missing_ones(cli, service, tmp_path):
    (tmp_path / "in.csv").write_text("id,words\n1,broken\n2,\n")
    assert "has no column 'message'" in cli("predict", service.url, tmp_path / "in.csv").stderr
    result = cli("predict", service.url, tmp_path / "in.csv", "--text", "words")
    assert_mentions(result.stdout, "1 row", "no text", "empty")
    assert service.texts == ["broken", ""]


def test_rows_of_units_go_under_their_names(cli, service, tmp_path):
    units = [7, 7, None, 8, 8, 8, 7]
    file = written(tmp_path / "in.parquet", {"message": messages(7), "who": units})
    result = cli("predict", service.url, file, "--unit", "who", "-o", tmp_path / "out.csv")
    assert result.exit_code == 0, result.output
    sent = sorted((len(b["inputs"]), b.get("unit")) for b in service.bodies if b.get("unit"))
    assert sent == [(1, "7"), (2, "7"), (3, "8")]
    assert service.texts == messages(7)
    assert read(tmp_path / "out.csv")["who"] == units
    lacking = cli("predict", service.url, file, "--unit", "whom")
    assert_mentions(lacking.stderr, "'whom'", "--unit", "'message', 'who'")


def test_rows_of_a_table(cli, service, tmp_path):
    service.served |= {"input": "table", "columns": {"numbers": ["price"], "texts": ["shelf"]}}
    (tmp_path / "in.csv").write_text("id,shelf,price\n1,top,2.5\n2,,NA\n3,007,1e-3\n")
    result = cli("predict", service.url, tmp_path / "in.csv")
    assert result.exit_code == 0, result.output
    rows = [{"shelf": "top", "price": 2.5}, {"shelf": None, "price": None}]
    rows.append({"shelf": "007", "price": 0.001})
    assert [each["row"] for each in service.bodies[0]["inputs"]] == rows
    (tmp_path / "in.csv").write_text("shelf,price\ntop,2.5\nlow,inf\n")
    refused = cli("predict", service.url, tmp_path / "in.csv")
    assert_mentions(refused.stderr, str(tmp_path / "in.csv"), "data row 2", "'price'", "inf")
    assert "leave --text out" in cli("predict", service.url, "in.csv", "--text", "a").stderr


def test_logits_and_probabilities_of_score_files(cli, service, tmp_path):
    service.served |= {"input": "logits"}
    columns = {"logit_other": [0.1, -2.5], "logit_defect": [1 / 3, 4.0]}
    file = written(tmp_path / "in.parquet", columns)
    assert cli("predict", service.url, file).exit_code == 0
    assert [each["logits"] for each in service.bodies[0]["inputs"]] == [[1 / 3, 0.1], [4.0, -2.5]]
    probs = written(tmp_path / "p.csv", {"prob_defect": [0.25], "prob_other": [0.75]})
    result = cli("predict", service.url, probs, "-o", tmp_path / "out.csv")
    assert "sent as logarithms" in " ".join(result.stdout.split())
    sent = service.bodies[-1]["inputs"][0]["logits"]
    assert sent == pytest.approx([-1.3862943611198906, -0.2876820724517809])
    assert list(read(tmp_path / "out.csv")) == NEW
    service.out_of_scope = True
    assert_mentions(cli("predict", service.url, probs).stderr, "out of scope", "logits")
    zero = written(tmp_path / "z.csv", {"prob_defect": [0.0], "prob_other": [1.0]})
    before = len(service.bodies)
    assert_mentions(cli("predict", service.url, zero).stderr, "probabilities", "exactly 0 or 1")
    assert len(service.bodies) == before


def test_a_lone_column_needs_a_class(cli, service, tmp_path):
    service.served |= {"input": "logits"}
    file = written(tmp_path / "in.csv", {"logit": [2.0]})
    assert "--positive other" in cli("predict", service.url, file).stderr
    assert cli("predict", service.url, file, "--positive", "defect").exit_code == 0
    assert service.bodies[0]["inputs"] == [{"logits": [1.0, -1.0]}]


def test_a_bundle_that_is_replaced_ends_the_run(cli, service, tmp_path):
    service.served["hash"] = "f" * 64
    file = written(tmp_path / "in.csv", {"message": ["a"]})
    result = cli("predict", service.url, file, "-o", tmp_path / "out.csv")
    assert result.exit_code == 2
    assert_mentions(result.stderr, "run it again", "one bundle")
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize("name", [*NEW])
def test_a_column_that_is_there_already_is_found_before_a_row_is_sent(cli, service, tmp_path, name):
    file = written(tmp_path / "in.csv", {"message": ["a"], name: ["b"]})
    result = cli("predict", service.url, file)
    assert_mentions(result.stderr, "already", f"column '{name}'")
    assert service.bodies == []


def test_options_that_do_not_fit(cli, service, tmp_path):
    file = written(tmp_path / "in.csv", {"message": ["a"]})
    assert_mentions(cli("predict", service.url, file, "-o", file).stderr, file, "input")
    assert "leave --positive out" in cli("predict", service.url, file, "--positive", "a").stderr
    for flag in ("--key", "--unit", "--use-case"):
        result = cli("predict", tmp_path, file, flag, "cal_x")
        assert result.exit_code == 2
        assert_mentions(result.stderr, f"{flag} needs", "URL")
    service.served["input"] = "sound"
    assert_mentions(cli("predict", service.url, file).stderr, "reads sound")


def test_the_key_goes_along_and_is_not_shown(cli, service, tmp_path, monkeypatch):
    file = written(tmp_path / "in.csv", {"message": ["a"]})
    for words, env in ((("--key", "cal_one"), {}), ((), {"CALIBRANT_KEY": "cal_two"})):
        result = cli("predict", service.url, file, *words, env=env)
        assert result.exit_code == 0, result.output
        key = words[1] if words else "cal_two"
        assert service.script.seen[-1][2]["Authorization"] == f"Bearer {key}"
        assert key not in result.output
    service.script.always = problem(401, "the key is not known.")
    result = cli("predict", service.url, file, "--key", "cal_one")
    assert (result.exit_code, result.stderr) == (2, "error: the key is not known.\n")


def test_a_note_warns_of_a_key_on_an_open_way(cli, service, tmp_path, monkeypatch):
    from calibrant.client import address as client_address
    from calibrant.client import client

    monkeypatch.setattr(client_address, "is_local", lambda url: False)
    assert client.plaintext_key_warning(service.url, "cal_x")
    file = written(tmp_path / "in.csv", {"message": ["a"]})
    found = json.loads(cli("predict", service.url, file, "--key", "cal_x", "--json").stdout)
    assert "unencrypted" in found["notes"][0]


def test_a_service_that_is_away(cli, tmp_path):
    file = written(tmp_path / "in.csv", {"message": ["a"]})
    result = cli("predict", "http://127.0.0.1:9", file, "-o", tmp_path / "out.csv")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (2, "", 1)
    assert "http://127.0.0.1:9 cannot be reached" in result.stderr
    assert_mentions(result.stderr, "check", "calibrant serve")
    told = json.loads(cli("predict", "http://127.0.0.1:9", file, "--json").stdout)
    assert told["error"]["kind"] == "service"
    assert "url must be" in cli("predict", "http://", file).stderr


def test_a_service_that_goes_away_leaves_what_was_there(cli, service, tmp_path, monkeypatch):
    monkeypatch.setattr(remote_predict, "_RETRIES", 1)
    file, out = written(tmp_path / "in.csv", {"message": messages(1500)}), tmp_path / "out.csv"
    out.write_text("old")
    service.faults = [None] * 2 + [dropped] * 100
    result = cli("predict", service.url, file, "-o", out)
    assert result.exit_code == 2
    assert "closed the connection" in result.stderr
    assert out.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.csv", "out.csv"]


@pytest.mark.parametrize("batch", [1, 7])
def test_the_size_of_batches_makes_no_difference(cli, service, tmp_path, monkeypatch, batch):
    monkeypatch.setattr(remote_predict, "BATCH", batch)
    file = written(tmp_path / "in.csv", {"message": messages(40)})
    assert cli("predict", service.url, file, "-o", tmp_path / "out.csv").exit_code == 0
    assert read(tmp_path / "out.csv")["message"] == messages(40)
    assert {len(body["inputs"]) for body in service.bodies} <= {batch, 40 % batch}


@pytest.mark.parametrize(
    ("sign", "code", "says"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "")]
)
def test_an_interruption_ends_at_once_and_leaves_nothing(
    forked, service, tmp_path, sign, code, says
):
    """The service hangs: nothing waits for its answers."""
    hanging = threading.Event()

    def hang(handler):
        hanging.set()
        service.script.hang(handler)

    service.faults = [None, *[hang] * 10]
    file, out = written(tmp_path / "in.csv", {"message": messages(1500)}), tmp_path / "out.csv"
    out.write_text("old")
    process = forked("predict", service.url, file, "-o", out)
    assert hanging.wait(60)
    process.send_signal(sign)
    printed, err = process.communicate(timeout=20)
    assert (process.returncode, printed, err.strip()) == (code, "", says)
    assert out.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["in.csv", "out.csv"]


# --- the real service: what comes out is what the folder of the bundle gives ---


def texts(n, seed=0):
    rng = np.random.default_rng(seed)
    words = " ".join([*TEXTS, "hello"]).split()
    return [" ".join(rng.choice(words, rng.integers(1, 12))) for _ in range(n)]


def shelves(n):
    rng = np.random.default_rng(0)
    prices = [None if i % 7 == 0 else round(float(rng.uniform(0, 9)), 3) for i in range(n)]
    return {"shelf": rng.choice(["top", "low", "new"], n).tolist(), "price": prices}


def text_bundle(folder):
    scorer = text_scorer()
    return pack(
        folder,
        scorer=scorer,
        calibrator=temperature(0.5),
        points=[BundlePoint(point(), "calibrated"), BundlePoint(point("other", 0.6), "raw")],
        ood=OodRule.fit(scorer.predict_logits(texts(500, seed=1)), quantile=0.8),
        actions={"defect": "refund"},
    )


def table_bundle(folder):
    return pack(folder, scorer=table_scorer(), points=[point(threshold=0.5)])


def logits(n):
    return {f"logit_{name}": rows(n)[:, k] for k, name in enumerate(CLASSES)}


def probs(n):
    found = np.exp(rows(n))
    found /= found.sum(axis=1, keepdims=True)
    return {f"prob_{name}": found[:, k] for k, name in enumerate(CLASSES)}


KINDS = {
    "texts": (text_bundle, lambda n: {"message": texts(n)}),
    "tables": (table_bundle, shelves),
    "logits": (logits_bundle, logits),
    "probs": (logits_bundle, probs),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_service_says_what_its_bundle_says(cli, tmp_path, kind):
    made, columns = KINDS[kind]
    folder = made(tmp_path / "bundle").path
    given = {"id": [f"{i:05d}" for i in range(600)], **columns(600)}
    file = written(tmp_path / "in.parquet", given)
    here, there = tmp_path / "here.csv", tmp_path / "there.csv"
    local = cli("predict", folder, file, "-o", here, "--json")
    with running(folder, f"sqlite:///{tmp_path}/calibrant.db") as service:
        remote = cli("predict", service.url, file, "-o", there, "--json")
        assert remote.exit_code == 0, remote.output
        stored = service.store.predictions.count()
    told, wanted = json.loads(remote.stdout), json.loads(local.stdout)
    names = ("n", "decisions", "predicted", "out_of_scope")
    assert {name: told[name] for name in names} == {name: wanted[name] for name in names}
    assert (stored, told["bundle"]) == (600, service.url)
    found, due = read(there), read(here)
    ids = found.pop("prediction_id")
    assert len(set(ids)) == 600
    assert list(found) == list(due)
    for name, column in due.items():
        numbers = name.startswith("prob_") or name == "decision_score"
        close = pytest.approx(column, abs=1e-5) if numbers else column
        assert found[name] == close, name


def test_the_id_of_a_row_leads_to_its_record(cli, tmp_path):
    folder = logits_bundle(tmp_path / "bundle").path
    given = {"who": [f"customer-{i % 3}" for i in range(9)], **logits(9)}
    file, out = written(tmp_path / "in.csv", given), tmp_path / "out.csv"
    with running(folder, f"sqlite:///{tmp_path}/calibrant.db") as service:
        words = ("-o", out, "--unit", "who", "--use-case", "returns", "--point", 2)
        result = cli("predict", service.url, file, *words)
        assert result.exit_code == 0, result.output
        found = read(out)
        for i, id in enumerate(found["prediction_id"]):
            kept = service.store.predictions.get(id)
            assert (kept.unit, kept.use_case) == (given["who"][i], "returns")
            assert (kept.label, kept.decision) == (found["predicted"][i], found["decision"][i])
            assert kept.logits == pytest.approx(rows(9)[i])
        assert service.store.forget("customer-1").predictions == 3


def test_a_text_that_the_service_refuses_is_named(cli, tmp_path):
    folder = pack(tmp_path / "bundle", scorer=text_scorer()).path
    given = texts(300)
    given[299] = "x" * 101
    file = written(tmp_path / "in.csv", {"message": given})
    with running(folder, f"sqlite:///{tmp_path}/calibrant.db", max_text=100, max_inputs=60) as at:
        result = cli("predict", at.url, file, "-o", tmp_path / "out.csv")
    assert result.exit_code == 2
    assert_mentions(result.stderr, f"data row 300 of {file}", "text", "101 characters")
    assert not (tmp_path / "out.csv").exists()
