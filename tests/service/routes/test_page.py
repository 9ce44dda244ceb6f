"""The files of the page, which come from a list."""

from __future__ import annotations

from starlette.testclient import TestClient


def test_the_page_is_there_and_known_again(reader: TestClient) -> None:
    page = reader.get("/")
    assert (page.status_code, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert page.headers["cache-control"] == "no-cache"
    assert reader.get("/", headers={"if-none-match": page.headers["etag"]}).status_code == 304
    assert reader.get("/page/index.html").content == page.content
    assert reader.get("/page/api.js").headers["content-type"] == "text/javascript; charset=utf-8"


def test_no_other_file_is_ever_sent(reader: TestClient) -> None:
    for name in (
        "../app.py", "%2e%2e/app.py", "..%2fapp.py", "..%5capp.py", "/etc/passwd", "%2fetc%2fpasswd", "", ".",
        "api.js/../index.html", "api.js%00.html", "__init__.py", "//etc/passwd",
    ):  # fmt: skip
        answer = reader.get(f"/page/{name}")
        assert answer.status_code == 404 or "index.html" in str(answer.url), name
        assert "import" not in answer.text or "index.html" in str(answer.url)
