"""The whole local model on tiny random networks, against plain `generate` where there is a right answer."""

import asyncio
import json
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    BloomConfig,
    Gemma3TextConfig,
    GPT2Config,
    MambaConfig,
    MistralConfig,
    PreTrainedConfig,
    Qwen3Config,
)

from contracts.chat_model import ChatModelContract, closing
from models.smollm2 import require_smollm2
from models.tiny_llama import SENTENCES, save_tiny_llama, tiny_tokenizer
from sweetrl.errors import ModelError, NoReplyError, UsageError
from sweetrl.models.local import LocalModel
from sweetrl.models.local.chat import ChatTokenizer
from sweetrl.models.local.samples import Request
from sweetrl.protocols import ChatModel
from sweetrl.types import Completion, Message, Role, Sampling

ENDS = [1, 3]
"""The tiny tokenizer's end of text and its template's end of turn."""
GREEDY = Sampling(temperature=0, max_tokens=24)
CHAT = (Message(Role.USER, SENTENCES[0]),)


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_tiny_llama(tmp_path_factory.mktemp("llama"))


@asynccontextmanager
async def opened(path: Path, **options: Any) -> AsyncIterator[LocalModel]:
    async with closing(LocalModel(str(path), name="hf:tiny", **options)) as model:
        assert isinstance(model, LocalModel)
        yield model


def ask(
    path: Path, chat: Sequence[Message] = CHAT, n: int = 1, seed: int = 0, **sampling: Any
) -> list[Completion]:
    async def run() -> list[Completion]:
        async with opened(path) as model:
            return await model.complete(chat, n=n, sampling=Sampling(**sampling), seed=seed)

    return asyncio.run(run())


class Plain:
    """The peer: `model.generate` on one prompt at a time."""

    def __init__(self, path: Path) -> None:
        self.tokenizer = AutoTokenizer.from_pretrained(path)
        self.model = AutoModelForCausalLM.from_pretrained(path).eval()

    def tokens(self, prompt: list[int], max_tokens: int) -> list[int]:
        inputs = torch.tensor([prompt])
        output = self.model.generate(
            inputs,
            attention_mask=torch.ones_like(inputs),
            max_new_tokens=max_tokens,
            do_sample=False,
            eos_token_id=ENDS,
            pad_token_id=0,
        )
        return list(output[0, len(prompt) :].tolist())


async def many_dialogues(model: LocalModel, *, count: int, turns: int) -> list[Request]:
    """Dialogues of different lengths at the same time; all requests, with the tokens that were drawn."""
    requests: list[Request] = []

    async def one(number: int) -> None:
        chat = [Message(Role.USER, " ".join(SENTENCES[: 1 + number % 4]))]
        for turn in range(turns):
            prompt = model._tokenizer.encode(chat)
            sampling = Sampling(temperature=0, max_tokens=8 + 5 * (number % 3))
            requests.append(Request(prompt, n=1, sampling=sampling, seed=0))
            model._engine.submit(requests[-1])
            (completion,) = await asyncio.wrap_future(requests[-1].future)
            chat += [
                Message(Role.ASSISTANT, completion.text),
                Message(Role.USER, SENTENCES[(number + turn) % len(SENTENCES)]),
            ]

    await asyncio.gather(*(one(number) for number in range(count)))
    return requests


# ---------------------------------------------------------------- the contract


@cache
def contract_checkpoint() -> Path:
    return save_tiny_llama(Path(mkdtemp(prefix="tiny-llama-")))


class TestLocalModelKeepsTheContract(ChatModelContract):
    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def remove_the_checkpoint(cls) -> Any:
        yield
        shutil.rmtree(contract_checkpoint())
        contract_checkpoint.cache_clear()

    def open(self) -> AbstractAsyncContextManager[ChatModel]:
        return closing(LocalModel(str(contract_checkpoint()), name="hf:tiny"))


# ---------------------------------------------------------------- the same tokens as generate

SIZES = {"vocab_size": 400, "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4}
INNER = {**SIZES, "intermediate_size": 96, "num_key_value_heads": 2, "head_dim": 16}
TOKENS = {"bos_token_id": None, "eos_token_id": 1, "pad_token_id": 0, "initializer_range": 0.3}
ARCHITECTURES: dict[str, PreTrainedConfig] = {
    "mistral with a sliding window": MistralConfig(**INNER, **TOKENS, sliding_window=16),
    "gemma with windows in some layers": Gemma3TextConfig(
        **INNER,
        **TOKENS,
        sliding_window=16,
        layer_types=["sliding_attention", "full_attention", "sliding_attention"],
    ),
    "qwen with normalised heads": Qwen3Config(**INNER, **TOKENS),
    "gpt-2 with learned positions": GPT2Config(
        vocab_size=400, n_embd=64, n_layer=2, n_head=4, n_positions=1024, **TOKENS
    ),
    "bloom with linear biases": BloomConfig(vocab_size=400, hidden_size=64, n_layer=2, n_head=4, **TOKENS),
}


def save_random(folder: Path, config: PreTrainedConfig) -> Path:
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tiny_tokenizer().save_pretrained(folder)
    return folder


def check_against_generate(path: Path, *, count: int, turns: int, **options: Any) -> None:
    async def run() -> list[Request]:
        async with opened(path, **options) as model:
            requests = await many_dialogues(model, count=count, turns=turns)
            assert model.counters.tokens_reused > 0
            assert model.counters.steps < model.counters.tokens_drawn
            return requests

    requests = asyncio.run(run())
    plain = Plain(path)
    assert len(requests) == count * turns
    for request in requests:
        assert request.samples[0].tokens == plain.tokens(request.prompt, request.sampling.max_tokens)


def test_greedy_dialogues_in_one_batch_draw_the_tokens_of_generate(llama: Path) -> None:
    check_against_generate(llama, count=12, turns=4, max_batch=5)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_other_architectures_draw_the_tokens_of_generate_too(architecture: str, tmp_path: Path) -> None:
    check_against_generate(save_random(tmp_path, ARCHITECTURES[architecture]), count=5, turns=3)


def test_an_adapter_is_applied_to_its_base(llama: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    base = AutoModelForCausalLM.from_pretrained(llama)
    adapted = get_peft_model(base, LoraConfig(target_modules=["q_proj", "v_proj"], init_lora_weights=False))
    adapted.save_pretrained(tmp_path / "adapter")
    adapted.merge_and_unload().save_pretrained(tmp_path / "merged")
    for folder in ("adapter", "merged"):
        tiny_tokenizer().save_pretrained(tmp_path / folder)
    replies = [
        ask(path, temperature=0, max_tokens=8)[0].text for path in (tmp_path / "adapter", tmp_path / "merged")
    ]
    assert replies[0] == replies[1] != ask(llama, temperature=0, max_tokens=8)[0].text


def test_a_tiny_prefix_store_changes_no_token(llama: Path) -> None:
    async def texts(prefix_bytes: int) -> list[list[int]]:
        async with opened(llama, prefix_bytes=prefix_bytes) as model:
            requests = await many_dialogues(model, count=4, turns=3)
            return sorted(request.samples[0].tokens for request in requests)

    assert asyncio.run(texts(0)) == asyncio.run(texts(100_000)) == asyncio.run(texts(1 << 30))


# ---------------------------------------------------------------- what is read


def test_the_next_turn_reads_only_what_is_new(llama: Path) -> None:
    async def run() -> None:
        async with opened(llama) as model:
            (first,) = await model.complete(CHAT, n=1, sampling=GREEDY, seed=0)
            first_prompt = first.usage.prompt_tokens
            assert model.counters.tokens_read == first_prompt
            longer = [*CHAT, Message(Role.ASSISTANT, "Yes."), Message(Role.USER, SENTENCES[1])]
            (second,) = await model.complete(longer, n=1, sampling=GREEDY, seed=0)
            # All of the first prompt is found again; the reply was another one than the network's own.
            assert model.counters.tokens_reused >= first_prompt
            assert model.counters.tokens_read <= second.usage.prompt_tokens

    asyncio.run(run())


def test_the_prompt_is_read_once_for_all_samples_even_if_they_do_not_fit_in_one_batch(llama: Path) -> None:
    async def run() -> None:
        async with opened(llama, max_batch=4) as model:
            completions = await model.complete(CHAT, n=10, sampling=Sampling(max_tokens=6), seed=0)
            prompt_tokens = [completion.usage.prompt_tokens for completion in completions]
            assert prompt_tokens[1:] == [0] * 9
            assert model.counters.tokens_read == prompt_tokens[0]
            assert model.counters.tokens_reused == 0

    asyncio.run(run())


# ---------------------------------------------------------------- seeds


def test_a_sample_does_not_depend_on_how_many_others_are_wanted(llama: Path) -> None:
    several = ask(llama, n=5, seed=3, max_tokens=16)
    assert ask(llama, n=2, seed=3, max_tokens=16)[1].text == several[1].text
    assert len({completion.text for completion in several}) == 5


def test_a_sample_does_not_depend_on_the_batch_that_it_is_drawn_in(llama: Path) -> None:
    sampling = Sampling(max_tokens=40, temperature=0.8, top_p=0.95)

    async def crowded() -> str:
        async with opened(llama) as model:
            crowd = [
                asyncio.create_task(
                    model.complete(
                        [Message(Role.USER, text)], n=2, sampling=Sampling(max_tokens=9), seed=seed
                    )
                )
                for seed, text in enumerate(SENTENCES * 3)
            ]
            (completion,) = await model.complete(CHAT, n=1, sampling=sampling, seed=11)
            await asyncio.gather(*crowd)
            return completion.text

    async def alone() -> str:
        async with opened(llama) as model:
            (completion,) = await model.complete(CHAT, n=1, sampling=sampling, seed=11)
            return completion.text

    assert asyncio.run(crowded()) == asyncio.run(alone())


# ---------------------------------------------------------------- how a reply ends


def test_log_probabilities_are_those_of_the_network(llama: Path) -> None:
    async def run() -> tuple[Request, Completion]:
        async with opened(llama) as model:
            sampling = Sampling(max_tokens=12, temperature=0.7, top_p=0.9)
            request = Request(model._tokenizer.encode(CHAT), n=1, sampling=sampling, seed=5)
            model._engine.submit(request)
            (completion,) = await asyncio.wrap_future(request.future)
            return request, completion

    request, completion = asyncio.run(run())
    tokens = request.samples[0].tokens
    with torch.inference_mode():
        logits = Plain(llama).model(torch.tensor([request.prompt + tokens])).logits[0]
    expected = logits[len(request.prompt) - 1 : -1].log_softmax(-1)[range(len(tokens)), tokens]
    assert completion.logprobs == pytest.approx(expected.tolist(), abs=1e-4)
    assert completion.usage.completion_tokens == len(tokens)


def test_a_reply_is_cut_at_the_most_tokens(llama: Path) -> None:
    (completion,) = ask(llama, temperature=0, max_tokens=7)
    assert completion.finish == "length"
    assert completion.usage.completion_tokens == 7


def test_a_reply_ends_before_a_stop_text(llama: Path) -> None:
    (whole,) = ask(llama, temperature=0, max_tokens=24)
    stop = whole.text[9:12]
    (stopped,) = ask(llama, temperature=0, max_tokens=24, stop=("never said", stop))
    assert stopped.finish == "stop"
    assert stopped.text == whole.text.partition(stop)[0]
    assert stopped.usage.completion_tokens < whole.usage.completion_tokens


def test_every_end_token_of_the_checkpoint_ends_a_reply(llama: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(llama, tmp_path / "copy")
    with torch.inference_mode():
        prompt = ChatTokenizer(str(llama)).encode(CHAT)
        tokens = Plain(llama).tokens(prompt, 24)
    last = tokens.index(tokens[10])
    settings_file = folder / "generation_config.json"
    settings = json.loads(settings_file.read_text())
    settings_file.write_text(json.dumps({**settings, "eos_token_id": [1, tokens[10]]}))
    (completion,) = ask(folder, temperature=0, max_tokens=24)
    assert completion.finish == "stop"
    assert completion.usage.completion_tokens == last + 1


def test_the_end_of_turn_is_taken_from_the_template(llama: Path) -> None:
    assert ChatTokenizer(str(llama)).end_tokens() == set(ENDS)


# ---------------------------------------------------------------- what cannot be done


def test_a_prompt_that_fills_the_context_is_an_error_and_not_cut(llama: Path) -> None:
    with pytest.raises(NoReplyError, match=r"prompt has \d+ tokens.*context window of 512") as caught:
        ask(llama, [Message(Role.USER, SENTENCES[0] * 40)])
    assert caught.value.kind == "context_length"


def test_a_reply_that_outgrows_the_context_is_cut_there(tmp_path: Path) -> None:
    folder = save_tiny_llama(tmp_path, max_position_embeddings=64)
    long, short = (Message(Role.USER, text) for text in (" ".join(["the list"] * 12), "Which one?"))

    async def run() -> tuple[Any, ...]:
        async with opened(folder) as model:
            return tuple(
                await asyncio.gather(
                    model.complete([long], n=2, sampling=Sampling(temperature=0, max_tokens=60), seed=0),
                    model.complete([short], n=1, sampling=Sampling(temperature=0, max_tokens=30), seed=0),
                )
            )

    cut, completions = asyncio.run(run())
    for completion in cut:
        prompt = cut[0].usage.prompt_tokens
        assert (completion.finish, prompt + completion.usage.completion_tokens) == ("length", 64)
    assert completions[0].usage.completion_tokens == 30


@pytest.mark.parametrize("case", ["missing", "empty", "damaged", "no weights", "no template"])
def test_a_folder_without_a_chat_model_is_refused_in_one_line(case: str, llama: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    if case == "empty":
        folder.mkdir()
    elif case != "missing":
        shutil.copytree(llama, folder)
    if case == "damaged":
        (folder / "model.safetensors").write_bytes(b"x")
    elif case == "no weights":
        weights = load_file(folder / "model.safetensors")
        del weights["lm_head.weight"]
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    elif case == "no template":
        (folder / "chat_template.jinja").unlink()
    complaint = {"no template": "no chat template", "no weights": "lacks weights.*lm_head.weight"}
    with pytest.raises(UsageError, match=complaint.get(case, "cannot load")) as refusal:
        LocalModel(str(folder), name="hf:x")
    assert len(str(refusal.value).splitlines()) == 1
    assert str(folder) in str(refusal.value)


def test_a_network_with_a_recurrent_state_is_refused(tmp_path: Path) -> None:
    config = MambaConfig(vocab_size=400, hidden_size=32, num_hidden_layers=2, state_size=4)
    with pytest.raises(UsageError, match="openai:MODEL@URL"):
        LocalModel(str(save_random(tmp_path, config)), name="hf:x")


def test_images_are_refused(llama: Path) -> None:
    with pytest.raises(UsageError, match="text only"):
        ask(llama, [Message(Role.USER, "Look", images=(b"png",))])


def test_a_chat_that_the_template_refuses_is_the_models_error(llama: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(llama, tmp_path / "copy")
    template = folder / "chat_template.jinja"
    refusal = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}"
    template.write_text(refusal + template.read_text())
    with pytest.raises(ModelError, match="no system"):
        ask(folder, [Message(Role.SYSTEM, "Be brief."), *CHAT])
    assert ask(folder, max_tokens=2)


def test_logits_that_are_no_numbers_are_the_models_error(tmp_path: Path) -> None:
    folder = save_tiny_llama(tmp_path)
    broken = AutoModelForCausalLM.from_pretrained(folder)
    broken.lm_head.weight.data[5] = torch.nan
    broken.save_pretrained(folder)
    with pytest.raises(ModelError, match="not finite"):
        ask(folder)


# ---------------------------------------------------------------- leaving early


def test_a_cancelled_request_leaves_the_batch(llama: Path) -> None:
    async def run() -> int:
        async with opened(llama) as model:
            endless = Sampling(max_tokens=400, temperature=0)
            doomed = asyncio.create_task(model.complete(CHAT, n=4, sampling=endless, seed=0))
            await model.complete(CHAT, n=1, sampling=Sampling(max_tokens=5, temperature=0), seed=0)
            doomed.cancel()
            with pytest.raises(asyncio.CancelledError):
                await doomed
            await model.complete(CHAT, n=1, sampling=Sampling(max_tokens=5, temperature=0), seed=0)
            assert model._engine._batch == []
            return model.counters.tokens_drawn

    assert asyncio.run(run()) < 4 * 400


def test_closing_fails_what_is_open_and_what_comes_later(llama: Path) -> None:
    async def run() -> None:
        model = LocalModel(str(llama), name="hf:tiny")
        endless = Sampling(max_tokens=400, temperature=0)
        waiting = [
            asyncio.create_task(model.complete(CHAT, n=16, sampling=endless, seed=0)) for _ in range(2)
        ]
        await asyncio.sleep(0)
        await model.close()
        for each in waiting:
            with pytest.raises(ModelError, match="closed"):
                await each
        with pytest.raises(ModelError, match="closed"):
            await model.complete(CHAT, n=1, sampling=GREEDY, seed=0)
        assert not model._engine._thread.is_alive()

    asyncio.run(run())


def test_a_breakdown_fails_the_open_requests_and_not_the_next(
    llama: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        async with opened(llama) as model:
            (expected,) = await model.complete(CHAT, n=1, sampling=GREEDY, seed=0)
            with monkeypatch.context() as patch:

                def out_of_memory(*_: Any) -> None:
                    raise RuntimeError("out of memory")

                patch.setattr(model._network, "extend", out_of_memory)
                with pytest.raises(ModelError, match="RuntimeError: out of memory"):
                    await model.complete(CHAT, n=2, sampling=GREEDY, seed=0)
            (completion,) = await model.complete(CHAT, n=1, sampling=GREEDY, seed=0)
            assert completion.text == expected.text

    asyncio.run(run())


# ---------------------------------------------------------------- a real model


@pytest.mark.slow
def test_a_real_model_chats() -> None:
    chat = [
        Message(Role.SYSTEM, "You are a helpful assistant."),
        Message(Role.USER, "What is the capital of France?"),
    ]

    async def run() -> tuple[Completion, LocalModel]:
        async with opened(require_smollm2()) as model:
            (first,) = await model.complete(chat, n=1, sampling=GREEDY, seed=0)
            longer = [*chat, Message(Role.ASSISTANT, first.text), Message(Role.USER, "And of Italy?")]
            await model.complete(longer, n=1, sampling=GREEDY, seed=0)
            return first, model

    first, model = asyncio.run(run())
    assert "Paris" in first.text
    assert first.finish == "stop"
    # The reply of a trained model is read back as the tokens that were drawn, so the second turn reuses it.
    assert model.counters.tokens_reused >= first.usage.prompt_tokens + first.usage.completion_tokens - 1


def test_the_tiny_llama_is_a_plain_checkpoint(llama: Path) -> None:
    assert AutoConfig.from_pretrained(llama).model_type == "llama"
    assert ChatTokenizer(str(llama)).decode(AutoTokenizer.from_pretrained(llama).encode("çà ½")) == "çà ½"
