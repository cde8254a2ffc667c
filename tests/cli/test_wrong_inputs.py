"""Wrong inputs are refused with exit code 2 and one line: the thing, the reason, the next step. Nothing is written."""

import gzip
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import pytest

from conftest import Finished
from recipe_files import write_recipe
from report.samples import records
from sweetrl.errors import installing


class Wrong(NamedTuple):
    words: str
    """The command."""
    thing: str
    reason: str
    step: str


TALK = "--agent scripted:curious --collaborator scripted:unsure -o out"
HELD = "--tasks tasks.jsonl --episodes run/episodes.jsonl"
ALONE = "evaluate --tasks tasks.jsonl -o out --single-turn --agent"
WITH = "evaluate --tasks tasks.jsonl -o out --agent scripted:curious --collaborator"

WRONG = [
    # commands and options
    Wrong("evalute --tasks tasks.jsonl", "'evalute'", "No such command", "Did you mean 'evaluate'"),
    Wrong("train dop --model mini -o m", "'dop'", "No such command", "Did you mean 'dpo'"),
    Wrong("evaluate --taks tasks.jsonl", "--taks", "No such option", "--tasks"),
    Wrong("evaluate --agent mini -o out", "'--tasks'", "Missing option", "sweetrl evaluate --help"),
    Wrong(f"evaluate --tasks tasks.jsonl --limit 0 {TALK}", "'--limit'", "greater than or equal", "see `"),
    Wrong(f"evaluate --agent-temperature hot {TALK}", "'--agent-temperature'", "valid number", "see `"),
    Wrong("quickstart --fast --full", "--fast and --full", "contradict", "give one of them"),
    Wrong("quickstart --seed -1", "'--seed'", "greater than or equal to 0", "see `"),
    # tasks
    Wrong(f"evaluate --tasks gone.jsonl {TALK}", "gone.jsonl", "no such file", "give the path"),
    Wrong(f"evaluate --tasks task.jsonl {TALK}", "task.jsonl", "no such file", "did you mean tasks.jsonl?"),
    Wrong(f"evaluate --tasks no/tasks.jsonl {TALK}", "no/tasks.jsonl", "no such file", "no folder no"),
    Wrong(f"evaluate --tasks folder {TALK}", "folder", "is a folder", "name a file in it"),
    Wrong(f"evaluate --tasks empty.jsonl {TALK}", "empty.jsonl", "has no tasks", "give a file with"),
    Wrong(f"evaluate --tasks broken.jsonl {TALK}", "broken.jsonl:2", "not valid JSON", "fix or remove"),
    Wrong(f"evaluate --tasks strange.jsonl {TALK}", "strange.jsonl:1", "neither a sweetrl task", "--domain"),
    Wrong(f"evaluate --tasks twice.jsonl {TALK}", "twice.jsonl:4", "was used before", "ids must differ"),
    Wrong(f"evaluate --tasks mini-backend:test:x {TALK}", "mini-backend:test:x", "write", ":SPLIT:N"),
    Wrong(f"evaluate --tasks mini-backend:tset:3 {TALK}", "'tset'", "has no split", "it has train"),
    Wrong(f"evaluate --tasks mini-bakend:test:3 {TALK}", "mini-bakend", "no generator", "did you mean"),
    Wrong("tasks make mini-bakend -o t.jsonl", "'mini-bakend'", "no generator", "there is mini-backend"),
    Wrong("tasks show tasks.jsonl t9", "'t9'", "no task has the id", "'t0'"),
    Wrong("tasks export tasks.jsonl -o page.html", "page.html", "exists already", "--force"),
    Wrong(f"evaluate --tasks tasks.jsonl --domain nosuch {TALK}", "'nosuch'", "not installed", "--domain"),
    Wrong(f"evaluate --tasks tasks.jsonl --domain no.where:X {TALK}", "no.where:X", "No module", "give MOD"),
    Wrong(f"evaluate --tasks list.jsonl {TALK}", "list.jsonl:1", "Expected `object`, got `array`", "fix or"),
    Wrong(f"evaluate --tasks pretty.jsonl {TALK}", "pretty.jsonl:1", "must be one line", "fix or remove"),
    Wrong(f"evaluate --tasks cut.jsonl {TALK}", "cut.jsonl:4", "was the file cut off?", "fix or remove"),
    Wrong(f"evaluate --tasks tasks.gz {TALK}", "tasks.gz", "compressed with gzip", "unpack it first"),
    Wrong(f"evaluate --tasks utf16.jsonl {TALK}", "utf16.jsonl", "is UTF-16 text", "save it as UTF-8"),
    Wrong(f"evaluate --tasks newer.jsonl {TALK}", "newer.jsonl:1", "another version", "make it anew"),
    Wrong(f"evaluate --tasks coloured.jsonl {TALK}", "coloured.jsonl:1", "field `colour`", "fix or remove"),
    Wrong(f"evaluate --tasks bare.jsonl {TALK}", "bare.jsonl:1", "required field `secret`", "fix or remove"),
    Wrong(f"evaluate --tasks homeless.jsonl {TALK}", "homeless.jsonl:1", "no field `domain`", 'add "domain"'),
    Wrong("run recipe.toml --set tasks.train=homeless.jsonl", "tasks.train", "no field `domain`", 'add "dom'),
    Wrong(f"evaluate --tasks untested.jsonl {TALK}", "`$.secret.tests`", "length >= 1", "fix or remove"),
    Wrong(f"evaluate --tasks run/episodes.jsonl {TALK}", "episode/1", "where task/2 was", "right file?"),
    Wrong(f"evaluate --tasks mini-backend:test:-3 {TALK}", "mini-backend:test:-3", "write", ":SPLIT:N:SEED"),
    Wrong(f"evaluate --tasks zip.jsonl {TALK}", "zip.jsonl", "is a zip archive", "unpack it first"),
    Wrong(f"evaluate --tasks rows.parquet {TALK}", "rows.parquet", "is a Parquet file", "as JSON"),
    Wrong(f"evaluate --tasks https://host/t.jsonl {TALK}", "https://host", "from an address", "download"),
    Wrong(f"evaluate --tasks numbered.jsonl {TALK}", "`$.id`", "Expected `str`, got `int`", "fix or remove"),
    Wrong(f"evaluate --tasks legal.jsonl {TALK}", "'legal'", "is not installed", "install the package"),
    Wrong("tasks make mini-backend:train:5 -o t.jsonl", "mini-backend:train:5", "no generator", "--n and"),
    Wrong("tasks make mini-backend --split nope -o t.jsonl", "'nope'", "has no split", "it has train"),
    Wrong("tasks import tasks.jsonl --n 2 -o t.jsonl", "--n", "are for websight", "--limit N"),
    Wrong("tasks write --model nosuch:x --topics page.html -o t.jsonl", "'nosuch'", "no kind of", "write op"),
    Wrong("tasks check tasks.jsonl --isolation none", "'none'", "is not one of", "see `"),
    # who talks
    Wrong(f"{ALONE} human", "'human'", "no model is called", "`sweetrl play`"),
    Wrong(f"{ALONE} scripted:", "'scripted:'", "lacks its model", "write scripted:NAME"),
    Wrong(f"{ALONE} openai:m@http://", "address", "no proper host", "write openai:MODEL"),
    Wrong(f"{ALONE} hf:weightless", "hf:weightless", "instantiate the backend tokenizer;", "give the folder"),
    Wrong(f"{ALONE} hf:folder", "hf:folder", "cannot load a language model", "give the folder of a model"),
    Wrong(
        f"{WITH} scripted:unsure --agent-prompt empty.jsonl", "empty.jsonl", "prompt is empty", "write one"
    ),
    Wrong(f"{WITH} scripted:unsure --agent-prompt folder", "folder", "where a file was", "name a file in it"),
    Wrong(f"{WITH} scripted:unsure --best-of 2 --critic value:folder", "folder", "not a critic", "train one"),
    Wrong("play --tasks gone.jsonl", "gone.jsonl", "no such file", "give the path"),
    Wrong("play --players 2", "--players", "for the browser", "add --web"),
    Wrong("play --agent mini", "the agent yourself", "you are", "leave out --agent"),
    Wrong("make-model mini -o page.html", "page.html", "exists already", "choose another folder"),
    Wrong(f"{ALONE} opnai:x", "'opnai'", "there is no kind of model", "did you mean"),
    Wrong(f"{ALONE} openai:", "'openai:'", "lacks its model", "write openai:MODEL"),
    Wrong(f"{ALONE} openai:m@host:80", "address", "lacks its scheme", "write openai:m@http://host:80/v1"),
    Wrong(f"{ALONE} openai:m@ftp://host", "address", "'ftp://'", "write openai:MODEL@http"),
    Wrong(f"{ALONE} openai:m@http://host:p/v1", "address", "malformed host or port", "write openai:MODEL"),
    Wrong(f"{ALONE} openai:gpt", "OpenAI's service", "needs a key", "set OPENAI_API_KEY"),
    Wrong(f"{ALONE} hf:./gone", "./gone", "no such folder", "give the folder of a model"),
    Wrong(f"{ALONE} scripted:me", "'me'", "there is no script", "there are babble"),
    Wrong("evaluate --tasks tasks.jsonl --agent scripted:curious -o out", "nobody", "to talk to", "give a"),
    Wrong(f"{WITH} colleague", "the colleague", "mini-backend tasks only", "give a model"),
    Wrong(f"{WITH} designer", "designer", "is for frontend tasks only", "choose another collaborator"),
    Wrong(f"{WITH} replay:gone.jsonl", "gone.jsonl", "no such file", "give the path"),
    Wrong(
        f"evaluate --tasks tasks.jsonl --single-turn {TALK}", "a single turn", "never replied", "leave out"
    ),
    Wrong(f"evaluate --tasks tasks.jsonl --best-of 3 {TALK}", "--best-of", "needs a critic", "--critic"),
    Wrong(f"{WITH} scripted:unsure --best-of 3 --critic nowhere", "nowhere", "no such folder", "give one"),
    Wrong(f"{WITH} scripted:unsure --agent-prompt gone.txt", "gone.txt", "no such file", "give the path"),
    Wrong(f"{WITH} scripted:unsure --agent-prompt latin.txt", "latin.txt", "not UTF-8 text", "save it"),
    Wrong(
        "evaluate --tasks tasks.jsonl --agent scripted:echo --single-turn -o page.html",
        "page.html",
        "cannot be written",
        "choose another output",
    ),
    Wrong(f"rollout --tasks tasks.jsonl --time-limit soon {TALK}", "'soon'", "not a time", "write seconds"),
    Wrong(f"rollout --tasks tasks.jsonl --max-cost 3 {TALK}", "--max-cost", "needs prices", "--price-agent"),
    Wrong(f"rollout --tasks tasks.jsonl --price-agent cheap {TALK}", "'cheap'", "not a price", "write IN/"),
    Wrong(f"{WITH} scripted:unsure --agent-prompt fields.txt", "{nosuch}", "nothing fills", "it may have"),
    Wrong(f"{WITH} scripted:unsure --turn-limit 0", "'--turn-limit'", "greater than or equal to 1", "see `"),
    Wrong(f"{WITH} scripted:unsure --agent-temperature nan", "'--agent-temp", "greater than or", "see `"),
    Wrong(f"{ALONE} hf:page.html", "hf:page.html", "cannot load a language model", "not a valid JSON file"),
    Wrong("play --tasks mini-backend:nope:3", "'nope'", "has no split", "it has train"),
    Wrong("doctor --model nosuch:x", "'nosuch'", "there is no kind of model", "write openai:MODEL"),
    Wrong("make-model nosuch -o m", "'nosuch'", "there is no model", "there is mini"),
    # what was said and what it earned
    Wrong(f"score {HELD} -o folder", "folder", "is a folder", "name a file to write"),
    Wrong(
        f"score {HELD} -o run/episodes.jsonl", "run/episodes.jsonl", "was not written by", "choose another"
    ),
    Wrong(f"score {HELD} -o v.jsonl --shard 3/2", "--shard 3/2", "write I/N", "for example 1/8"),
    Wrong(f"score {HELD} -o v.jsonl --turn-cost nan", "'--turn-cost'", "less than or equal to 1", "see `"),
    Wrong("score --tasks tasks.jsonl --episodes doubled.jsonl -o v", "t0#0", "there twice", "remove one"),
    Wrong("score --tasks tasks.jsonl --episodes run -o v.jsonl", "run", "is a folder", "name a file in it"),
    Wrong(
        "score --tasks tasks.jsonl --episodes run/verdicts.jsonl -o v",
        "verdict/1",
        "where episode/1",
        "is it",
    ),
    Wrong("score --tasks tasks.jsonl --episodes typed.jsonl -o v", "`$.attempt`", "Expected `int`", "fix or"),
    Wrong(
        f"pairs {HELD} --verdicts nan.jsonl -o p.jsonl", "nan.jsonl:1", "NaN and Infinity", "write null or"
    ),
    Wrong(f"pairs {HELD} --verdicts doubled_verdicts.jsonl -o p", "t0#0", "two verdicts", "of one scorer"),
    Wrong("credit page.html", "page.html:1", "not a file of JSON", "expected lines such as"),
    Wrong(
        "credit chat.jsonl --outcome-field score", '"score"', "no dialogue has an outcome", "--outcome-field"
    ),
    Wrong("credit chat.jsonl --outcome-field note", "note must be true", "found the text 'good'", "expected"),
    Wrong("credit chat.jsonl", "1 successes and 0 failures", "learning needs 5 of each", "--success-at"),
    Wrong("credit chat.jsonl --critic zero:mini", "zero:mini", "has no reference", "add one"),
    Wrong("credit tasks.jsonl", "tasks.jsonl:1", "schema task/2, where episode/1", "is it the right file?"),
    Wrong("credit silent.jsonl", "silent.jsonl", "no dialogue in which the agent speaks", "give chats with"),
    Wrong("credit half.json", "half.json", "not valid JSON", "fix"),
    Wrong("credit text.jsonl", "messages must be a list", "found the text 'hi'", "expected {"),
    Wrong("credit spoken.jsonl", "messages[0].content", "found the number 5", "expected {"),
    Wrong("credit calls.jsonl", "messages[1].tool_calls", "must be a list", "expected {"),
    Wrong("credit run", "run", "is a folder", "name a file in it"),
    Wrong("credit run/episodes.jsonl --critic folder", "folder", "not a critic", "train one"),
    Wrong("view page.html --no-browser", "page.html", "not a file of JSON", "expected lines such as"),
    Wrong(
        "episodes import card.json -o new", "card.json", "neither a dialogue as ColBench", "is it the right"
    ),
    Wrong("merge gone.jsonl -o m.jsonl", "gone.jsonl", "no such file", "give the path"),
    Wrong("select run/gone.jsonl --tasks tasks.jsonl -o new", "run/gone.jsonl", "no such file", "give the"),
    Wrong(
        "select run/episodes.jsonl --tasks mini-backend:test:2 -o new",
        "run/episodes.jsonl",
        "no record on these tasks",
        "give the tasks",
    ),
    Wrong("play --as nobody", "'--as': 'nobody'", "is not one of", "see `"),
    Wrong("make-model mini --steps 0 -o m", "'--steps'", "greater than or equal to 1", "see `"),
    Wrong("report run -o folder", "folder", "is a folder", "name a file to write"),
    Wrong("fairness --tasks tasks.jsonl --episodes half.jsonl", "half.jsonl:1", "cut off?", "fix or remove"),
    Wrong("tasks check run/episodes.jsonl", "episode/1", "where task/2 was expected", "right file?"),
    Wrong("compare run page.html", "page.html", "holds no verdicts.jsonl", "`sweetrl evaluate`"),
    Wrong("report folder -o r.html", "folder", "has no episodes.jsonl", "is it the folder of a run?"),
    Wrong("view gone", "gone", "no such folder or file", "give folders of runs"),
    Wrong("episodes show run/episodes.jsonl t9", "'t9'", "no dialogue has the id", "the first one is"),
    Wrong("merge run/episodes.jsonl -o m.jsonl", "run/episodes.jsonl", "is not a shard", "give files that"),
    Wrong("score --tasks tasks.jsonl -o v.jsonl", "--answers or --episodes", "either", "give"),
    Wrong(
        "score --tasks tasks.jsonl --answers answers.jsonl -o v.jsonl", "'nobody'", "not in --tasks", "give"
    ),
    Wrong(
        f"pairs {HELD} --verdicts run/verdicts.jsonl --margin 0.1 -o p", "'backend'", "no margin", "leave out"
    ),
    Wrong(f"pairs {HELD} --verdicts gone.jsonl -o p.jsonl", "gone.jsonl", "no such file", "give the path"),
    Wrong("compare run", "one run", "cannot be compared", "name two or more"),
    Wrong("compare run unscored", "unscored", "holds no verdicts.jsonl", "`sweetrl score`"),
    Wrong("report gone -o r.html", "gone", "no such folder", "give folders of runs"),
    Wrong("report unscored -o r.html", "unscored", "has no verdicts.jsonl", "`sweetrl score`"),
    Wrong("report run run -o r.html", "a run", "given twice", "give each once"),
    Wrong("report run -o page.html", "page.html", "exists already", "--force"),
    Wrong("compare run run", "a run", "with itself", "name each folder once"),
    Wrong(
        "view run --host nosuch.invalid --no-browser",
        "nosuch.invalid",
        "cannot listen",
        "choose another --host",
    ),
    Wrong("play --web --consent gone.txt --port 0", "gone.txt", "no such file", "give the path"),
    Wrong("play --web --consent empty.jsonl --port 0", "empty.jsonl", "is empty", "leave out --consent"),
    Wrong("view run --tasks nosuch:test --no-browser", "nosuch:test", "no generator", "generators are"),
    Wrong("view run --tasks gone.jsonl --no-browser", "gone.jsonl", "no such file", "give the path"),
    Wrong("credit roles.jsonl", "messages[0].role", "found the text 'narrator'", "expected {"),
    Wrong("credit chat.jsonl --learn --critic length", "--critic length", "of its own", "leave out"),
    Wrong("episodes import page.html -o new", "page.html:1", "not a file of JSON", "expected lines such as"),
    Wrong("fairness --tasks mini-backend:test:2 --episodes run/episodes.jsonl", "t0", "not among", "--tasks"),
    Wrong(
        "turn-pairs --ranked empty.jsonl --episodes run/episodes.jsonl -o p.jsonl",
        "empty.jsonl",
        "has no records",
        "give a file that has some",
    ),
    Wrong(
        "turn-pairs --ranked run/verdicts.jsonl --episodes run/episodes.jsonl -o p.jsonl",
        "run/verdicts.jsonl:1",
        "where candidates/1 was expected",
        "is it the right file?",
    ),
    Wrong(
        "candidates --episodes run/episodes.jsonl --agent mini --fraction 0 -o c.jsonl",
        "run/episodes.jsonl",
        "no dialogue is chosen",
        "raise --fraction",
    ),
    # training and whole experiments
    Wrong(
        f"train rft {HELD} --verdicts run/verdicts.jsonl --model mini --learning-rate -1 -o m",
        "learning_rate",
        "Expected `float` > 0.0",
        "give another value",
    ),
    Wrong(
        f"train rft {HELD} --verdicts run/verdicts.jsonl --model folder -o m",
        "folder",
        "cannot load a causal language model",
        "give the folder of a model",
    ),
    Wrong(
        f"train rft {HELD} --verdicts lost_all.jsonl --model mini -o m",
        "no dialogue succeeded",
        "nothing to imitate",
        "roll out more",
    ),
    Wrong(
        "run recipe.toml --set agent.model=mini-orcle", "agent.model", "no agent 'mini-orcle'", "did you mean"
    ),
    Wrong(
        "run recipe.toml --set collaborator.model=coleague", "collaborator.model", "no coll", "did you mean"
    ),
    Wrong(
        "run recipe.toml --set domain=legal", "'legal'", "is not installed", "SWEETRL_DOMAINS=MODULE:OBJECT"
    ),
    Wrong(
        f"train rft {HELD} --verdicts run/verdicts.jsonl --model mini --wandb -o m",
        "--wandb",
        "needs the package wandb",
        "pip install wandb",
    ),
    Wrong("run bare.toml", "tasks: missing", "agent: missing", "collaborator: missing"),
    Wrong("run recipe.toml --set policy.launcher=torchrun", "launcher", "got `str`", "write a list"),
    Wrong("run recipe.toml --set tasks.train=[1]", "tasks.train", "got `array`", "write text in quotes"),
    Wrong("run circle.toml", "circle.toml", "extend one another in a circle", "extends"),
    Wrong("run recipe.toml --set executor=slurm", "executor", "'slurm'", "write local or ray"),
    Wrong("run recipe.toml --set policy.learning_rate=fast", "learning_rate", "got `str`", "write a number"),
    Wrong("run recipe.toml --set domain=frontend", "tasks.train", "has backend tasks", "domain ="),
    Wrong(
        f"train rft {HELD} --verdicts run/verdicts.jsonl --model openai:gpt -o m",
        "openai:",
        "cannot be trained",
        "write hf:PATH_OR_ID",
    ),
    Wrong(
        f"train rft {HELD} --verdicts run/verdicts.jsonl --model ./gone -o m",
        "./gone",
        "no such folder",
        "give",
    ),
    Wrong("run gone.toml", "gone.toml", "no such recipe", "give the path of a TOML file"),
    Wrong(
        f"train rft {HELD} --verdicts run/verdicts.jsonl --model mini -o page.html",
        "page.html",
        "a file is where a folder must be",
        "choose another",
    ),
    Wrong(
        f"train rft {HELD} --verdicts run/verdicts.jsonl --model mini -o folder_of_mine",
        "folder_of_mine",
        "is not empty and no training run",
        "choose another",
    ),
    Wrong("run folder", "folder", "is a directory", "give the path of a TOML file"),
    Wrong("run latin.txt", "latin.txt", "not valid TOML", "fix it"),
    Wrong("quickstart --seed 1.5", "'--seed'", "valid integer", "see `"),
    Wrong("run broken.toml", "broken.toml", "not valid TOML", "fix it"),
    Wrong("run recipe.toml --set algorithm=swet", "'swet'", "no algorithm", "did you mean 'sweet'?"),
    Wrong("run recipe.toml --set candidats.n=3", "candidats", "unknown", "did you mean candidates?"),
    Wrong("run recipe.toml --set seed=x", "seed", "Expected `int`, got `str`", "write a number"),
    Wrong("run recipe.toml --set seed", "--set seed", "write", "key=value"),
    Wrong("run recipe.toml --only methods", "recipe.toml", "not a study", "leave out --only"),
    Wrong("run recipe.toml --set episodes=gone.jsonl", "gone.jsonl", "no such file", "leave out episodes"),
    Wrong("run recipe.toml --set tasks.train=gone.jsonl", "tasks.train", "no such file", "give the path"),
    Wrong("run recipe.toml --set policy.model=openai:gpt", "policy.model", "cannot be trained", "write hf:"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with some sound files and some that are not, in which the commands are given."""
    write_recipe(tmp_path)
    tasks = (tmp_path / "tasks.jsonl").read_text()
    first = tasks.partition("\n")[0] + "\n"
    for name, content in {
        "broken.jsonl": first + "{oops\n",
        "empty.jsonl": "",
        "strange.jsonl": '{"colour": "blue"}\n',
        "twice.jsonl": tasks + tasks,
        "answers.jsonl": '{"task_id": "nobody", "answer": "x"}\n',
        "page.html": "mine",
        "list.jsonl": "[1, 2]\n",
        "pretty.jsonl": '{\n  "id": 1\n}\n',
        "cut.jsonl": tasks + first[:40],
        "newer.jsonl": first.replace("task/2", "task/9"),
        "coloured.jsonl": first.replace('"id"', '"colour":1,"id"', 1),
        "bare.jsonl": '{"schema": "task/2", "id": "a", "domain": "backend", "request": "?"}\n',
        "untested.jsonl": '{"id": "a", "domain": "backend", "request": "?", '
        '"secret": {"reference": "x", "tests": {}}}\n',
        "homeless.jsonl": '{"id": "a", "request": "?", "secret": {"reference": "x", "tests": {"t": "f()"}}}\n',
        "silent.jsonl": '{"conversations": [{"role": "user", "content": "a"}]}\n',
        "text.jsonl": '{"messages": "hi"}\n',
        "spoken.jsonl": '{"messages": [{"role": "user", "content": 5}]}\n',
        "calls.jsonl": '{"messages": [{"role": "user", "content": "a"}, '
        '{"role": "assistant", "content": null, "tool_calls": "x"}]}\n',
        "half.json": '[{"messages": [{"role": "user", "con',
        "half.jsonl": '{"schema":"episode/1","task_id":"t0","att',
        "weightless/config.json": "{}",
        "card.json": '{"schema": "run/1", "command": "score"}\n',
        "bare.toml": 'output = "x"\nalgorithm = "sweet"\n',
        "numbered.jsonl": first.replace('"t0"', "7"),
        "legal.jsonl": first.replace('"backend"', '"legal"', 1),
        "roles.jsonl": '{"messages": [{"role": "narrator", "content": "a"}]}\n',
        "circle.toml": 'extends = "circle.toml"\n',
        "fields.txt": "Use {nosuch}.",
        "chat.jsonl": '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], '
        '"note": "good", "success": true}\n',
        "folder_of_mine/notes.txt": "mine",
        "broken.toml": "output = \n",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    with zipfile.ZipFile(tmp_path / "zip.jsonl", "w") as archive:
        archive.writestr("tasks.jsonl", tasks)
    (tmp_path / "rows.parquet").write_bytes(b"PAR1\x15\x04")
    (tmp_path / "tasks.gz").write_bytes(gzip.compress(tasks.encode()))
    (tmp_path / "utf16.jsonl").write_bytes(tasks.encode("utf-16"))
    (tmp_path / "latin.txt").write_bytes("caf\xe9".encode("latin-1"))
    (tmp_path / "folder").mkdir()
    for name, items in zip(("episodes", "verdicts"), records({"t0": 1.0, "t1": 0.0}), strict=True):
        for run in ("run", "unscored") if name == "episodes" else ("run",):
            (tmp_path / run).mkdir(exist_ok=True)
            lines = b"".join(msgspec.json.encode(each) + b"\n" for each in items)
            (tmp_path / run / f"{name}.jsonl").write_bytes(lines)
        again = "doubled" if name == "episodes" else "doubled_verdicts"
        (tmp_path / f"{again}.jsonl").write_bytes(lines + lines)
    said, scored = ((tmp_path / "run" / f"{name}.jsonl").read_text() for name in ("episodes", "verdicts"))
    (tmp_path / "typed.jsonl").write_text(said.replace('"attempt":0', '"attempt":"zero"'))
    (tmp_path / "lost_all.jsonl").write_text(scored.replace('"success":true', '"success":false'))
    (tmp_path / "nan.jsonl").write_text(scored.replace('"reward":1.0', '"reward":NaN'))
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return tmp_path


def contents(folder: Path) -> dict[Path, bytes]:
    """All files and folders below a folder."""
    return {path: path.read_bytes() if path.is_file() else b"" for path in folder.rglob("*")}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.words[:60])
def test_a_wrong_input_is_one_line_with_the_thing_the_reason_and_the_next_step(
    sweetrl: Callable[..., Finished], folder: Path, wrong: Wrong
) -> None:
    before = contents(folder)
    ended = sweetrl(*wrong.words.split())
    assert ended.code == 2, ended.err
    assert contents(folder) == before
    assert ended.out == ""
    [line] = ended.err.splitlines()
    assert line.startswith("error: ")
    missing = [part for part in wrong[1:] if part not in line]
    assert missing == [], line


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "words",
    [
        "tasks check mini-frontend:test:1",
        "rollout --tasks mini-frontend:test:1 --agent scripted:echo --collaborator designer -o out",
    ],
)
def test_without_playwright_pages_are_refused_in_one_line(
    sweetrl: Callable[..., Finished], monkeypatch: pytest.MonkeyPatch, words: str
) -> None:
    monkeypatch.setitem(sys.modules, "playwright", None)
    ended = sweetrl(*words.split())
    assert ended.code == 2
    assert ended.err == f"error: showing pages needs an optional package: {installing('browser')}\n"


@pytest.mark.usefixtures("folder")
def test_without_torch_no_model_is_made_and_one_line_says_why(
    sweetrl: Callable[..., Finished], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "sweetrl.learning.mini", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    ended = sweetrl("make-model", "mini", "-o", "m")
    assert ended.code == 2
    assert ended.err == f"error: training a model needs an optional package: {installing('train')}\n"


def test_there_are_as_many_wrong_inputs_as_promised() -> None:
    assert len({wrong.words for wrong in WRONG}) == len(WRONG) >= 140
