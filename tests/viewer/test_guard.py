"""Who is refused: foreign hosts and origins, and everyone without the token where there is one."""

import http.client
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from conftest import CHECKOUT
from viewer.stored_runs import served, write_run

TOKEN, ONCE = "correct-horse", "battery-staple"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("guarded") / "run", {"a": 1.0})


@pytest.fixture(scope="module")
def local(run: Path) -> Iterator[str]:
    with served([str(run)], run.parent / "local.sqlite") as address:
        yield address


@pytest.fixture(scope="module")
def remote(run: Path) -> Iterator[str]:
    with served([str(run)], run.parent / "remote.sqlite", token=TOKEN, once=ONCE) as address:
        yield address


def ask(
    base: str, path: str = "/", method: str = "GET", body: str | None = None, **headers: str
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(urlsplit(base).netloc, timeout=60)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body, named)
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer


def port_of(base: str) -> int:
    return urlsplit(base).port or 0


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:{port}",
        "127.0.0.1.evil.example:{port}",
        "localhost.evil.example",
        "192.168.0.7:{port}",
        "[2001:db8::1]:{port}",
        "",
        "127.0.0.1@evil.example",
        "127.0.0.1:{port}/evil.example",
        "127.0.0.1:evil.example",
    ],
)
def test_a_foreign_host_is_refused(local: str, host: str) -> None:
    assert ask(local, Host=host.format(port=port_of(local))).status == 421


@pytest.mark.parametrize("host", ["127.0.0.1:{port}", "localhost:{port}", "[::1]:{port}", "localhost"])
def test_loopback_is_answered(local: str, host: str) -> None:
    assert ask(local, Host=host.format(port=port_of(local))).status == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "file://"])
@pytest.mark.parametrize(("method", "path"), [("GET", "/api/dialogues"), ("POST", "/api/annotations")])
def test_a_foreign_origin_is_refused(local: str, origin: str, method: str, path: str) -> None:
    assert ask(local, path, method, "{}", Origin=origin, Content_Type="application/json").status == 403


def test_a_foreign_origin_beside_our_own_is_refused(local: str) -> None:
    connection = http.client.HTTPConnection(urlsplit(local).netloc, timeout=60)
    connection.putrequest("POST", "/api/annotations")
    for origin in (local, "http://evil.example"):
        connection.putheader("Origin", origin)
    connection.putheader("Content-Type", "application/json")
    connection.endheaders()
    assert connection.getresponse().status == 403
    connection.close()


@pytest.mark.parametrize(
    "site", ["cross-site", "same-site"]
)  # the second one is another port of this machine
def test_a_request_that_another_site_makes_is_refused_but_a_link_is_not(local: str, site: str) -> None:
    assert ask(local, Sec_Fetch_Site=site, Sec_Fetch_Mode="no-cors").status == 403
    link = {"Sec_Fetch_Site": site, "Sec_Fetch_Mode": "navigate", "Sec_Fetch_Dest": "document"}
    assert ask(local, **link).status == 200
    assert ask(local, **(link | {"Sec_Fetch_Dest": "iframe"})).status == 403
    posted = {**link, "Content_Type": "application/json"}
    assert ask(local, "/api/annotations", "POST", "{}", **posted).status == 403


def test_a_form_cannot_annotate(local: str) -> None:
    assert ask(local, "/api/annotations", "POST", "{}", Content_Type="text/plain").status == 415


@pytest.mark.parametrize("path", ["/", "/api/runs", "/static/style.css", "/metrics", "/nowhere"])
def test_nothing_is_told_without_the_token(remote: str, path: str) -> None:
    assert ask(remote, path).status == 401
    assert ask(remote, f"{path}?token=wrong").status == 401
    assert ask(remote, path, Cookie=f"sweetrl_token_{port_of(remote)}=wrong").status == 401
    assert ask(remote, path, Authorization="Bearer wrong").status == 401


def test_the_token_becomes_a_cookie_and_leaves_the_address(remote: str) -> None:
    answer = ask(remote, f"/dialogue?id=a%230&token={TOKEN}")
    assert (answer.status, answer.headers["location"]) == (303, "/dialogue?id=a%230")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert cookie.startswith(f"sweetrl_token_{port_of(remote)}=")
    assert ask(remote, Cookie=cookie.partition(";")[0]).status == 200
    assert ask(remote, Authorization=f"Bearer {TOKEN}").status == 200


@pytest.mark.parametrize("other", ['a="', "b[]=1", "c=%00", "=", ";;"])
def test_cookies_of_other_servers_on_this_machine_do_no_harm(remote: str, other: str) -> None:
    own = f"sweetrl_token_{port_of(remote)}={TOKEN}"
    assert ask(remote, Cookie=f"{other}; {own}").status == 200
    assert ask(remote, Cookie=f"{other}; {own[:-1]}").status == 401
    assert ask(remote, Cookie=f"{other}; {own.replace('token_', 'token_1')}").status == 401


def test_a_token_for_once_opens_the_door_once(remote: str) -> None:
    answer = ask(remote, f"/?token={ONCE}")
    cookie = answer.headers["set-cookie"].partition(";")[0]
    assert cookie.endswith(f"={TOKEN}")
    assert ask(remote, Cookie=cookie).status == 200
    assert ask(remote, f"/?token={ONCE}").status == 401
    assert ask(remote, Authorization=f"Bearer {ONCE}").status == 401


def test_the_token_cannot_lead_to_another_site(remote: str) -> None:
    answer = ask(remote, f"//evil.example/?token={TOKEN}")
    assert answer.headers["location"].startswith("/evil.example/")


def test_a_foreign_name_is_refused_even_with_the_token(remote: str) -> None:
    assert ask(remote, Host="evil.example", Authorization=f"Bearer {TOKEN}").status == 421


def test_every_answer_forbids_foreign_scripts_frames_and_requests(local: str) -> None:
    for path in ("/", "/api/runs", "/static/viewer.js", "/nowhere", "/dialogue?of=x&id=y"):
        policy = ask(local, path).headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert ask(local, path).headers["x-content-type-options"] == "nosniff"
        assert ask(local, path).headers["referrer-policy"] == "no-referrer"


def test_every_address_of_the_api_is_documented() -> None:
    text = (CHECKOUT / "docs/viewer.md").read_text()
    sources = [CHECKOUT / "src/sweetrl/viewer" / name for name in ("app.py", "play_app.py")]
    paths = {path for source in sources for path in re.findall(r'"(/api/\w+)"', source.read_text())}
    assert len(paths) == 10
    assert not [path for path in paths if path not in text]


@pytest.mark.parametrize(
    "name", ["../../etc/passwd", "/etc/passwd", "..%2f..%2fepisodes.jsonl", "a" * 40, "\0"]
)
def test_only_pictures_of_the_run_are_sent(local: str, name: str) -> None:
    assert ask(local, f"/picture?of=run&name={name}".replace("\0", "%00")).status == 404


@pytest.mark.parametrize(
    "path",
    ["/?page=-1", "/?page=1e9", "/?min=x", "/?sort=drop", "/?page=99999999999999999999", "/dialogue?of=run"],
)
def test_a_wrong_address_is_told_in_one_line(local: str, path: str) -> None:
    assert ask(local, path).status == 400


@pytest.mark.parametrize(
    ("body", "status", "told"),
    [
        ("[" * 100_000, 400, "not an annotation"),
        ('{"run":"run","episode_id":"a#0","turn":1e99,"mark":"hurt"}', 400, "turn"),
        ('{"run":"run","episode_id":"a#0","turn":-1,"mark":"hurt"}', 400, "turn"),
        ('{"run":"run","episode_id":"a#0","turn":9,"mark":"hurt"}', 400, "no turn 9"),
        ('{"run":"run","episode_id":"a#0","turn":0,"mark":"<b>"}', 400, "mark"),
        ('{"run":"../run","episode_id":"a#0","turn":0,"mark":"hurt"}', 404, "there is no dialogue"),
        ("a" * 2_000_000, 413, "too long"),
    ],
)
def test_a_mark_that_is_none_is_refused_in_one_line(local: str, body: str, status: int, told: str) -> None:
    connection = http.client.HTTPConnection(urlsplit(local).netloc, timeout=60)
    connection.request("POST", "/api/annotations", body, {"Content-Type": "application/json"})
    answer = connection.getresponse()
    assert answer.status == status
    assert told in json.loads(answer.read())["error"]
    connection.close()
