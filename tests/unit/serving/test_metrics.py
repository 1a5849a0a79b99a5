"""Figures as Prometheus reads them, of one process and of several."""

import json
import subprocess
import sys

import pytest
from prometheus_client.parser import text_string_to_metric_families

from calibrant.serving.metrics import Metrics


def figures(text):
    """Return the samples by their names and labels; none may come twice."""
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            if not sample.name.endswith("_created"):
                key = sample.name, tuple(sorted(sample.labels.items()))
                assert key not in found
                found[key] = sample.value
    return found


def value(found, name, **labels):
    return found[name, tuple(sorted(labels.items()))]


class Row:
    def __init__(self, label, decision, score):
        self.label, self.decision, self.score = label, decision, score


@pytest.fixture
def metrics():
    made = Metrics()
    made.set_queue_depth(lambda: 7)
    return made


def test_everything_is_counted(metrics):
    metrics.count_request("/v1/predict", 200, 0.004)
    metrics.count_request("/v1/predict", 200, 0.3)
    metrics.count_request("/v1/predict", 422, 0.0005)
    metrics.count_predictions([Row("a", "act", 0.97), Row("a", "act", 0.3), Row('b"\n', None, 0.5)])
    metrics.count_batch(2)
    metrics.count_batch(30)
    metrics.observe_write(0.004)
    metrics.count_swap()
    metrics.set_refused(True)
    found = figures(metrics.text().decode())
    route = {"route": "/v1/predict"}
    assert value(found, "calibrant_requests_total", **route, status="200") == 2
    assert value(found, "calibrant_requests_total", **route, status="422") == 1
    assert value(found, "calibrant_request_seconds_count", **route) == 3
    assert value(found, "calibrant_request_seconds_sum", **route) == pytest.approx(0.3045)
    assert value(found, "calibrant_request_seconds_bucket", **route, le="0.005") == 2
    assert value(found, "calibrant_decisions_total", label="a", decision="act") == 2
    assert value(found, "calibrant_decisions_total", label='b"\n', decision="none") == 1
    assert value(found, "calibrant_score_bucket", le="0.5") == 2
    assert value(found, "calibrant_score_count") == 3
    assert value(found, "calibrant_batch_rows_sum") == 32
    assert value(found, "calibrant_batch_rows_bucket", le="2.0") == 1
    assert value(found, "calibrant_store_seconds_sum") == pytest.approx(0.004)
    assert value(found, "calibrant_store_seconds_bucket", le="0.0025") == 0
    assert value(found, "calibrant_queue_rows") == 7
    assert value(found, "calibrant_bundle_swaps_total") == 1
    assert value(found, "calibrant_bundle_refused") == 1
    metrics.set_refused(False)
    assert value(figures(metrics.text().decode()), "calibrant_bundle_refused") == 0


def test_two_services_of_a_process_do_not_mix(metrics):
    metrics.count_swap()
    other = Metrics()
    other.set_queue_depth(lambda: 0)
    assert value(figures(other.text().decode()), "calibrant_bundle_swaps_total") == 0


SEVERAL = """
import json, os, sys
from prometheus_client import multiprocess
from calibrant.serving.metrics import Metrics

def process(depth, dead=None):
    out, into = os.pipe()
    pid = os.fork()
    if pid:
        os.close(into)
        text = open(out).read()
        os.waitpid(pid, 0)
        return pid, text
    made = Metrics()
    made.set_queue_depth(lambda: depth)
    made.count_request("/v1/predict", 200, 0.25)
    made.count_swap()
    made.set_refused(depth == 3)
    made.update_queue()
    if dead is not None:
        multiprocess.mark_process_dead(dead)
    os.write(into, made.text())
    os._exit(0)

pid, alone = process(3)
print(json.dumps([alone, process(4)[1], process(5, pid)[1]]))
"""


def test_figures_of_several_processes_are_added_up(tmp_path, monkeypatch):
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", SEVERAL], stdout=subprocess.PIPE, check=True)
    alone, both, later = map(figures, json.loads(done.stdout))
    assert value(alone, "calibrant_queue_rows") == 3
    assert value(both, "calibrant_requests_total", route="/v1/predict", status="200") == 2
    assert value(both, "calibrant_request_seconds_sum", route="/v1/predict") == 0.5
    assert value(both, "calibrant_bundle_swaps_total") == 2
    assert value(both, "calibrant_queue_rows") == 7
    assert value(both, "calibrant_bundle_refused") == 1
    # What waits in a process that is gone waits no more, but what it answered was answered.
    assert value(later, "calibrant_queue_rows") == 9
    assert value(later, "calibrant_bundle_refused") == 0
    assert value(later, "calibrant_requests_total", route="/v1/predict", status="200") == 3
