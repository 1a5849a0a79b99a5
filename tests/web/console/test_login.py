"""Sessions from login to logout, and expired, forged or foreign ones."""

import time

import pytest

from calibrant.serving.console.shell.sessions import LIFETIME, Sessions

pytestmark = pytest.mark.web

LIST = "/console/predictions?decision=act"
LOGIN, LOGOUT = "/console/login", "/console/logout"
ELSEWHERE = "http://127.0.0.1:1/"


def cookie_of(page):
    (cookie,) = page.context.cookies()
    return cookie


def with_cookie(page, value):
    page.context.add_cookies([{**cookie_of(page), "value": value}])


def key_of(service, role):
    return next(each for each in service.store.keys.all() if each.role == role)


def log_out(page):
    with page.expect_navigation():
        page.get_by_role("button", name="Log out").click()


def has_login(page):
    return page.get_by_role("heading", level=1).inner_text() == "Log in"


@pytest.mark.smoke
def test_login_leads_to_the_requested_page(abroad, guarded):
    page = abroad(LIST)
    assert page.url.startswith(guarded.url + LOGIN)
    assert page.evaluate("document.activeElement.id") == "key"
    assert page.get_by_role("navigation").count() == 0
    abroad.log_in(page, "label", next=LIST)
    assert page.get_by_role("heading", level=1).inner_text() == "Predictions"
    assert "label desk (label)" in page.locator(".who").inner_text()


def test_login_never_redirects_to_another_site(abroad, guarded):
    page = abroad(LOGIN)
    for next in ("https://example.com/", "//example.com", "/v1/bundle"):
        page.context.clear_cookies()
        abroad.go(page, f"{LOGIN}?next={next}")
        page.get_by_label("Key").fill(guarded.keys["label"])
        with page.expect_navigation(wait_until="commit"):
            page.get_by_role("button", name="Log in").click()
        assert page.url == f"{guarded.url}/console"


def test_scripts_cannot_read_the_cookie_and_it_does_not_hold_the_key(abroad, guarded):
    page = abroad(LIST, role="label")
    cookie = cookie_of(page)
    assert (cookie["httpOnly"], cookie["sameSite"], cookie["path"]) == (True, "Lax", "/console")
    assert 0 < cookie["expires"] - time.time() <= LIFETIME
    assert guarded.keys["label"].rpartition("_")[2] not in cookie["value"]
    assert page.evaluate("document.cookie") == ""


def test_a_wrong_key_is_refused_in_a_sentence(abroad, guarded):
    page = abroad(LIST)
    wrong = guarded.keys["admin"][:-4] + "0000"
    page.get_by_label("Key").fill(wrong)
    with abroad.expecting(LOGIN, 401), page.expect_navigation():
        page.get_by_role("button", name="Log in").click()
    assert "key" in page.get_by_role("alert").inner_text()
    field = page.get_by_label("Key")
    assert field.get_attribute("aria-invalid") == "true"
    assert "why" in field.get_attribute("aria-describedby")
    assert wrong not in page.content()
    field.fill(guarded.keys["admin"])  # the second attempt still leads to the page wanted first
    with page.expect_navigation():
        field.press("Enter")
    assert page.url == guarded.url + LIST


def test_after_logout_going_back_shows_nothing(abroad, guarded):
    page = abroad(LIST, role="label")
    seen, cookie = page.locator("main").inner_text(), cookie_of(page)["value"]
    assert abroad.go(page, LIST).headers["cache-control"] == "no-store"
    log_out(page)
    assert page.url.startswith(guarded.url + LOGIN)
    for _ in range(2):
        page.go_back()
        page.wait_for_load_state()
        assert has_login(page)
        assert seen not in page.locator("body").inner_text()
    assert cookie_of(page)["value"].split(".")[1] == "-"  # of the login form, with no key
    with_cookie(page, cookie)  # someone kept it
    with abroad.expecting("/console/predictions", 401):
        abroad.go(page, LIST)
    assert has_login(page)


def test_an_expired_session_asks_for_the_key_again(abroad, guarded):
    page = abroad(LIST, role="label")
    sessions = Sessions(guarded.store.keyed_hash)
    begun = time.time() - LIFETIME - 1
    with_cookie(page, sessions.encode(sessions.create(key_of(guarded, "label").id, now=begun)))
    with abroad.expecting("/console/predictions", 401):
        abroad.go(page, LIST)
    assert has_login(page)
    assert "your session has expired" in page.get_by_role("alert").inner_text().lower()
    abroad.log_in_here(page, "label")
    assert page.url == guarded.url + LIST


def test_a_forged_cookie_is_refused(abroad, guarded):
    page = abroad(LIST, role="label")
    visit, _, rest = cookie_of(page)["value"].partition(".")
    admin = key_of(guarded, "admin").id
    for value in (f"{visit}.{admin}.{rest.partition('.')[2]}", "nonsense", "🗝"):
        with_cookie(page, value)
        with abroad.expecting("/console/predictions", 401):
            abroad.go(page, LIST)
        assert has_login(page)
        assert "from another service" in page.get_by_role("alert").inner_text()


def test_revoking_a_key_ends_its_sessions(abroad, guarded):
    _, token = guarded.store.keys.add("leaving", "admin")
    guarded.keys["leaving"] = token
    page = abroad(LIST, role="leaving")
    guarded.store.keys.revoke(token)
    with abroad.expecting("/console/predictions", 401):
        abroad.go(page, LIST)
    assert has_login(page)
    assert "revoked" in page.get_by_role("alert").inner_text()


def test_a_form_without_its_token_changes_nothing(abroad, guarded):
    page = abroad(LIST, role="label")
    before = cookie_of(page)
    for edit in ("(el) => el.remove()", "(el) => { el.value = '0'.repeat(64) }"):
        abroad.go(page, LIST)
        page.locator(f"form[action='{LOGOUT}'] [name=csrf]").evaluate(edit)
        with abroad.expecting(LOGOUT, 403):
            log_out(page)
        assert page.get_by_role("heading", level=1).inner_text() == "Forbidden"
        assert "nothing was changed" in page.locator("main").inner_text()
    assert cookie_of(page) == before
    abroad.go(page, LIST)
    assert not has_login(page)


def test_a_form_of_another_page_is_refused(abroad, guarded):
    """To a browser another port of this machine is the same site: its forms carry the cookie."""
    page = abroad(LIST, role="label")
    token = page.locator(f"form[action='{LOGOUT}'] [name=csrf]").get_attribute("value")
    form = (
        f"<form method=post action='{guarded.url}{LOGOUT}'><input name=csrf value={token}>"
        "<button>go</button></form>"
    )
    abroad.allow(ELSEWHERE)
    page.context.route(
        f"{ELSEWHERE}**", lambda route: route.fulfill(content_type="text/html", body=form)
    )
    page.goto(ELSEWHERE)
    with abroad.expecting(LOGOUT, 403), page.expect_navigation():
        page.get_by_role("button").click()
    abroad.go(page, LIST)
    assert not has_login(page)


def test_no_login_is_needed_without_keys(at_home, local):
    page = at_home(f"{LOGIN}?next={LIST}")
    assert page.url == local.url + LIST
    assert "local visitor" in page.locator(".who").inner_text()
    assert page.get_by_role("button", name="Log out").count() == 0
