"""The tiny models that ship: how they are made."""

import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM

from sweetrl.domains.backend.mini_backend import make_tasks
from sweetrl.domains.backend.mini_backend.corpus import VARIED, hold_dialogue
from sweetrl.learning import mini, mini_corpora
from sweetrl.learning.mini_tokenizers import TEMPLATE
from sweetrl.learning.muon import Muon, orthogonal
from sweetrl.learning.tokens import DialogueEncoder
from sweetrl.models.shipped import folder
from sweetrl.types import Message, Role

TINY = mini.Size(width=16, layers=1, inner=32, heads=2, steps=6, tasks=60, batch=8)
TOKENIZER = mini_corpora.PROGRAMMING.tokenizer()
BPE = mini_corpora.VARIED_PROGRAMMING.tokenizer()
PAGES = mini_corpora.PAGES.tokenizer()
TASKS = list(make_tasks("train", 20, seed=7))
PAGE_TASKS = list(mini_corpora.PAGES.make_tasks("validation", 20, 7))
PAGE_DIALOGUES = [mini_corpora.PAGES.dialogue(task, 0) for task in PAGE_TASKS]


@pytest.fixture(autouse=True)
def _threads() -> None:
    torch.set_num_threads(1)


# ---------------------------------------------------------------- tokenizer


@pytest.mark.parametrize("tokenizer", [TOKENIZER, BPE, PAGES], ids=["words", "bpe", "pages"])
@settings(deadline=None)
@given(text=st.text())
def test_any_text_survives_the_tokenizer(tokenizer: Any, text: str) -> None:
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids, skip_special_tokens=False) == text


def test_the_tokenizer_of_words_is_the_one_that_ships(tmp_path: Path) -> None:
    TOKENIZER.save_pretrained(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        assert (tmp_path / name).read_bytes() == (folder("mini") / name).read_bytes()


def test_the_same_dialogues_give_the_same_bpe() -> None:
    again = mini_corpora.VARIED_PROGRAMMING.tokenizer()
    assert again.backend_tokenizer.to_str() == BPE.backend_tokenizer.to_str()
    assert len(BPE) == 1024


def test_answers_are_five_to_ten_times_as_long_as_questions_with_bpe_and_questions_vary() -> None:
    questions, answers = [], []
    for task in TASKS:
        said = [each.text for each in hold_dialogue(task, 0, VARIED) if each.role is Role.ASSISTANT]
        *asked, answer = [len(BPE(text)["input_ids"]) + 1 for text in said]
        questions += asked
        answers.append(answer)
    assert 5 < fmean(answers) / fmean(questions) < 10
    assert max(questions) > 2 * min(questions)


def test_words_of_the_dialogue_are_single_tokens_of_bpe_and_code_is_not() -> None:
    asked = BPE("Which letter case is used?")["input_ids"]
    assert [BPE.decode([each]) for each in asked] == ["Which", " letter", " case", " is", " used", "?"]
    assert len(BPE("\n    text = text.upper()")["input_ids"]) > 6


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("Which letter case is used?", ["Which", " letter", " case", " is", " used", "?"]),
        (
            "I WANT TO ANSWER:\ndef label(text):\n    text = text.upper()\n    return text",
            ["I WANT TO ANSWER:\n", "def label(text):", "\n    text = text.upper()", "\n    return text"],
        ),
    ],
)
def test_words_and_lines_of_code_of_the_benchmark_are_single_tokens(text: str, pieces: list[str]) -> None:
    ids = TOKENIZER(text, add_special_tokens=False)["input_ids"]
    assert [TOKENIZER.decode([each]) for each in ids] == pieces


def test_a_page_is_a_token_for_each_choice_and_one_for_what_is_between_two() -> None:
    *shown, answer = [each.text for each in PAGE_DIALOGUES[0] if each.role is Role.ASSISTANT]
    ids = PAGES(shown[0])["input_ids"]
    pieces = [PAGES.decode([each]) for each in ids]
    assert len(pieces) == 15
    assert [re.split(r"[ -]", piece)[-1] for piece in pieces[1::2]][2:4] in (
        [align, size] for align in ("left", "center", "right") for size in ("2xl", "4xl", "6xl")
    )
    assert PAGES.decode(ids) == shown[0]
    assert len(PAGES(answer)["input_ids"]) == 16


def test_dialogues_about_pages_with_the_reference_before_them_are_short() -> None:
    encode = mini._encoder(PAGES, replace(TINY, corpus=mini_corpora.PAGES, with_reference=100))
    assert max(len(encode(task, 0).ids) for task in PAGE_TASKS) < 300


def test_words_of_the_designer_are_single_tokens() -> None:
    ids = PAGES("The header should be light blue instead of red.")["input_ids"]
    assert len(ids) == 10


def test_the_template_leaves_out_instructions() -> None:
    chat = [{"role": "system", "content": "Obey."}, {"role": "user", "content": "Hello."}]
    assert TOKENIZER.apply_chat_template(chat, tokenize=False) == "<|user|>Hello.<|end|>"


@pytest.mark.parametrize("tokenizer", [TOKENIZER, BPE], ids=["words", "bpe"])
def test_the_encoder_reads_a_dialogue_as_the_model_learned_it(tokenizer: Any) -> None:
    encode = mini._encoder(tokenizer, TINY)
    for number, task in enumerate(TASKS):
        document = encode(task, number)
        opening = tokenizer.decode(document.ids[: document.ids.index(tokenizer.eos_token_id)])
        request = opening.removeprefix("<|user|>")
        assert request in (task.request, mini_corpora.PROGRAMMING.told(task))
        prompt = (
            DialogueEncoder(tokenizer, max_tokens=512)
            .candidates([Message(Role.USER, request)], ["x"], system="Obey.")
            .prefix
        )
        assert document.ids[: len(prompt)] == prompt


# ---------------------------------------------------------------- corpus


def test_requests_are_given_and_replies_learned_only_with_the_reference() -> None:
    encode = mini._encoder(TOKENIZER, TINY)
    seen = set()
    for number in range(5):
        for task in TASKS:
            document = encode(task, number)
            told = TOKENIZER.decode(document.ids).startswith("<|user|>The finished function is:")
            seen.add(told)
            learned = [target != mini._IGNORED for target in document.targets]
            speaker = "user"
            for token, counted in zip(document.ids, learned, strict=True):
                if (text := TOKENIZER.decode([token])) in ("<|user|>", "<|agent|>"):
                    speaker = text
                    assert not counted
                elif speaker == "<|agent|>":
                    assert counted
            first = document.ids.index(TOKENIZER.eos_token_id)
            assert not any(learned[: first + 1])
            replies = sum(learned) - _agent_tokens(document.ids)
            assert (replies > 0) == (
                told and document.ids.count(TOKENIZER.convert_tokens_to_ids("<|user|>")) > 1
            )
    assert seen == {True, False}


@pytest.mark.parametrize(("share", "expected"), [(0, 0), (25, 25), (100, 100)])
def test_the_share_of_dialogues_after_their_reference_is_a_setting(share: int, expected: int) -> None:
    encode = mini._encoder(TOKENIZER, replace(TINY, with_reference=share))
    texts = [TOKENIZER.decode(encode(task, number).ids) for task in TASKS for number in range(20)]
    told = [text.startswith("<|user|>The finished function is:") for text in texts]
    assert 100 * fmean(told) == pytest.approx(expected, abs=7)  # three standard errors


def _agent_tokens(ids: list[int]) -> int:
    speaker, count = "", 0
    for token in ids:
        if (text := TOKENIZER.decode([token])) in ("<|user|>", "<|agent|>"):
            speaker = text
        elif speaker == "<|agent|>":
            count += 1
    return count


def test_every_batch_holds_short_and_long_dialogues() -> None:
    batches = mini._batches(TOKENIZER, replace(TINY, tasks=200), seed=0)
    for _ in range(10):
        lengths = [max(len(document.ids) for document in part) for part in next(batches)]
        assert lengths == sorted(lengths)
        assert lengths[-1] > lengths[0]


# ---------------------------------------------------------------- learning


def test_a_seed_always_gives_the_same_weights(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mini_corpora, "VOCABULARY_TASKS", 50)
    for name, seed in (("one", 3), ("two", 3), ("other", 4)):
        mini.build(TINY, tmp_path / name, name="tiny", seed=seed)
    one, two, other = (load_file(tmp_path / name / "model.safetensors") for name in ("one", "two", "other"))
    assert all(torch.equal(one[name], two[name]) for name in one)
    assert not all(torch.equal(one[name], other[name]) for name in one)


def test_the_number_of_threads_changes_nothing() -> None:
    torch.manual_seed(0)
    model = LlamaForCausalLM(mini._config(TINY, TOKENIZER))
    batch = next(mini._batches(TOKENIZER, TINY, seed=0))
    found = []
    for threads in (1, 3):
        with ThreadPoolExecutor(threads) as pool:
            mini._learn(model, batch, pool)
        found.append([weight.grad.clone() for weight in model.parameters() if weight.grad is not None])
    assert all(torch.equal(one, two) for one, two in zip(*found, strict=True))


def test_gradients_are_those_of_the_mean_over_the_whole_batch() -> None:
    torch.manual_seed(0)
    model = LlamaForCausalLM(mini._config(TINY, TOKENIZER))
    batch = next(mini._batches(TOKENIZER, TINY, seed=0))
    with ThreadPoolExecutor(1) as pool:
        loss = mini._learn(model, batch, pool)
    ours = [weight.grad.clone() for weight in model.parameters() if weight.grad is not None]
    documents = [document for part in batch for document in part]
    learned = sum(target != mini._IGNORED for document in documents for target in document.targets)
    model.zero_grad()
    whole = mini._surprise(model, documents) / learned
    whole.backward()
    assert loss == pytest.approx(float(whole.detach()), rel=1e-5)
    for mine, weight in zip(ours, model.parameters(), strict=True):
        assert torch.allclose(mine, weight.grad, atol=1e-5)


def test_what_is_written_loads_like_any_model_and_has_learned_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mini_corpora, "VOCABULARY_TASKS", 50)
    losses: list[float] = []
    size = replace(TINY, steps=40, batch=16)
    mini.build(size, tmp_path, name="tiny", observe=lambda progress: losses.append(progress.loss))
    assert losses[-1] < losses[0] - 0.1
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    assert model.config.vocab_size == len(tokenizer)
    assert tokenizer.chat_template == TEMPLATE
    assert "make-model tiny --seed 0" in (tmp_path / "README.md").read_text()


def test_a_model_with_bpe_is_trained_and_written_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mini_corpora, "VOCABULARY_TASKS", 50)
    corpus = replace(mini_corpora.VARIED_PROGRAMMING, vocabulary=400)
    size = replace(TINY, corpus=corpus, with_reference=10)
    mini.build(size, tmp_path, name="tiny")
    assert AutoModelForCausalLM.from_pretrained(tmp_path).config.vocab_size == 400
    card = (tmp_path / "README.md").read_text()
    assert "a byte-level BPE tokenizer of 400" in card
    assert "10 per cent of the dialogues stand after the finished function" in card


def test_the_card_of_a_model_that_was_stopped_early_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mini_corpora, "VOCABULARY_TASKS", 50)
    monkeypatch.setitem(mini.SIZES, "tiny", TINY)
    seen: list[mini.Progress] = []
    size = replace(TINY, steps=900, with_reference=10)
    mini.build(size, tmp_path, name="tiny", seed=3, observe=seen.append, stop_after=2)
    assert [(progress.step, progress.steps) for progress in seen] == [(1, 2), (2, 2)]
    card = (tmp_path / "README.md").read_text()
    assert "`sweetrl make-model tiny --seed 3 --with-reference 10 --steps 2`: 2 steps of" in card
    assert "of 900 planned" in card


def test_a_model_of_pages_is_trained_and_written_the_same_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mini_corpora, "VOCABULARY_TASKS", 50)
    losses: list[float] = []
    size = replace(TINY, steps=40, batch=16, corpus=mini_corpora.PAGES)
    mini.build(size, tmp_path, name="tiny", observe=lambda progress: losses.append(progress.loss))
    assert losses[-1] < losses[0] - 0.1
    card = (tmp_path / "README.md").read_text()
    assert "about `mini-frontend-plain` tasks" in card
    assert "40 per cent of the dialogues stand after the finished page" in card


def test_the_model_for_long_answers_has_two_to_four_million_weights() -> None:
    with torch.device("meta"):
        model = LlamaForCausalLM(mini._config(mini.SIZES["mini-long"], BPE))
    assert 2e6 < sum(weight.numel() for weight in model.parameters()) < 4e6


def test_orthogonal_drives_all_singular_values_near_one() -> None:
    torch.manual_seed(0)
    for shape in ((8, 8), (8, 20), (20, 8)):
        values = torch.linalg.svdvals(orthogonal(torch.randn(shape)))
        assert values.min() > 0.5
        assert values.max() < 1.5


def test_muon_goes_downhill() -> None:
    torch.manual_seed(0)
    weight = torch.nn.Parameter(torch.randn(6, 4))
    goal = torch.randn(6, 4)
    optimiser = Muon([weight], lr=0.05)
    start = float((weight.detach() - goal).square().sum())
    for _ in range(60):
        optimiser.zero_grad()
        (weight - goal).square().sum().backward()
        optimiser.step()
    assert float((weight.detach() - goal).square().sum()) < 0.05 * start
