"""Every status that a route names can be had of it, and is a problem in one sentence."""

import pytest

from calibrant.errors import StoreUnavailable

PREDICT = {"inputs": [{"logits": [9.0, 0.0, 0.0]}]}
ROUTES = {
    ("post", "/v1/predict"): "predict",
    ("post", "/v1/outcomes"): "label",
    ("get", "/v1/predictions/{id}"): None,
    ("get", "/v1/bundle"): None,
    ("post", "/v1/bundle/reload"): "admin",
    ("post", "/v1/units/erase"): "admin",
    ("delete", "/v1/units/{unit}"): "admin",
    ("get", "/metrics"): None,
    ("get", "/healthz"): "open",
    ("get", "/readyz"): "open",
}
"""The role that each route needs; None for any key, "open" for none."""


@pytest.fixture
def client(serving, logits_folder):
    return serving(logits_folder, need_key=True, max_body=2000, max_inputs=5)


@pytest.fixture
def keys(client):
    ring = client.service.store.keys
    made = {role: ring.add(role, role)[1] for role in ("predict", "label", "admin")}
    made["slow"] = ring.add("slow", "admin", rate=1)[1]
    return {name: {"Authorization": f"Bearer {token}"} for name, token in made.items()}


@pytest.fixture
def known(client, keys):
    answer = client.post("/v1/predict", json=PREDICT, headers=keys["predict"])
    return answer.json()["predictions"][0]["id"]


def good(method, path, known):
    """Return a request that is answered with 200."""
    body = {
        "/v1/predict": PREDICT,
        "/v1/outcomes": {"outcomes": [{"prediction": known, "label": "parts"}]},
        "/v1/units/erase": {"unit": "nobody"},
    }.get(path)
    address = path.replace("{id}", known).replace("{unit}", "nobody")
    return {"method": method, "url": address} | ({} if body is None else {"json": body})


def changed(request, status, client, monkeypatch):
    """Change a good request, or the service, so that the answer has a status."""
    headers = request.pop("headers", {})
    json = {"headers": {**headers, "Content-Type": "application/json"}}
    if status == 400:
        return {**request, **json, "json": None, "content": b"{"}
    if status == 404:
        wrong = {"json": {"outcomes": [{"prediction": "gone", "label": "a"}]}}
        if "json" not in request:
            folder = request["url"].rpartition("/")[0]
            wrong = {"url": f"{folder}/{'g' * 201}"}
        return {**request, "headers": headers, **wrong}
    if status == 409 and "json" in request:
        again = {**headers, "Idempotency-Key": "same"}
        client.request(**request, headers=again)
        told = request["json"].get("outcomes", ())
        other = {"outcomes": [{**one, "label": "other"} for one in told]}
        return {
            **request,
            "headers": again,
            "json": other if told else {"inputs": [{"logits": [1, 2, 3]}]},
        }
    if status == 409:
        monkeypatch.setattr(client.service.slot, "_folder", client.service.slot._folder / "gone")
        return {**request, "headers": headers}
    if status == 413:
        return {**request, **json, "json": None, "content": b" " * 2001}
    if status == 415:
        csv = {**headers, "Content-Type": "text/csv"}
        return {**request, "headers": csv, "json": None, "content": b"a"}
    assert status == 422
    return {**request, "headers": headers, "json": {"colour": "red"}}


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_every_status_that_a_route_names_can_be_had(client, keys, known, method, path, monkeypatch):
    role = ROUTES[method, path]
    named = client.get("/openapi.json").json()["paths"][path][method]["responses"]
    right = keys.get(role or "label", {})
    for status in map(int, named):
        request = good(method, path, known)
        with monkeypatch.context() as patch:
            if status == 200:
                request |= {"headers": right}
            elif status == 401:
                request |= {"headers": {}}
            elif status == 403:
                request |= {"headers": keys["label" if role == "predict" else "predict"]}
            elif status == 429:
                request |= {"headers": keys["slow"]}
                client.request(**request)
            elif status == 503:
                request |= {"headers": keys["admin"]}
                break_store(client.service, patch)
            else:
                request = changed({**request, "headers": right}, status, client, patch)
            answer = client.request(**request)
        assert answer.status_code == status, (status, answer.text)
        if status == 200:
            continue
        content = answer.json()
        assert answer.headers["content-type"] == "application/problem+json"
        assert content["status"] == status
        assert content["detail"].endswith(".")
        assert ("retry-after" in answer.headers) is (status in (429, 503))
        assert ("www-authenticate" in answer.headers) is (status == 401)


def break_store(service, patch):
    def away(*args, **kwargs):
        raise StoreUnavailable("away.")

    service.access._cache._good.clear()
    patch.setattr(service.store.keys, "check", away)
    patch.setattr(service.store, "check", away)


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_roles(client, keys, known, method, path):
    needed = ROUTES[method, path]
    for role in ("predict", "label", "admin"):
        answer = client.request(**good(method, path, known), headers=keys[role])
        may = needed in (None, "open", role) or role == "admin"
        assert answer.status_code == (200 if may else 403), (role, answer.text)


def test_every_route_is_in_the_table(client):
    paths = client.get("/openapi.json").json()["paths"]
    assert {(method, path) for path, methods in paths.items() for method in methods} == set(ROUTES)


def test_other_methods_are_405_and_other_addresses_404(client):
    assert client.put("/v1/predict").status_code == 405
    assert client.get("/v1/predict").headers["allow"] == "POST"
    for path in ("/", "/v1", "/v1/predict/", "/v1/predictions/a/b", "/v2/predict"):
        answer = client.get(path)
        assert answer.status_code == 404, path
        assert answer.headers["content-type"] == "application/problem+json"
