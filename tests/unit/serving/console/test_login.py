"""Sessions start with a key, expire, and belong to one visitor."""

import re
import time

import pytest
from tests.unit.serving.console.conftest import csrf_of, log_in

from calibrant.serving.console.shell.sessions import LIFETIME, Session, Sessions

COOKIE = "calibrant"


def test_without_keys_every_visitor_is_admitted(serving, logits_folder):
    client = serving(logits_folder)
    page = client.get("/console/nowhere")
    assert page.status_code == 404
    response = client.get("/console/login?next=/console/model", follow_redirects=False)
    assert (response.status_code, response.headers["location"]) == (303, "/console/model")


def test_a_stranger_is_sent_to_the_login_page_and_back(guarded):
    response = guarded.get("/console/predictions?label=a%26b", follow_redirects=False)
    assert response.status_code == 303
    where = response.headers["location"]
    assert where == "/console/login?next=%2Fconsole%2Fpredictions%3Flabel%3Da%2526b"
    page = guarded.get(where)
    assert page.status_code == 200
    wanted = re.search(r'name="next" value="([^"]*)"', page.text)[1]
    entered = log_in(guarded, guarded.tokens["label"], next=wanted)
    assert entered.status_code == 303
    assert entered.headers["location"] == "/console/predictions?label=a%26b"


def test_the_cookie_is_closed_to_scripts_and_other_sites_and_has_no_secret(guarded):
    cookie = log_in(guarded, guarded.tokens["admin"]).headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Path=/console" in cookie
    assert f"Max-Age={LIFETIME}" in cookie
    assert "Secure" not in cookie  # over plain HTTP a browser would drop it
    assert guarded.tokens["admin"].rpartition("_")[2] not in cookie


def test_over_https_the_cookie_never_goes_over_plain_http(serving, logits_folder):
    client = serving(logits_folder, base_url="https://127.0.0.1", need_key=True)
    assert "Secure" in client.get("/console/login").headers["set-cookie"]


@pytest.mark.parametrize("wrong", ["", "x", "cal_abcdefghijkl_" + "0" * 64, "é" * 50, "a" * 200])
def test_a_wrong_key(guarded, wrong):
    page = log_in(guarded, wrong)
    assert page.status_code == 401
    assert "the key is unknown or revoked" in page.text.lower()
    assert guarded.get("/console", follow_redirects=False).status_code == 303


def test_a_key_that_is_too_long(guarded):
    assert log_in(guarded, "a" * 201).status_code == 422


def test_login_needs_its_own_token(guarded):
    guarded.get("/console/login")
    data = {"key": guarded.tokens["admin"], "csrf": "0" * 64}
    page = guarded.post("/console/login", data=data, follow_redirects=False)
    assert page.status_code == 403
    assert "set-cookie" not in page.headers


def test_login_without_the_cookie_of_its_page(guarded):
    csrf = csrf_of(guarded.get("/console/login"))
    guarded.cookies.clear()
    data = {"key": guarded.tokens["admin"], "csrf": csrf}
    page = guarded.post("/console/login", data=data, follow_redirects=False)
    assert page.status_code == 403
    assert "blocks cookies" in page.text


def test_a_page_of_another_site_cannot_send_forms(guarded):
    csrf = csrf_of(guarded.get("/console/login"))
    data = {"key": guarded.tokens["admin"], "csrf": csrf}
    headers = {"Sec-Fetch-Site": "cross-site"}
    assert guarded.post("/console/login", data=data, headers=headers).status_code == 403


@pytest.mark.parametrize(
    "wanted",
    ["https://example.com", "//example.com", "/v1/predict", "/console@example.com", "",
     "/consoles", "/\\example.com", "/console/\r\nX: y", "javascript:alert(1)"],
)  # fmt: skip
def test_login_never_redirects_to_another_site(guarded, wanted):
    entered = log_in(guarded, guarded.tokens["admin"], next=wanted)
    assert (entered.status_code, entered.headers["location"]) == (303, "/console")


def test_every_login_has_a_new_session(guarded):
    cookies = set()
    for _ in range(2):
        guarded.cookies.clear()
        cookies.add(log_in(guarded, guarded.tokens["admin"]).headers["set-cookie"])
    assert len(cookies) == 2


def sign_in_with(client, session):
    sessions = Sessions(client.service.store.keyed_hash)
    client.cookies.set(COOKIE, sessions.encode(session), path="/console")


def test_an_expired_session(guarded):
    key = guarded.keys["admin"].id
    sign_in_with(guarded, Session("0" * 32, key, int(time.time()) - 1))
    page = guarded.get("/console", follow_redirects=False)
    assert page.status_code == 401
    assert "Your session has expired" in page.text
    assert 'name="key"' in page.text  # the remedy is on the page


@pytest.mark.parametrize("cookie", ["x", "0" * 32 + ".abcdefghijkl.99999999999." + "0" * 64])
def test_a_forged_cookie(guarded, cookie):
    guarded.cookies.set(COOKIE, cookie, path="/console")
    page = guarded.get("/console", follow_redirects=False)
    assert page.status_code == 401
    assert "damaged or from another service" in page.text


def test_the_hash_of_an_input_is_not_a_signature(guarded):
    content = f"{'0' * 32}.{guarded.keys['admin'].id}.{int(time.time()) + 99}"
    signed = guarded.service.store.keyed_hash(content.encode())  # what input_hash would be
    guarded.cookies.set(COOKIE, f"{content}.{signed}", path="/console")
    assert guarded.get("/console", follow_redirects=False).status_code == 401


def test_revoking_a_key_ends_its_sessions(guarded):
    log_in(guarded, guarded.tokens["admin"])
    guarded.service.store.keys.revoke(guarded.keys["admin"].id)
    page = guarded.get("/console", follow_redirects=False)
    assert page.status_code == 401
    assert "Your key was revoked" in page.text


def test_logging_out_needs_the_page_s_token_and_takes_the_cookie_back(guarded):
    log_in(guarded, guarded.tokens["label"])
    refused = guarded.post("/console/logout", data={"csrf": ""}, follow_redirects=False)
    assert refused.status_code == 403
    csrf = csrf_of(guarded.get("/console/nowhere/at/all"))
    left = guarded.post("/console/logout", data={"csrf": csrf}, follow_redirects=False)
    assert (left.status_code, left.headers["location"]) == (303, "/console/login")
    assert COOKIE not in guarded.cookies


def test_a_copy_of_the_cookie_is_refused_after_logging_out(guarded):
    log_in(guarded, guarded.tokens["admin"])
    copy, csrf = guarded.cookies[COOKIE], csrf_of(guarded.get("/console"))
    guarded.post("/console/logout", data={"csrf": csrf}, follow_redirects=False)
    guarded.cookies.set(COOKIE, copy, path="/console")
    page = guarded.get("/console", follow_redirects=False)
    assert page.status_code == 401
    assert "You have logged out" in page.text
    refused = guarded.post("/console/logout", data={"csrf": csrf}, follow_redirects=False)
    assert refused.status_code == 401


def test_the_login_page_keeps_a_session(guarded):
    log_in(guarded, guarded.tokens["admin"])
    page = guarded.get("/console/login?next=/console/model", follow_redirects=False)
    assert (page.status_code, page.headers["location"]) == (303, "/console/model")
    assert guarded.get("/console", follow_redirects=False).status_code == 200


def test_two_windows_may_wait_for_a_login(guarded):
    first, second = (csrf_of(guarded.get("/console/login")) for _ in range(2))
    for csrf in (second, first):
        data = {"key": guarded.tokens["admin"], "csrf": csrf}
        assert guarded.post("/console/login", data=data, follow_redirects=False).status_code == 303
    assert guarded.get("/console", follow_redirects=False).status_code == 200


def test_another_key_needs_a_logout_first(guarded):
    csrf = csrf_of(guarded.get("/console/login"))
    log_in(guarded, guarded.tokens["label"])
    data = {"key": guarded.tokens["admin"], "csrf": csrf}
    page = guarded.post("/console/login", data=data, follow_redirects=False)
    assert page.status_code == 409
    assert "log out first" in page.text
    assert "label key" in guarded.get("/console").text


def test_the_login_page_keeps_the_session_of_a_rate_limited_key(guarded):
    _, token = guarded.service.store.keys.add("slow", "admin", rate=6)
    log_in(guarded, token)
    page = guarded.get("/console/login", follow_redirects=False)
    assert page.status_code == 429
    assert "set-cookie" not in page.headers


def test_behind_a_proxy_that_speaks_https_the_cookie_never_goes_over_plain_http(guarded):
    page = guarded.get("/console/login", headers={"X-Forwarded-Proto": "https"})
    assert "Secure" in page.headers["set-cookie"]


def test_a_form_without_a_session_is_refused_and_says_that_nothing_changed(guarded):
    page = guarded.post("/console/logout", data={"csrf": "0" * 64}, follow_redirects=False)
    assert page.status_code == 401
    assert "nothing was changed" in page.text


def test_the_rate_of_a_key_holds_for_pages(guarded):
    _, token = guarded.service.store.keys.add("slow", "admin", rate=6)
    log_in(guarded, token)
    page = guarded.get("/console/predictions", follow_redirects=False)
    assert page.status_code == 429
    assert "Retry-After" in page.headers
    assert "allows 6 requests per minute" in page.text
