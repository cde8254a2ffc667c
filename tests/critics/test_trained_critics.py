import asyncio
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel

from models.tiny_llama import save_tiny_llama, tiny_tokenizer
from sweetrl.critics import load_critic, open_critic
from sweetrl.critics.critic_type import CriticTools
from sweetrl.critics.zero_shot import load_zero_shot_critic
from sweetrl.domains.backend.domain import BACKEND
from sweetrl.domains.backend.secret import BackendSecret
from sweetrl.domains.chat.domain import CHAT
from sweetrl.domains.chat.secret import ChatSecret
from sweetrl.domains.domain import Domain
from sweetrl.domains.frontend.domain import FRONTEND
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.errors import DataError, ModelError, UsageError
from sweetrl.learning import networks
from sweetrl.learning.batches import Example, collate
from sweetrl.learning.critic_cards import (
    CRITIC_CARD,
    CriticCard,
    read_critic_card,
    tell_secret,
    write_critic_card,
)
from sweetrl.learning.heads import add_score_head, load_score_head, save_score_head, turn_scores
from sweetrl.learning.logprobs import LanguageHead, turn_logprobs
from sweetrl.learning.losses import dialogue_advantages
from sweetrl.learning.networks import load_network
from sweetrl.learning.settings import CriticKind, Normalisation
from sweetrl.learning.tokens import DialogueEncoder, EncodedDialogue
from sweetrl.prompts import Prompt, agent_instructions
from sweetrl.types import Ending, Episode, Message, Reply, Role, Secret, Task, Turn, Unfinished

TASK = Task(
    id="t",
    domain="backend",
    request="Write a function that sums prices.",
    secret=BackendSecret(reference="def f(prices):\n    return sum(prices)\n", tests={"test1": "f([1])"}),
)
OTHER_TASK = Task(
    id="u",
    domain="backend",
    request=TASK.request,
    secret=BackendSecret(reference="def f(prices):\n    return 0\n", tests={"test1": "f([1])"}),
)
EPISODE = Episode(
    task_id="t",
    attempt=0,
    seed=0,
    agent="a",
    collaborator="c",
    request=TASK.request,
    turns=(
        Turn("Negative ones too?", "Negative ones too?", Reply("No.")),
        Turn("Hm. OUTPUT: And an empty list?", "And an empty list?", Reply("Zero, please.")),
        Turn("I WANT TO ANSWER: def f(p): return sum(p)", "I WANT TO ANSWER: def f(p): return sum(p)"),
    ),
    ending=Ending.ANSWERED,
    answer="def f(p): return sum(p)",
)
OUTPUTS = ["And zero?", "Why?", "I WANT TO ANSWER: def f(): pass"]
PROMPT = BACKEND.prompts.privileged
WIDE = {"max_position_embeddings": 4096}


@pytest.fixture(scope="module")
def seed_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_llama(tmp_path_factory.mktemp("seed"), **WIDE)


def card(seed: Path, **changes: Any) -> CriticCard:
    fields = {
        "kind": CriticKind.ADVANTAGE,
        "reference": str(seed),
        "privileged": PROMPT.text,
        "system": "Be kind.",
    }
    return CriticCard(**{**fields, "max_tokens": 1000, **changes})


def trained(folder: Path, card: CriticCard) -> Path:
    """A folder as training leaves it; random weights stand for learned ones."""
    save_tiny_llama(folder, seed=1, **WIDE)
    if card.kind is not CriticKind.ADVANTAGE:
        model = AutoModelForCausalLM.from_pretrained(folder)
        add_score_head(model)
        torch.manual_seed(2)
        torch.nn.init.normal_(model.score_head.weight)
        save_score_head(model, folder)
    write_critic_card(folder, card)
    return folder


def advantages(critic: Any, task: Task = TASK, turn: int = 1, outputs: list[str] = OUTPUTS) -> list[float]:
    found: list[float] = asyncio.run(critic.advantages(task, EPISODE.history(turn), outputs))
    return found


def encoded(folder: Path, privileged: str | None) -> EncodedDialogue:
    """The dialogue as training encodes it."""
    encoder = DialogueEncoder(AutoTokenizer.from_pretrained(folder), max_tokens=1000)
    return encoder.dialogue(EPISODE.request, EPISODE.turns, system="Be kind.", privileged=privileged)


# ---------------------------------------------------------------- the trained critic


@pytest.mark.parametrize("normalisation", [Normalisation.TURN_MEAN, Normalisation.NONE])
@pytest.mark.parametrize("secret", [True, False])
def test_the_advantages_of_turns_add_up_to_what_the_trainer_computes_of_the_dialogue(
    tmp_path: Path, seed_model: Path, normalisation: Normalisation, secret: bool
) -> None:
    privileged = PROMPT.text if secret else None
    folder = trained(tmp_path, card(seed_model, normalisation=normalisation, privileged=privileged))
    critic = load_critic(folder)
    ranked = [
        advantages(critic, turn=index, outputs=[turn.output])[0] for index, turn in enumerate(EPISODE.turns)
    ]
    told = tell_secret(PROMPT, TASK) if secret else None
    batch = collate([Example("e", tuple(encoded(folder, told).sequences))], pad=0)
    models = [AutoModelForCausalLM.from_pretrained(each).eval() for each in (folder, seed_model)]
    with torch.no_grad():
        ours, seeds = (turn_logprobs(model, batch) for model in models)
    total = dialogue_advantages(
        ours.sums - seeds.sums, ours.counts, torch.zeros(3, dtype=torch.long), 1, normalisation
    )
    scale = 1 if normalisation is Normalisation.TURN_MEAN else max(ours.counts.tolist())
    assert sum(ranked) == pytest.approx(float(total), abs=1e-5 * scale)
    if normalisation is Normalisation.TURN_MEAN:
        assert ranked == pytest.approx((ours.means - seeds.means).tolist(), abs=1e-5)


def test_a_critic_in_half_precision_ranks_nearly_as_in_single(tmp_path: Path) -> None:
    # Weights that are as large as those of usual models, as far as so few can be: others make noise of rounding.
    seed_model, folder = (
        save_tiny_llama(tmp_path / str(seed), seed=seed, initializer_range=0.1, **WIDE) for seed in (0, 1)
    )
    write_critic_card(folder, card(seed_model))
    usual, single, half = (
        load_critic(folder, CriticTools(precision=each)) for each in (None, "float32", "bfloat16")
    )
    assert {half._model.dtype, half._reference.dtype} == {torch.bfloat16}
    assert advantages(single) == advantages(usual)
    # Numbers have eight bits: log-probabilities near -6 are off by some hundredths, their means by less.
    assert advantages(half) == pytest.approx(advantages(usual), abs=0.03)
    assert advantages(half) != advantages(usual)
    assert np.ptp(advantages(usual)) > 0.1
    assert single.name == usual.name != half.name


def test_the_log_probabilities_of_a_half_precision_model_are_taken_in_single(seed_model: Path) -> None:
    head = LanguageHead(load_network(str(seed_model), dtype=torch.bfloat16))
    hidden = torch.randn(3, head.layer.in_features, dtype=torch.bfloat16)
    found = head.token_logprobs(hidden, torch.tensor([1, 2, 3]))
    wanted = head.layer(hidden).float().log_softmax(-1)[range(3), [1, 2, 3]]
    assert found.dtype is torch.float32
    assert found.tolist() == pytest.approx(wanted.tolist(), abs=1e-5)


def test_critics_without_a_choice_of_precision_refuse_one(tmp_path: Path, seed_model: Path) -> None:
    folder = trained(tmp_path, card(seed_model, kind=CriticKind.VALUE))
    for spec in (str(folder), f"value:{folder}", "length"):
        with pytest.raises(UsageError, match="has no precision to choose"):
            open_critic(spec, CriticTools(precision="bfloat16"))


def test_the_critic_sees_the_secret_of_the_task(tmp_path: Path, seed_model: Path) -> None:
    critic = load_critic(trained(tmp_path, card(seed_model)))
    assert advantages(critic, TASK) != pytest.approx(advantages(critic, OTHER_TASK), abs=1e-3)


def test_a_plain_reference_model_reads_turns_without_the_secret(tmp_path: Path, seed_model: Path) -> None:
    folder = trained(tmp_path / "critic", card(seed_model, plain_reference=True))
    told, bare = (encoded(folder, text) for text in (tell_secret(PROMPT, TASK), None))
    with torch.no_grad():
        ours = turn_logprobs(load_network(str(folder)), collate([Example("a", tuple(told.sequences))], pad=0))
        plain = collate([Example("a", tuple(bare.sequences))], pad=0)
        theirs = turn_logprobs(load_network(str(seed_model)), plain)
    critic = load_critic(folder)
    said = [advantages(critic, turn=at, outputs=[turn.given])[0] for at, turn in enumerate(EPISODE.turns)]
    assert said == pytest.approx(((ours.sums - theirs.sums) / ours.counts).tolist(), abs=1e-4)


def test_a_critic_without_privileged_information_does_not(tmp_path: Path, seed_model: Path) -> None:
    critic = load_critic(trained(tmp_path, card(seed_model, privileged=None)))
    assert advantages(critic, TASK) == pytest.approx(advantages(critic, OTHER_TASK), abs=1e-6)


def test_an_untrained_model_finds_every_turn_as_good_as_usual(tmp_path: Path, seed_model: Path) -> None:
    save_tiny_llama(tmp_path, **WIDE)
    write_critic_card(tmp_path, card(seed_model))
    assert advantages(load_critic(tmp_path)) == pytest.approx([0, 0, 0], abs=1e-6)


def test_tokens_are_named_by_their_text_and_the_end_of_the_turn_counts(
    tmp_path: Path, seed_model: Path
) -> None:
    critic: Any = load_critic(trained(tmp_path, card(seed_model)))
    output = "Für 日本?"
    tokens = asyncio.run(critic.token_advantages(TASK, EPISODE.history(1), output))
    assert "".join(token.text for token in tokens) == output + "<|end|>"
    assert math.fsum(token.advantage for token in tokens) == pytest.approx(
        advantages(critic, outputs=[output])[0], abs=1e-5
    )


def test_an_output_that_a_limit_ended_is_judged_without_an_end(tmp_path: Path, seed_model: Path) -> None:
    critic = load_critic(trained(tmp_path, card(seed_model)))
    whole, cut = (
        asyncio.run(critic.token_advantages(TASK, EPISODE.history(1), output))
        for output in (OUTPUTS[0], Unfinished(OUTPUTS[0]))
    )
    assert [token.text for token in cut] == [token.text for token in whole[:-1]]
    # The mean is over one token less.
    shares = [token.advantage * len(whole) / len(cut) for token in whole[:-1]]
    assert [token.advantage for token in cut] == pytest.approx(shares, abs=1e-5)


def test_credit_asked_for_at_the_same_time_does_not_mix(tmp_path: Path, seed_model: Path) -> None:
    critic: Any = load_critic(trained(tmp_path, card(seed_model)))
    outputs = [*OUTPUTS, "<|end|> in text"] * 4

    async def at_once() -> list[Any]:
        wanted = (critic.token_advantages(TASK, EPISODE.history(1), output) for output in outputs)
        return await asyncio.gather(*wanted)

    for output, found in zip(outputs, asyncio.run(at_once()), strict=True):
        assert "".join(token.text for token in found) == output + "<|end|>"


def test_critics_that_may_disagree_have_different_names(tmp_path: Path, seed_model: Path) -> None:
    names = set()
    for number, changes in enumerate(({}, {"normalisation": Normalisation.NONE}, {"privileged": None})):
        folder = tmp_path / str(number) / "critic"
        names.add(load_critic(trained(folder, card(seed_model, **changes))).name)
    assert len(names) == 3
    assert load_critic(folder).name in names
    assert all(name.startswith("critic:critic@") for name in names)


# ---------------------------------------------------------------- critics with a head


def test_a_value_functions_advantages_add_up_to_what_the_dialogue_gained(
    tmp_path: Path, seed_model: Path
) -> None:
    folder = trained(tmp_path, card(seed_model, kind=CriticKind.VALUE, reference=None, start=0.2))
    critic = load_critic(folder)
    said = [turn.said for turn in EPISODE.turns]
    gains = [advantages(critic, turn=index, outputs=[text])[0] for index, text in enumerate(said)]
    encoder = DialogueEncoder(AutoTokenizer.from_pretrained(folder), max_tokens=1000)
    last = encoder.turn(EPISODE.history(2), said[-1], system="Be kind.", privileged=tell_secret(PROMPT, TASK))
    final = head_scores(folder, CriticKind.VALUE, [last])[0].sigmoid()
    assert 0.2 + sum(gains) == pytest.approx(float(final), abs=1e-5)


def head_scores(folder: Path, kind: CriticKind, sequences: list[Any]) -> torch.Tensor:
    """As the trainer computes them."""
    model = AutoModelForCausalLM.from_pretrained(folder).eval()
    load_score_head(model, folder)
    batch = collate([Example("e", tuple(sequences))], pad=0)
    with torch.no_grad():
        return turn_scores(model, batch, kind)


def test_a_regression_critic_gives_out_what_the_trainer_computes(tmp_path: Path, seed_model: Path) -> None:
    folder = trained(tmp_path, card(seed_model, kind=CriticKind.REGRESSION, reference=None))
    critic = load_critic(folder)
    found = [
        advantages(critic, turn=index, outputs=[turn.output])[0] for index, turn in enumerate(EPISODE.turns)
    ]
    sequences = encoded(folder, tell_secret(PROMPT, TASK)).sequences
    wanted = head_scores(folder, CriticKind.REGRESSION, sequences).tolist()
    assert found == pytest.approx(wanted, abs=1e-5)


# ---------------------------------------------------------------- the critic without training


def test_the_zero_shot_critic_compares_with_and_without_the_secret(seed_model: Path) -> None:
    critic = load_zero_shot_critic(str(seed_model))
    model = AutoModelForCausalLM.from_pretrained(seed_model).eval()
    encoder = DialogueEncoder(AutoTokenizer.from_pretrained(seed_model), max_tokens=4096)
    system = agent_instructions(BACKEND.prompts.agent)
    wanted = []
    for output in OUTPUTS:
        with torch.no_grad():
            knowing, guessing = (
                turn_logprobs(model, collate([Example("", (sequence,))], pad=0)).means[0]
                for sequence in (
                    encoder.turn(EPISODE.history(1), output, system=system, privileged=told)
                    for told in (tell_secret(PROMPT, TASK), None)
                )
            )
        wanted.append(float(knowing - guessing))
    assert advantages(critic) == pytest.approx(wanted, abs=1e-4)


def test_a_prompt_of_ones_own_takes_the_place_of_the_shipped_one(seed_model: Path) -> None:
    own = load_zero_shot_critic(
        str(seed_model), privileged=Prompt("Psst: {hidden_information}", source="mine")
    )
    shipped = load_zero_shot_critic(str(seed_model))
    assert own.name != shipped.name
    assert advantages(own) != pytest.approx(advantages(shipped), abs=1e-4)


@pytest.mark.parametrize(
    ("domain", "secret"),
    [
        (BACKEND, BackendSecret(reference="THE SECRET", tests={"a": "f()"})),
        (FRONTEND, FrontendSecret(page="THE SECRET")),
        (CHAT, ChatSecret("THE SECRET")),
    ],
    ids=["backend", "frontend", "chat"],
)
def test_the_shipped_privileged_prompt_holds_the_secret_and_no_other_field(
    domain: Domain, secret: Secret
) -> None:
    task = Task(id="t", domain=domain.name, request="r", secret=secret)
    assert domain.prompts.privileged.fields == {"hidden_information"}
    assert "THE SECRET" in tell_secret(domain.prompts.privileged, task)


# ---------------------------------------------------------------- folders that are no critics


def test_a_card_comes_back_as_it_was_written(tmp_path: Path, seed_model: Path) -> None:
    written = card(seed_model, beta=0.3, normalisation=Normalisation.DIALOGUE_MEAN)
    write_critic_card(tmp_path, written)
    assert read_critic_card(tmp_path) == written
    assert json.loads((tmp_path / CRITIC_CARD).read_text())["kind"] == "advantage"


def test_a_model_that_is_no_critic_is_refused(seed_model: Path) -> None:
    with pytest.raises(DataError, match=r"has no critic.json: not a critic; train one with"):
        load_critic(seed_model)


@pytest.mark.parametrize("content", [b"", b"{}", b'{"kind": 3, "max_tokens": 1}', b"\xff"])
def test_a_broken_card_is_one_clear_line(tmp_path: Path, content: bytes) -> None:
    (tmp_path / CRITIC_CARD).write_bytes(content)
    with pytest.raises(DataError, match=r"critic.json: not the card of a critic: [^\n]+$"):
        load_critic(tmp_path)


def test_a_reference_of_another_architecture_is_refused(tmp_path: Path) -> None:
    other = save_tiny_llama(tmp_path / "other", hidden_size=32, **WIDE)
    with pytest.raises(
        UsageError, match=r"llama, [\d,]+ weights\) is of another architecture than its reference"
    ):
        load_critic(trained(tmp_path / "critic", card(other)))
    GPT2LMHeadModel(GPT2Config(vocab_size=400, n_embd=32, n_layer=1, n_head=2)).save_pretrained(
        tmp_path / "gpt"
    )
    with pytest.raises(UsageError, match=r"another architecture than its reference .*gpt \(gpt2, "):
        load_critic(trained(tmp_path / "critic", card(tmp_path / "gpt")))


def test_weights_of_another_architecture_than_the_configuration_are_refused(
    tmp_path: Path, seed_model: Path
) -> None:
    folder = trained(tmp_path / "critic", card(seed_model))
    gpt = GPT2LMHeadModel(GPT2Config(vocab_size=400, n_embd=32, n_layer=1, n_head=2))
    gpt.save_pretrained(tmp_path / "gpt")
    (tmp_path / "gpt/model.safetensors").replace(folder / "model.safetensors")
    with pytest.raises(
        UsageError, match=r"the weights are of another architecture than the llama .* is missing"
    ):
        load_critic(folder)


def test_weights_of_another_size_than_the_configuration_are_refused(tmp_path: Path, seed_model: Path) -> None:
    folder = trained(tmp_path / "critic", card(seed_model))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "intermediate_size": 64}))
    with pytest.raises(UsageError, match=r"critic: cannot load a language model from there: [^\n]+$"):
        load_critic(folder)


def test_a_missing_reference_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nowhere: no such folder; give the folder of a model"):
        load_critic(trained(tmp_path / "critic", card(tmp_path / "nowhere")))
    with pytest.raises(DataError, match=r"critic.json: names no reference model"):
        load_critic(trained(tmp_path / "critic", card(tmp_path, reference=None)))


def test_a_tokenizer_without_a_chat_template_is_one_clear_line(tmp_path: Path, seed_model: Path) -> None:
    folder = trained(tmp_path / "critic", card(seed_model))
    (folder / "chat_template.jinja").unlink()
    tiny_tokenizer(chat_template=None).save_pretrained(folder)
    with pytest.raises(UsageError, match=r"critic: the tokenizer has no chat template"):
        load_critic(folder)


@pytest.mark.parametrize("kind", list(CriticKind))
def test_a_turn_longer_than_the_context_is_a_failure_of_that_turn_alone(
    tmp_path: Path, seed_model: Path, kind: CriticKind
) -> None:
    critic = load_critic(trained(tmp_path, card(seed_model, kind=kind, max_tokens=400)))
    with pytest.raises(
        ModelError, match=r"^t: turn 2 alone has \d+ tokens .* that the critic reads$"
    ) as failed:
        advantages(critic, outputs=["Why?", "word " * 200])
    assert failed.value.kind == "context_length"
    assert len(advantages(critic)) == len(OUTPUTS)


def test_long_histories_are_judged_by_their_latest_turns(tmp_path: Path, seed_model: Path) -> None:
    critic = load_critic(trained(tmp_path, card(seed_model, max_tokens=300)))
    long = [Message(Role.USER, "Go."), Message(Role.ASSISTANT, "word " * 60), Message(Role.USER, "Yes.")]
    short = long[:1]
    found, wanted = (asyncio.run(critic.advantages(TASK, history, OUTPUTS)) for history in (long, short))
    assert found == pytest.approx(wanted, abs=1e-5)


def test_the_reference_model_is_loaded_in_the_numbers_of_the_critic(
    tmp_path: Path, seed_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = trained(tmp_path / "critic", card(seed_model))
    load, loaded = networks.load_network, []

    def half_by_default(path: str, *, dtype: torch.dtype | None = None) -> Any:
        loaded.append(load(path, dtype=dtype or torch.bfloat16))
        return loaded[-1]

    monkeypatch.setattr(networks, "load_network", half_by_default)
    load_critic(folder)
    assert [model.dtype for model in loaded] == [torch.bfloat16, torch.bfloat16]
    assert load(str(seed_model)).dtype == torch.float32
