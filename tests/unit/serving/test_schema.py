"""The service does what its description says, whatever is sent: schemathesis tries."""

from copy import deepcopy
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import checks
from tests.unit.serving.running import running

from calibrant.serving.app import make_app
from calibrant.serving.service import Service
from calibrant.serving.settings import Settings

CHECKS = [
    checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
    checks.positive_data_acceptance,
    checks.unsupported_method,
    checks.allow_header_conformance,
]

bounded = settings(
    max_examples=40,
    deadline=None,
    database=None,
    derandomize=True,  # the same requests each time, on every machine
    suppress_health_check=list(HealthCheck),
)


def described():
    """Return the description as it is, and as it would be for the bundle of these tests only.

    The description holds for every bundle: one may take the place of another while clients run, and
    nobody needs a key to read it. Here it says also what this bundle reads, so that all requests
    that it allows must be answered.
    """
    made = make_app(Service(Settings(Path("nowhere")))).openapi()
    number = {"type": "number", "minimum": -1e30, "maximum": 1e30}
    own = deepcopy(made)
    own["components"]["schemas"]["Input"] = {
        "type": "object",
        "required": ["logits"],
        "additionalProperties": False,
        "properties": {
            "logits": {"type": "array", "items": number, "minItems": 3, "maxItems": 3},
            "text": {"type": "null"},
            "row": {"type": "null"},
        },
    }
    body = own["components"]["schemas"]["PredictBody"]
    body["example"] = {"inputs": [{"logits": [9.0, 0.0, 0.0]}], "unit": "customer-17"}
    body["properties"]["reasons"] = {"enum": [0, None]}  # it has no model
    body["properties"]["point"] = {"anyOf": [{"enum": [0, 1, 2]}, {"type": "null"}]}
    return made, own


general, own = (schemathesis.openapi.from_dict(each) for each in described())


@pytest.fixture(scope="module")
def service(tmp_path_factory, logits_folder):
    db = f"sqlite:///{tmp_path_factory.mktemp('db')}/calibrant.db"
    with running(logits_folder, db) as service:
        yield service
        rows = {}
        for each in service.store.predictions.search(limit=10_000):
            rows.setdefault(each.request, []).append(each.position)
        # Whatever was tried is on record whole or not at all.
        assert all(sorted(places) == list(range(len(places))) for places in rows.values())


@general.parametrize()
@bounded
def test_it_does_what_it_says(service, case):
    apart = [checks.positive_data_acceptance]  # not every bundle reads every kind of input
    case.call_and_validate(
        base_url=service.url, checks=[each for each in CHECKS if each not in apart]
    )


@own.parametrize()
@bounded
def test_it_takes_what_its_bundle_reads(service, case):
    case.call_and_validate(base_url=service.url, checks=CHECKS)
