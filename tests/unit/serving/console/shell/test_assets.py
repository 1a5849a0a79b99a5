"""Static assets: ours and plotly's, cached by browsers, and no other file."""

import re

import pytest

from calibrant.serving.console.shell.assets import asset_url


@pytest.fixture
def client(serving, logits_folder):
    return serving(logits_folder)


@pytest.mark.parametrize("name", ["console.css", "report.css", "charts.js", "plotly.js"])
@pytest.mark.parametrize("encoding", ["gzip", "identity"])
def test_an_asset_is_cached_for_a_year_under_the_hash_of_its_content(client, name, encoding):
    response = client.get(asset_url(name), headers={"Accept-Encoding": encoding})
    assert response.status_code == 200
    assert response.headers["cache-control"] == "public, max-age=31536000, immutable"
    assert response.headers["vary"] == "Accept-Encoding"
    assert response.headers.get("content-encoding", "identity") == encoding
    assert response.headers["x-content-type-options"] == "nosniff"
    kind = "text/css" if name.endswith(".css") else "text/javascript"
    assert response.headers["content-type"].startswith(kind)
    assert len(response.content) > 500


@pytest.mark.parametrize(
    "path",
    ["/console/static/0000000000000000/console.css", "/console/static/x/../../../etc/passwd",
     "/console/static/x/%2e%2e%2fconsole.py", "/console/static/x/base.html.j2"],
)  # fmt: skip
def test_no_other_file_is_served(client, path):
    assert client.get(path).status_code == 404


def test_no_page_loads_anything_from_elsewhere(client):
    page = client.get("/console/nowhere").text
    loaded = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert loaded
    assert all(each.startswith(("/console", "#", "data:,")) for each in loaded)
