"""Requests that no page of ours sends; the numbers are those of the list of hostile cases.

120 in test_launching, 125 in test_websocket_sessions and here, 128 and 129 in test_uploads, 133 in
test_raw_connections, 134, 135 in test_worker_limits, 136 there and here, 137, 138 in
test_launching.
There is no cookie (122, 137, 138) and nothing is loaded by an address (132): the tests assert that.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.routing import Mount, WebSocketRoute
from tests.studio.server.asked import asked
from tests.studio.server.running import SETTINGS, written_page

import margrove.studio
from margrove.studio.server.application import Studio
from margrove.studio.server.security import SecurityMiddleware, page_policy

HOSTS = ("127.0.0.1:8642", "localhost:8642", "[::1]:8642")
HOST = (b"host", b"127.0.0.1:8642")
ORIGIN = (b"origin", b"http://127.0.0.1:8642")
FOREIGN_HOSTS = (
    "evil.com", "evil.com:8642", "127.0.0.1.evil.com", "127.0.0.1.evil.com:8642", "0.0.0.0",
    "0.0.0.0:8642", "[::ffff:7f00:1]:8642", "127.0.0.1", "localhost", "127.0.0.1:8643", "",
    "127.0.0.1:8642.evil.com", "evil.com@127.0.0.1:8642", "127.0.0.1:8642, evil.com",
    "2130706433:8642",
    "127.1:8642", "LOCALHOST.:8642", "127.0.0.1:08642", " 127.0.0.1:8642", "localhost:8642\t",
)  # fmt: skip
FOREIGN_ORIGINS = (
    "null", "http://evil.com", "http://127.0.0.1:8643", "http://localhost:8642",
    "https://127.0.0.1:8642", "http://127.0.0.1:8642.evil.com", "http://127.0.0.1", "",
    "http://evil.com/http://127.0.0.1:8642", "http://127.0.0.1:8642/", "file://",
)  # fmt: skip


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    folder = tmp_path_factory.mktemp("folder")
    page = written_page(tmp_path_factory.mktemp("page"))
    made = Studio(replace(SETTINGS, hosts=HOSTS, folder=folder, page=page))
    made.reports.keep("r" * 32, b"<p>a report</p>")
    return made


def _every_request(app):
    """A right request for each route that is registered, and some for none."""
    for route in app.routes:
        path = route.path.replace("{name}", "r" * 32)
        if isinstance(route, WebSocketRoute):
            yield {"path": path, "kind": "websocket"}
        elif isinstance(route, Mount):
            yield {"path": f"{path}/index-3f2a.js", "method": "GET"}
            yield {"path": f"{path}/index-3f2a.js", "method": "HEAD"}
            yield {"path": f"{path}/nothing", "method": "GET"}
        else:
            for method in sorted(route.methods):
                yield {"path": path, "method": method}
    yield {"path": "/nothing/here"}
    yield {"path": "/nothing/here", "method": "POST"}
    yield {"path": "/nothing/here", "kind": "websocket"}


def test_126_a_right_request_is_answered_on_every_route(app):
    statuses = {}
    for request in _every_request(app):
        found = asked(app.application, headers=[HOST, ORIGIN], **request)
        statuses[request.get("kind", "http"), request.get("method"), request["path"]] = found.status
    assert statuses["http", "GET", "/"] == 200
    assert statuses["http", "GET", "/assets/index-3f2a.js"] == 200
    assert statuses["http", "GET", "/health"] == 200
    assert statuses["http", "GET", "/reports/" + "r" * 32] == 200
    assert statuses["http", "POST", "/tables"] == 401
    assert statuses["websocket", None, "/socket"] == 101
    assert statuses["websocket", None, "/nothing/here"] == 404
    assert statuses["http", None, "/nothing/here"] == 404
    assert set(statuses.values()) <= {200, 401, 101, 404}


@pytest.mark.parametrize("host", FOREIGN_HOSTS)
def test_121_no_route_answers_to_another_name(app, host):
    headers = [(b"host", host.encode()), (b"origin", f"http://{host}".encode())]
    for request in _every_request(app):
        found = asked(app.application, headers=headers, **request)
        assert found.status == 421, request
        assert b"r" * 32 not in found.body


@pytest.mark.parametrize(
    "hosts",
    [[], [HOST, HOST], [HOST, (b"host", b"evil.com")], [(b"Host", b"evil.com"), HOST]],
    ids=["none", "twice", "second", "first"],
)
def test_121_there_is_one_host(app, hosts):
    for request in _every_request(app):
        assert asked(app.application, headers=[*hosts, ORIGIN], **request).status == 421


def test_121_addresses_of_others_in_the_request_line_are_refused(app):
    for path in ("http://evil.com/", "http://127.0.0.1:8642/health", "*", ""):
        found = asked(app.application, path, headers=[HOST])
        assert found.status == 400


@pytest.mark.parametrize("origin", FOREIGN_ORIGINS)
def test_123_124_125_no_route_answers_to_another_origin(app, origin):
    for request in _every_request(app):
        found = asked(app.application, headers=[HOST, (b"origin", origin.encode())], **request)
        assert found.status == 403, request


def test_123_125_without_an_origin_nothing_is_changed_and_no_socket_opened(app):
    for request in _every_request(app):
        is_read = request.get("kind") is None and request.get("method", "GET") in ("GET", "HEAD")
        found = asked(app.application, headers=[HOST], **request)
        assert found.status in ((200, 404) if is_read else (403,)), request


def test_123_two_origins_are_none(app):
    found = asked(app.application, headers=[HOST, ORIGIN, ORIGIN], path="/health")
    assert found.status == 403


@pytest.mark.parametrize("site", [b"cross-site", b"same-site", b"nonsense"])
def test_123_what_browsers_say_about_the_asking_page_is_believed(app, site):
    """A link from elsewhere may lead to the page, which holds nothing, and to nothing else."""
    for request in _every_request(app):
        headers = [HOST, ORIGIN, (b"sec-fetch-site", site), (b"sec-fetch-mode", b"no-cors")]
        assert asked(app.application, headers=headers, **request).status == 403, request
    opening = [(b"sec-fetch-mode", b"navigate"), (b"sec-fetch-dest", b"document")]
    for path, status in (("/", 200), ("/health", 403), ("/reports/" + "r" * 32, 403)):
        headers = [HOST, (b"sec-fetch-site", site), *opening]
        assert asked(app.application, path, headers=headers).status == status


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "X"])
def test_123_there_are_no_other_methods(app, method):
    for request in _every_request(app):
        if request.get("kind") is None:
            answer = asked(app.application, request["path"], method=method, headers=[HOST, ORIGIN])
            assert answer.status == 405


def test_122_no_key_opens_uploads_but_that_of_a_tab(app):
    key = app.keys.spend(app.keys.new_token())
    for given in (b"", b"x", key[:-1].encode(), key.encode() + b"x", b"\xff"):
        headers = [HOST, ORIGIN, (b"x-margrove-key", given)]
        assert asked(app.application, "/tables", method="POST", headers=headers).status == 401
    query = {"query_string": f"key={key}&token={key}".encode()}
    headers = [HOST, ORIGIN, (b"cookie", f"key={key}".encode()), (b"authorization", key.encode())]
    found = asked(app.application, "/tables", method="POST", headers=headers, **query)
    assert found.status == 401


def _all_answers(app):
    """Right ones, wrong ones, and those of the security checks."""
    requests = list(_every_request(app))
    for request, headers in itertools.product(
        requests, ([HOST, ORIGIN], [HOST], [(b"host", b"evil.com")], [HOST, (b"origin", b"null")])
    ):
        yield request, asked(app.application, headers=headers, **request)


def test_130_131_everything_leaves_with_the_same_headers(app):
    for request, found in _all_answers(app):
        if found.status == 101:
            continue
        policy = found.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert "*" not in policy
        assert found.headers["x-content-type-options"] == "nosniff", request
        assert found.headers["x-frame-options"] == "DENY"
        assert found.headers["referrer-policy"] == "no-referrer"
        assert found.headers["cross-origin-resource-policy"] == "same-origin"
        assert found.headers["cache-control"] == "no-store"


def test_124_131_122_there_is_no_cors_no_redirect_and_no_cookie(app):
    for _, found in _all_answers(app):
        names = {name.lower() for name in found.headers}
        assert not any(name.startswith("access-control") for name in names)
        assert not names & {"set-cookie", "location", "server"}
        assert not 300 <= found.status < 400


@pytest.mark.parametrize("path", ["//evil.com", "////evil.com", "/\\evil.com", "/health/"])
def test_131_nothing_leads_elsewhere(app, path):
    found = asked(app.application, path, headers=[HOST])
    assert found.status == 404
    assert b"evil" not in found.body


@pytest.mark.parametrize(
    "path",
    [
        "/../secret", "/assets/../index.html", "/assets/%2e%2e/index.html", "/assets/..\\secret.py",
        "/assets/%252e%252e%252fsecret", "/C:\\windows\\win.ini", "//host/share", "/etc/passwd",
        "/assets/\x00index-3f2a.js", "/CON", "/assets/index-3f2a.js.", "/assets/" + 1500 * "a",
        "/secret.py", "/assets/../secret.py", "/assets/", "/assets", "/index.html", "/reports/",
        "/reports/" + "x" * 32, "/reports/r/r", "/tables/file", "/static/index.html",
    ],
)  # fmt: skip
def test_127_only_what_is_known_by_name_is_served(app, path):
    found = asked(app.application, path, headers=[HOST])
    assert found.status == 404
    assert found.body == b"Not Found\n"


def test_127_a_symbolic_link_that_leaves_the_folder_of_the_page_is_not_followed(tmp_path):
    page = written_page(tmp_path)
    made = Studio(replace(SETTINGS, hosts=HOSTS, folder=tmp_path, page=page))
    page.joinpath("assets", "late.js").symlink_to("/etc/passwd")
    assert asked(made.application, "/assets/late.js", headers=[HOST]).status == 404


def test_130_the_policy_of_the_page_allows_its_own_files_only():
    policy = dict(part.split(" ", 1) for part in page_policy("127.0.0.1:8642").split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["connect-src"] == "'self' ws://127.0.0.1:8642"
    for name in ("base-uri", "form-action", "frame-ancestors", "object-src"):
        assert policy[name] == "'none'"


def test_132_nothing_is_loaded_by_its_address():
    """No module of the server can fetch anything, and none of the requests has an address."""
    folder = Path(margrove.studio.__file__).parent
    for path in folder.rglob("*.py"):
        imported = re.findall(r"^\s*(?:from|import) ([\w.]+)", path.read_text(), re.MULTILINE)
        assert not {"urllib.request", "http.client", "httpx", "requests"} & set(imported), path


def test_136_faults_of_the_server_show_a_number(capsys):
    async def broken(scope, receive, send):
        secret = "4111 1111"
        raise OSError(f"/home/ada/{secret}")

    found = asked(SecurityMiddleware(broken, HOSTS), "/", headers=[HOST])
    assert found.status == 500
    shown = capsys.readouterr().err
    assert "OSError in test_hostile_requests.py:" in shown
    code = re.search(r"error ([0-9a-f]{8})", shown)[1]
    assert code in found.body.decode()
    for text in (shown, found.body.decode()):
        assert "4111" not in text
        assert "/" not in text
