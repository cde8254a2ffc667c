"""Studies as they are written: what is inherited, what is refused, what a file takes from another."""

from pathlib import Path

import pytest

from sweetrl.errors import ConfigError
from sweetrl.settings import Recipe, Study, load_experiment, load_study

LEAST = """
output = "run"
[tasks]
train = "mini-backend:train:4:{seed}"
test = "mini-backend:test:4:{seed}"
[agent]
model = "mini"
[collaborator]
model = "colleague"
[critic]
prompt = "privileged-mini"
learning_rate = 1e-3
no_reference = true
[turn_pairs]
pairs = 2
[policy]
epochs = 3
beta = 0.5
[critics.sweet]
no_reference = false
[critics.other]
[methods.base]
algorithm = "none"
[methods.sweet]
algorithm = "sweet"
critic = "sweet"
policy = { beta = 1.0 }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "study.toml"
    path.write_text(LEAST)
    return path


def complaint(path: Path, *changes: str) -> str:
    with pytest.raises(ConfigError) as caught:
        load_experiment(path, changes)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_a_file_with_methods_is_a_study_and_one_without_a_recipe(file: Path) -> None:
    assert isinstance(load_experiment(file), Study)
    file.write_text(LEAST.partition("[critics")[0].replace("[critic]", "[critic]\nmodel='m'"))
    assert isinstance(load_experiment(file, ["policy.model=m"]), Recipe)


def test_methods_and_critics_inherit_what_they_do_not_say(file: Path) -> None:
    study = load_study(file)
    assert (study.methods["sweet"].policy.beta, study.methods["sweet"].policy.epochs) == (1.0, 3)
    assert study.methods["base"].policy.beta == 0.5
    assert study.methods["sweet"].turn_pairs.pairs == 2
    assert (study.critics["sweet"].no_reference, study.critics["other"].no_reference) == (False, True)
    assert study.critics["sweet"].learning_rate == 1e-3


def test_a_change_of_the_shared_section_reaches_all_that_do_not_say_otherwise(file: Path) -> None:
    study = load_study(file, ["policy.beta=9", "methods.sweet.policy.epochs=7"])
    assert (study.methods["base"].policy.beta, study.methods["sweet"].policy.beta) == (9.0, 1.0)
    assert (study.methods["base"].policy.epochs, study.methods["sweet"].policy.epochs) == (3, 7)


def test_all_seeds_share_the_tasks_that_they_are_evaluated_on(file: Path) -> None:
    study = load_study(file, ["seed=5", "seeds=3"])
    assert list(study.run_seeds) == [5, 6, 7]
    assert study.evaluation_tasks() == "mini-backend:test:4:5"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ("methods.sweet.critc=x", "methods.sweet.critc: unknown, did you mean critic?"),
        (
            "methods.sweet.critic=swet",
            "methods.sweet.critic: there is no 'swet' to take; did you mean 'sweet'?",
        ),
        (
            "methods.sweet.against=bas",
            "methods.sweet.against: there is no 'bas' to take; did you mean 'base'?",
        ),
        (
            "methods.sweet.init_from=base",
            "methods.sweet.init_from: 'base' is not a method before it that trains",
        ),
        (
            "methods.sweet.init_from=rtf",
            "methods.sweet.init_from: there is no 'rtf' to take; there are none",
        ),
        ("methods.base.init_from=sweet", "methods.base: the algorithm 'none' has no use for init_from"),
        ('methods.x={algorithm=""}', "methods.x.algorithm: Expected `str` of length >= 1"),
        ("methods.x={}", "methods.x.algorithm: missing"),
        ("methods={}", "methods: there are none"),
        ("methods.base=3", "methods.base: Expected `object`"),
        ("methods.base.policy.beta=0", "methods.base.policy.beta: Expected `float` > 0"),
        ("method.base.algorithm=none", "method: unknown, did you mean methods?"),
        ("critics.A={}", "critics.A: a name is a folder"),
        ("critics.sweet.lerning_rate=1", "critics.sweet.lerning_rate: unknown, did you mean learning_rate?"),
        ("seeds=0", "seeds: Expected `int` >= 1"),
        ("seed=-1", "seed: Expected `int` >= 0"),
        ("evaluation.on=validation", "evaluation.on: there are no tasks.validation"),
        ("agent.model=openai:x@http://y/v1", "agent.model: a study trains it"),
        ('best_of={n=[1], critics=["swet"]}', "best_of.critics: there is no 'swet' to take"),
        ('best_of={n=[0], critics=["sweet"]}', "best_of.n: Expected `int` >= 1"),
        (
            'sizes={tasks=["t"], methods=["base"]}',
            "sizes.methods: there is no 'base' to take; there are sweet",
        ),
        ('off_policy={model="mini", methods=["x"]}', "off_policy.methods: there is no 'x'"),
        ('credit={tasks="t", turns=1, replays=1, critics=[]}', "credit.replays: Expected `int` >= 2"),
    ],
)
def test_what_is_wrong_is_named_by_its_key(file: Path, change: str, said: str) -> None:
    assert said in complaint(file, change)


def test_the_words_of_the_first_edition_are_still_read(file: Path) -> None:
    more = '[methods.more]\nlearner = "sweet"\ncritic = "sweet"\nstart = "sweet"\n'
    file.write_text(LEAST.replace("algorithm =", "learner =") + more)
    study = load_study(file)
    assert [each.algorithm for each in study.methods.values()] == ["none", "sweet", "sweet"]
    assert study.methods["more"].init_from == "sweet"
    assert load_study(file, ["methods.more.start="]).methods["more"].init_from is None
    assert load_study(file, ["methods.base.algorithm=rft"]).methods["base"].algorithm == "rft"


def test_an_oracle_cannot_judge_dialogues_that_it_did_not_replay(file: Path) -> None:
    oracle = ("critics.o.replays=2", 'best_of={n=[2], critics=["o"]}')
    assert "best_of.critics: there is no 'o' to take" in complaint(file, *oracle)


def test_all_faults_are_told_at_once(file: Path) -> None:
    message = complaint(file, "seeds=0", "methods.sweet.policy.bta=1", "tasks.test=")
    assert all(part in message for part in ("seeds:", "did you mean beta?", "tasks.test: missing"))


# ---------------------------------------------------------------- one file and another


def test_a_file_has_what_it_extends_but_for_what_it_says_itself(file: Path) -> None:
    other = file.parent / "other.toml"
    other.write_text(
        'extends = "study.toml"\nseeds = 2\n[policy]\nbeta = 7.0\n[methods.dpo]\nalgorithm = "dpo"\n'
    )
    study = load_study(other)
    assert (study.seeds, study.output) == (2, "run")
    assert (study.methods["base"].policy.beta, study.methods["base"].policy.epochs) == (7.0, 3)
    assert list(study.methods) == ["base", "sweet", "dpo"]


def test_recipes_that_extend_one_another_in_a_circle_are_refused(tmp_path: Path) -> None:
    for name, other in (("a", "b"), ("b", "a")):
        (tmp_path / f"{name}.toml").write_text(f'extends = "{other}.toml"')
    assert "in a circle" in complaint(tmp_path / "a.toml")


@pytest.mark.parametrize(
    ("text", "said"), [("extends = 3", "write the name"), ('extends = "no.toml"', "no such recipe")]
)
def test_what_cannot_be_extended_is_said(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "a.toml").write_text(text)
    assert said in complaint(tmp_path / "a.toml")
