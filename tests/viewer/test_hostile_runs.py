"""The run folder of a stranger: nothing in it hangs the viewer, stops it, leads out of the folder or to the network."""

import http.client
import json
import os
import socket
import subprocess
import sys
import urllib.parse
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from report.samples import credit, episode, png, verdict
from sweetrl.domains.sources import load_tasks
from sweetrl.errors import UsageError
from sweetrl.types import Annotation
from sweetrl.viewer import secrets
from sweetrl.viewer.annotations import append_annotation
from sweetrl.viewer.queries import Query
from sweetrl.viewer.secrets import Secrets
from sweetrl.viewer.sources import parse_words
from viewer.stored_runs import indexed, served, write_records, write_run, write_tasks, write_training

DEEP = b"[" * 200_000
EPISODE = msgspec.json.encode(episode("b"))


def appending(name: str, content: bytes) -> Callable[[Path], object]:
    def append(folder: Path) -> None:
        (folder / name).parent.mkdir(exist_ok=True)
        with (folder / name).open("ab") as file:
            file.write(content + b"\n")

    return append


def pipes(folder: Path) -> None:
    for name in ("annotations.jsonl", "log.jsonl", "metrics.json", "more.jsonl", "run.json", "tasks.jsonl"):
        os.mkfifo(folder / name)
    (folder / "sweetrl.json").write_text("{}")


def devices(folder: Path) -> None:
    (folder / "screenshots").mkdir()
    for name in ("more.jsonl", "metrics.json", "run.json", f"screenshots/{'0' * 64}.png"):
        (folder / name).symlink_to("/dev/zero")


def naming_tasks(*sources: str) -> Callable[[Path], object]:
    journal = [{"arguments": ["rollout", "--tasks", source]} for source in sources]
    return appending("run.json", json.dumps(journal).encode())


def trained(log: bytes) -> Callable[[Path], object]:
    def write(folder: Path) -> None:
        write_training(folder / "model", 3)
        (folder / "model" / "log.jsonl").write_bytes(log + b"\n")

    return write


def judged(**fields: object) -> bytes:
    """A line of credit that says anything."""
    [record, _] = credit("a", [0.0, 0.0])
    return json.dumps(msgspec.to_builtins(record) | fields).encode()


def scored(**fields: object) -> bytes:
    return json.dumps(msgspec.to_builtins(verdict("a", 1.0)) | fields).encode()


def called(name: str) -> bytes:
    return msgspec.json.encode(msgspec.structs.replace(episode("b"), task_id=name))


RUNS: dict[str, Callable[[Path], object]] = {
    "pipes": pipes,
    "devices": devices,
    "a folder called like a file": lambda folder: (folder / "more.jsonl").mkdir(),
    "names that are not UTF-8": lambda folder: write_run(folder / "odd\udcff", {"c": 1.0}),
    "names with markup": lambda folder: write_run(folder / "\n<b>&#x22;", {"c": 1.0}),
    "tasks that are no file": naming_tasks("\0", "a" * 5000, "/dev/zero", "/", "backend:test", "hf://datasets/a/b/c"),
    "a deep journal": appending("run.json", DEEP),
    "a deep record": appending("episodes.jsonl", EPISODE[:-1] + b',"x":' + DEEP),
    "deep metrics": appending("metrics.json", DEEP),
    "a deep card": appending("model/sweetrl.json", DEEP),
    "deep annotations": appending("annotations.jsonl", DEEP),
    "a deep log": trained(b'{"step":1,"loss":' + DEEP),
    "a log that is not UTF-8": trained(b'{"step":1,"\xff":1}'),
    "a log of huge numbers": trained(b'{"step":1,"loss":%s}\n{"step":%s,"loss":1}' % (b"9" * 400, b"9" * 400)),
    "a huge turn": appending("credit.jsonl", judged(turn=2**80)),
    "a turn below zero": appending("credit.jsonl", judged(turn=-1, advantage=-9.0)),
    "a huge advantage": appending("credit.jsonl", judged(turn=7, advantage=-1.7e308)),
    "a huge reward": appending("verdicts.jsonl", scored(reward=1e300)),
    "no reward and no reason": appending("verdicts.jsonl", scored(reward=None)),
    "a success without a reward": appending("verdicts.jsonl", scored(reward=None, success=True)),
    "a huge attempt": appending("episodes.jsonl", EPISODE.replace(b'"attempt":0', b'"attempt":%d' % 2**80)),
    "a huge id": appending("episodes.jsonl", called("b" * 100_000)),
    "an id of zeros": appending("episodes.jsonl", called("b\0\0")),
    "a huge ending": appending("episodes.jsonl", EPISODE.replace(b"answered", b"a" * 100_000)),
}  # fmt: skip


def asked(site: str, path: str) -> tuple[int, bytes]:
    """The answer of a server, with all of its body."""
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(site).netloc, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    found = answer.status, answer.read()
    connection.close()
    return found


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")
def test_the_rest_of_a_run_is_shown_whatever_lies_beside_it(tmp_path: Path, name: str) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0})
    RUNS[name](folder)
    with served([str(folder)], tmp_path / "i.sqlite") as site:
        for path in ("/", "/?sort=hurt", "/metrics", "/api/runs", "/api/metrics"):
            status, body = asked(site, path)
            assert status == 200
            assert len(body) < 100_000
        _, found = asked(site, "/api/dialogues")
        for row in [{"run": "run", "id": "a#0"}, *json.loads(found)["dialogues"]]:
            for hidden in ("0", "1"):
                words = urllib.parse.urlencode({"of": row["run"], "id": row["id"], "hidden": hidden})
                status, _ = asked(site, f"/dialogue?{words}")
                assert status == 200
        assert asked(site, f"/picture?of=run&name={'0' * 64}")[0] == 404


def test_a_line_longer_than_any_record_is_counted_and_what_follows_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sweetrl.viewer.index.MAX_LINE_BYTES", 3 << 20)
    folder = write_run(tmp_path / "run", {"a": 1.0})
    appending("episodes.jsonl", b'{"schema":"episode/1","x":"' + b"a" * (7 << 20) + b'"}\n' + EPISODE)(folder)
    reader = indexed(folder)
    assert [row.id for row in reader.rows(Query())] == ["a#0", "b#0"]
    assert reader.unreadable_lines()[str(folder / "episodes.jsonl")] >= 1


@pytest.mark.parametrize("source", ["hf://datasets/a/b/c.jsonl", "hf:/datasets/a/b/c.jsonl"])
def test_nothing_is_fetched_because_a_run_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str
) -> None:
    monkeypatch.setattr(secrets, "load_tasks", lambda *_: pytest.fail("tasks were asked for"))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("the network was asked"))
    naming_tasks(source)(tmp_path)
    assert Secrets((), [tmp_path]).of("a") is None


def test_a_run_cannot_have_any_number_of_tasks_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(secrets, "MOST_TASKS", 30)
    naming_tasks(*(f"mini-backend:test:999999999:{seed}" for seed in range(100)))(tmp_path)
    kept = Secrets((), [tmp_path])
    assert kept.of("no such task") is None
    assert len(kept._tasks) == 30


def test_a_card_names_tasks_and_is_itself_not_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: pytest.fail("the network was asked"))
    os.mkfifo(tmp_path / "pipe.run.json")
    (tmp_path / "deep.run.json").write_bytes(DEEP)
    for number, source in enumerate(("hf://datasets/a/b/c.jsonl", "/etc/passwd", "mini-backend:test:3")):
        (tmp_path / f"{number}.run.json").write_text(json.dumps({"source": source}))
    task = next(iter(load_tasks("mini-backend:test:3").values()))
    hidden = Secrets((), (), lambda: [tmp_path]).of(task.id)
    assert hidden is not None
    assert hidden.task == task
    assert "root:" not in caplog.text


def test_tasks_of_a_run_that_begins_later_are_found(tmp_path: Path) -> None:
    kept = Secrets((), [tmp_path])
    assert kept.of("a") is None
    write_tasks(tmp_path / "tasks.jsonl", ["a"])
    assert kept.of("a") is not None


def test_a_mark_is_not_written_through_a_link_or_into_a_pipe(tmp_path: Path) -> None:
    mark = Annotation(episode_id="a#0", task_id="a", turn=0, mark="hurt")
    mine = tmp_path / "mine"
    mine.write_text("important")
    for name in ("link", "pipe"):
        (tmp_path / name).mkdir()
    (tmp_path / "link" / "annotations.jsonl").symlink_to(mine)
    os.mkfifo(tmp_path / "pipe" / "annotations.jsonl")
    with pytest.raises(UsageError, match="it is a link"):
        append_annotation(tmp_path / "link", mark)
    with pytest.raises(UsageError, match="no ordinary file"):
        append_annotation(tmp_path / "pipe", mark)
    assert mine.read_text() == "important"


@pytest.mark.parametrize(
    "content",
    [
        b"root:x:0:0:root:/root:/bin/bash\n",
        png(1, 1, (0, 0, 0))[:16] + b"\xff" * 8,
        png(1, 1, (0, 0, 0))[:16] + (20_000).to_bytes(4) * 2,
    ],
    ids=["no picture", "a size that is none", "400 megapixels"],
)
def test_a_link_beside_the_screenshots_gives_away_no_other_file(tmp_path: Path, content: bytes) -> None:
    folder = write_run(tmp_path / "run", {"a": 1.0})
    (tmp_path / "secret").write_bytes(content)
    (folder / "screenshots").mkdir()
    (folder / "screenshots" / f"{'0' * 64}.png").symlink_to(tmp_path / "secret")
    huge = folder / "screenshots" / f"{'1' * 64}.png"
    huge.write_bytes(png(1, 1, (0, 0, 0)))
    os.truncate(huge, 40 << 30)
    with served([str(folder)], tmp_path / "i.sqlite") as site:
        for name in ("0" * 64, "1" * 64):
            status, body = asked(site, f"/picture?of=run&name={name}")
            assert status == 404
            assert b"root" not in body


def test_a_pipe_or_a_name_that_is_not_utf8_is_refused_in_one_line(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="no such folder or file"):
        parse_words([str(tmp_path / "pipe")])
    (tmp_path / "odd\udcff").mkdir()
    with pytest.raises(UsageError, match="not UTF-8"):
        parse_words([str(tmp_path / "odd\udcff")])


def test_the_terminal_is_told_of_no_trouble_and_no_token(tmp_path: Path) -> None:
    """A real process, broken requests and all: one line each for what cannot be shown, and no traceback."""
    folder = write_run(tmp_path / "run", {"a": 1.0})
    pipes(folder)
    write_records(folder / "episodes.jsonl", [episode("b")], "ab")
    words = ["view", str(folder), "--no-browser", "--json", "--port", "0"]
    process = subprocess.Popen(
        [sys.executable, "-m", "sweetrl", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"XDG_CACHE_HOME": str(tmp_path / "cache")},
    )
    assert process.stdout is not None
    address = urllib.parse.urlsplit(json.loads(process.stdout.readline())["address"])
    token = address.query.partition("=")[2]
    head = f"Host: {address.netloc}\r\nAuthorization: Bearer {token}\r\n"
    broken = (
        f"POST /api/annotations HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: 9\r\n\r\n[",
        f"GET /?token={token} HTTP/1.1\r\nHost: {address.netloc}\r\n\r\n",
        f"GET /?token={token}\x01 HTTP/9\r\n\r\n",
        f"GET /api/state HTTP/1.1\r\n{head}Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        "\x16\x03\x01\x02\x00",
    )
    for text in broken:
        with socket.create_connection((address.hostname or "", address.port or 0), timeout=60) as connection:
            connection.sendall(text.encode("latin-1"))
            connection.shutdown(socket.SHUT_WR)
            assert b" 101 " not in connection.recv(100)
    assert asked(address.geturl(), "/")[0] == 401
    process.terminate()
    _, errors = process.communicate(timeout=60)
    assert "Traceback" not in errors
    assert token not in errors
