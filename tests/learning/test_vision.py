"""The critic that sees, on tiny random vision-language models of three architectures."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from learning import tiny_vision
from learning.tiny_vision import draw
from sweetrl.critics import load_critic
from sweetrl.critics.critic_type import CriticTools
from sweetrl.critics.vision import VisionCritic
from sweetrl.domains.frontend.secret import FrontendSecret
from sweetrl.errors import DataError, ModelError, UsageError
from sweetrl.learning.algorithms import default_settings
from sweetrl.learning.batches import Example, TokenBatch
from sweetrl.learning.checkpoints import RunFolder, TrainingCard
from sweetrl.learning.datasets import Dataset, dialogue_pairs
from sweetrl.learning.heads import SCORE_HEAD_FILE, add_score_head, candidate_scores, turn_scores
from sweetrl.learning.pictures import PictureReader, load_pictures
from sweetrl.learning.run_options import RunOptions
from sweetrl.learning.settings import CriticKind, LoraSettings
from sweetrl.learning.tokens import EncodedSequence
from sweetrl.learning.trainer import train
from sweetrl.learning.vision import (
    VisionEncoder,
    VisionEncoding,
    collate_vision,
)
from sweetrl.types import Ending, Episode, EpisodePair, Message, Reply, Role, Task, Turn

ARCHITECTURES = sorted(tiny_vision.MADE)
STORED = ("idefics", "llava")
"""Those whose processors can be loaded without further packages."""
TOLD = "The picture is the page that is wanted."
SYSTEM = "Be kind."
COLOURS = ("red", "blue", "green", "orange")

# Old versions of the same layer are deprecated by libraries that load each other.
pytestmark = pytest.mark.filterwarnings("default::DeprecationWarning")


def task(colour: str) -> Task:
    page = FrontendSecret(f"<html>{colour}</html>")
    return Task(id=colour, domain="frontend", request="A shop.", secret=page)


def episode(colour: str, attempt: int) -> Episode:
    """Only the picture tells which attempt is right. Words like a picture's make two sequences of orange ones."""
    first = "<html>first</html>" + (" <image> <|image_pad|>" if colour == "orange" else "")
    others = COLOURS[COLOURS.index(colour) - 1]
    last = f"I WANT TO ANSWER: {colour if attempt == 0 else others}"
    turns = (Turn(first, first, Reply("Wrong colour.")), Turn(last, last))
    return Episode(
        task_id=colour,
        attempt=attempt,
        seed=0,
        agent="a",
        collaborator="c",
        request="A shop.",
        turns=turns,
        ending=Ending.ANSWERED,
        answer=last,
    )


TASKS = {colour: task(colour) for colour in COLOURS}
EPISODES = {each.id: each for colour in COLOURS for each in (episode(colour, 0), episode(colour, 1))}
PAIRS = [EpisodePair(task_id=each, chosen=f"{each}#0", rejected=f"{each}#1", margin=0.5) for each in COLOURS]


class Album:
    """Pictures of the tasks' pages, of different sizes."""

    def __init__(self, folder: Path) -> None:
        self._paths = {
            colour: draw(folder / f"{colour}.png", colour, height=64 if at % 2 else 180)
            for at, colour in enumerate(COLOURS)
        }

    def of(self, task: Task) -> Path:
        return self._paths[task.id]

    async def made(self, task: Task) -> Path:
        return self.of(task)


@pytest.fixture(scope="module")
def album(tmp_path_factory: pytest.TempPathFactory) -> Album:
    return Album(tmp_path_factory.mktemp("pictures"))


@pytest.fixture(scope="module", params=ARCHITECTURES)
def made(request: pytest.FixtureRequest) -> tuple[Any, PictureReader]:
    """A random model with a random head, and its processor."""
    model, processor = tiny_vision.make(request.param)
    add_score_head(model)
    torch.nn.init.normal_(model.score_head.weight)
    return model, PictureReader(processor)


def encoding(pictures: PictureReader, album: Album) -> VisionEncoding:
    encoder = VisionEncoder(pictures, max_tokens=tiny_vision.LENGTH)
    return VisionEncoding(encoder, SYSTEM, lambda _: TOLD, picture=album.of)


def batch_of(pictures: PictureReader, album: Album, *colours: str) -> TokenBatch:
    encode = encoding(pictures, album)
    pairs = [pair for pair in PAIRS if pair.task_id in colours]
    return collate_vision(dialogue_pairs(pairs, EPISODES, encode, TASKS).examples, pictures)


def scores(model: Any, batch: TokenBatch) -> Tensor:
    with torch.no_grad():
        return turn_scores(model, batch, CriticKind.REGRESSION)


# ---------------------------------------------------------------- tokens


def test_a_picture_takes_the_place_that_the_template_leaves_for_it(made, album) -> None:
    _, pictures = made
    [sequence] = encoding(pictures, album).dialogue(episode("red", 0), TASKS["red"])
    shown = list(pictures.tokens(album.of(TASKS["red"])).ids)
    starts = [at for at in range(len(sequence.ids)) if sequence.ids[at : at + len(shown)] == shown]
    assert len(starts) == 1
    text = pictures.tokenizer.decode(sequence.ids[: starts[0]] + sequence.ids[starts[0] + len(shown) :])
    assert text.index(SYSTEM) < text.index(TOLD) < text.index("A shop.") < text.index("Wrong colour.")
    assert all(turn == -1 for turn in sequence.turns[: starts[0] + len(shown)])
    assert sequence.picture == album.of(TASKS["red"])


def test_the_number_of_tokens_is_the_processors_own(made, album) -> None:
    _, pictures = made
    encoder = VisionEncoder(pictures, max_tokens=tiny_vision.LENGTH).showing(album.of(TASKS["red"]))
    encoded = encoder.candidates([Message(Role.USER, "A shop.")], ["Yes."], privileged=TOLD)
    from PIL import Image

    parts = [{"type": "image"}, {"type": "text", "text": f"{TOLD}\n\nA shop."}]
    text = pictures.processor.apply_chat_template(
        [{"role": "user", "content": parts}], add_generation_prompt=True
    )
    picture = Image.open(album.of(TASKS["red"])).convert("RGB")
    whole = pictures.processor(text=[text], images=[[picture]], add_special_tokens=False)["input_ids"][0]
    assert encoded.prefix == list(whole)


def test_words_that_look_like_a_picture_are_words(made, album) -> None:
    _, pictures = made
    token = pictures.processor.image_token
    encoder = VisionEncoder(pictures, max_tokens=tiny_vision.LENGTH).showing(album.of(TASKS["red"]))
    history = [
        Message(Role.USER, f"A {token} please."),
        Message(Role.ASSISTANT, f"Look: {token}"),
        Message(Role.USER, f"{token}{token}?"),
    ]
    encoded = encoder.candidates(history, [f"{token}!"])
    placeholder = pictures.tokenizer.convert_tokens_to_ids(token)
    wanted = pictures.tokens(album.of(TASKS["red"])).ids.count(placeholder)
    assert encoded.prefix.count(placeholder) == wanted
    assert encoded.continuations[0].count(placeholder) == 0


def test_long_histories_lose_turns_but_never_the_picture(made, album) -> None:
    _, pictures = made
    shown = album.of(TASKS["red"])
    history = [Message(Role.USER, "A shop.")]
    for turn in range(4):
        history += [Message(Role.ASSISTANT, f"draft {turn} " * 10), Message(Role.USER, "Larger.")]
    room = len(pictures.tokens(shown).ids) + 150
    encoded = VisionEncoder(pictures, max_tokens=room).showing(shown).candidates(history, ["Yes."])
    assert 0 < encoded.cut < 4
    assert len(encoded.prefix) + len(encoded.continuations[0]) <= room
    ids = tuple(encoded.prefix)
    wanted = pictures.tokens(shown).ids
    assert any(ids[at : at + len(wanted)] == wanted for at in range(len(ids)))
    with pytest.raises(DataError, match="raise max_tokens"):
        VisionEncoder(pictures, max_tokens=20).showing(shown).candidates(history, ["Yes."])


def test_a_template_without_a_place_for_pictures_is_refused(album) -> None:
    _, processor = tiny_vision.make("llava")
    processor.chat_template = tiny_vision.TEMPLATE.replace("PICTURE", "")
    encoder = VisionEncoder(PictureReader(processor), max_tokens=500).showing(album.of(TASKS["red"]))
    with pytest.raises(UsageError, match="the chat template has no place for a picture"):
        encoder.candidates([Message(Role.USER, "A shop.")], ["Yes."])


def test_a_task_is_needed(made, album) -> None:
    _, pictures = made
    with pytest.raises(DataError, match="needs the task"):
        encoding(pictures, album).dialogue(episode("red", 0))


# ---------------------------------------------------------------- scores


def test_a_turn_is_scored_by_the_mean_over_all_visual_and_text_tokens_up_to_its_end(made, album) -> None:
    model, pictures = made
    [sequence] = encoding(pictures, album).dialogue(episode("red", 0), TASKS["red"])
    found = scores(model, collate_vision([Example("a", (sequence,))], pictures)).tolist()
    for turn in (0, 1):
        end = max(at for at, mark in enumerate(sequence.turns) if mark == turn) + 1
        ids = torch.tensor([sequence.ids[:end]])
        with torch.no_grad():
            seen = pictures.inputs([album.of(TASKS["red"])], ids)
            states = model.model(input_ids=ids, **seen).last_hidden_state[0]
            wanted = model.score_head(states.mean(0))
        assert found[turn] == pytest.approx(float(wanted), abs=1e-4)


def test_the_score_changes_with_the_reference_and_with_nothing_else_than_its_picture(made, album) -> None:
    model, pictures = made
    first, second = (task("red"), task("blue"))

    def scored(picture: Path) -> Tensor:
        encode = VisionEncoding(
            VisionEncoder(pictures, max_tokens=tiny_vision.LENGTH),
            SYSTEM,
            lambda _: TOLD,
            picture=lambda _: picture,
        )
        return scores(
            model, collate_vision([Example("a", encode.dialogue(episode("red", 0), first))], pictures)
        )

    red, blue = (draw(album.of(first).parent / f"same-{name}.png", name) for name in ("red", "blue"))
    assert (scored(red) - scored(blue)).abs().min() > 1e-3
    assert torch.equal(scored(red), scored(red))
    assert second.request == first.request


def test_neither_padding_nor_company_changes_a_score(made, album) -> None:
    model, pictures = made
    together = scores(model, batch_of(pictures, album, *COLOURS))
    alone = torch.cat([scores(model, batch_of(pictures, album, colour)) for colour in sorted(COLOURS)])
    assert together.tolist() == pytest.approx(alone.tolist(), abs=1e-5)


def test_gradients_reach_the_head_the_language_model_and_the_eyes(made, album) -> None:
    model, pictures = made
    model.zero_grad()
    turn_scores(model, batch_of(pictures, album, "red"), CriticKind.REGRESSION).sum().backward()
    reached = {
        name for name, weight in model.named_parameters() if weight.grad is not None and weight.grad.any()
    }
    assert "score_head.weight" in reached
    assert any("layers.0" in name and ("language_model" in name or "text_model" in name) for name in reached)
    assert any("vis" in name and "0" in name for name in reached)


def test_candidates_share_a_history_and_get_the_scores_of_whole_sequences(made, album) -> None:
    model, pictures = made
    shown = album.of(TASKS["red"])
    encoder = VisionEncoder(pictures, max_tokens=tiny_vision.LENGTH).showing(shown)
    history = episode("red", 0).history(1)
    encoded = encoder.candidates(history, ["<html>one</html>", "", "Yes, and then some more of it?"])
    seen = pictures.inputs([shown], torch.tensor([encoded.prefix]))
    [found] = candidate_scores(model, [encoded], CriticKind.REGRESSION, seen)
    wanted = []
    for each in encoded.continuations:
        marks = [-1] * len(encoded.prefix) + [0] * len(each)
        whole = EncodedSequence(encoded.prefix + each, marks, picture=shown)
        wanted += scores(model, collate_vision([Example("a", (whole,))], pictures)).tolist()
    assert list(found) == pytest.approx(wanted, abs=1e-5)


# ---------------------------------------------------------------- training


def stored(pictures: PictureReader, album: Album) -> Dataset:
    return dialogue_pairs(PAIRS, EPISODES, encoding(pictures, album), TASKS)


def run(
    model: Path, folder: Path, album: Album, *, run_options: RunOptions | None = None, **changes: Any
) -> Any:
    quick = {"learning_rate": 1e-2, "batch_size": 4, "epochs": 30, "max_tokens": tiny_vision.LENGTH}
    settings = default_settings("critic", kind=CriticKind.REGRESSION, vision=True, **{**quick, **changes})
    card = TrainingCard(model=str(model), settings=settings, system=SYSTEM, privileged_prompt=TOLD)
    pictures = load_pictures(str(model))
    with RunFolder(folder) as claimed:
        card = claimed.claim(card)
        return train(stored(pictures, album), pictures.processor, card, claimed, run_options)


@pytest.fixture(scope="module", params=STORED)
def seed_model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_vision.save(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def trained(
    seed_model: Path, album: Album, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, list[float]]:
    folder = tmp_path_factory.mktemp("critic")
    losses: list[float] = []
    run(seed_model, folder, album, run_options=RunOptions(observe=lambda now: losses.append(now.loss)))
    return folder, losses


def test_a_preference_that_only_the_picture_settles_is_learned(trained) -> None:
    _, losses = trained
    assert losses[0] == pytest.approx(0.693, abs=0.01)
    # Each colour is right once and wrong once: whoever does not look stays at log 2.
    assert losses[-1] < 0.6


def test_a_loaded_critic_says_what_the_trainer_said(trained, album) -> None:
    folder, _ = trained
    critic = load_critic(folder, CriticTools(pictures=lambda: album.made))
    assert isinstance(critic, VisionCritic)
    batch = collate_vision(stored(critic._pictures, album).examples, critic._pictures)
    wanted = scores(critic._model, batch).tolist()
    found: list[float] = []
    for pair in sorted(PAIRS, key=lambda each: each.id):
        for one in (EPISODES[pair.chosen], EPISODES[pair.rejected]):
            for turn, said in enumerate(one.turns):
                found += asyncio.run(critic.advantages(TASKS[pair.task_id], one.history(turn), [said.output]))
    assert found == pytest.approx(wanted, abs=1e-5)
    chosen, rejected = (torch.tensor(found).view(-1, 2, 2).sum(2)[:, side] for side in (0, 1))
    assert (chosen > rejected).all()


def test_a_turn_that_is_too_long_for_it_is_one_failure(trained, album) -> None:
    folder, _ = trained
    critic = load_critic(folder, CriticTools(pictures=lambda: album.made))
    with pytest.raises(ModelError, match="that the critic reads"):
        asyncio.run(critic.advantages(TASKS["red"], episode("red", 0).history(0), ["word " * 20_000]))


def test_the_folder_is_a_plain_model_with_a_head_beside_it(trained) -> None:
    from transformers import AutoModelForImageTextToText

    folder, _ = trained
    again, found = AutoModelForImageTextToText.from_pretrained(folder, output_loading_info=True)
    assert not found["missing_keys"]
    assert not found["unexpected_keys"]
    assert again.num_parameters() > 0
    assert (folder / SCORE_HEAD_FILE).is_file()
    with pytest.raises(UsageError, match="this critic is shown pages"):
        load_critic(folder)


def test_an_interrupted_run_goes_on_to_the_same_weights(seed_model, album, tmp_path) -> None:
    def stop(now: Any) -> None:
        if now.step == 3:
            raise InterruptedError

    run(seed_model, tmp_path / "whole", album, epochs=5)
    with pytest.raises(InterruptedError):
        run(
            seed_model,
            tmp_path / "torn",
            album,
            epochs=5,
            run_options=RunOptions(save_every=2, observe=stop),
        )
    assert (tmp_path / "torn/checkpoints/checkpoint-2").is_dir()
    run(seed_model, tmp_path / "torn", album, epochs=5)
    one, other = (
        load_critic(tmp_path / name, CriticTools(pictures=lambda: album.made)) for name in ("whole", "torn")
    )
    for (name, weight), again in zip(
        one._model.state_dict().items(), other._model.state_dict().values(), strict=True
    ):
        assert torch.allclose(weight, again, atol=1e-6), name


def test_adapters_are_worked_into_a_plain_folder(seed_model, album, tmp_path) -> None:
    pytest.importorskip("peft")
    run(seed_model, tmp_path / "critic", album, epochs=2, lora=LoraSettings(rank=2, alpha=4))
    critic = load_critic(tmp_path / "critic", CriticTools(pictures=lambda: album.made))
    [found] = asyncio.run(critic.advantages(TASKS["red"], episode("red", 0).history(0), ["Yes."]))
    assert found != 0


def test_a_language_model_without_eyes_is_refused(tmp_path) -> None:
    from models.tiny_llama import save_tiny_llama

    with pytest.raises(UsageError, match="has no processor of pictures and text"):
        load_pictures(str(save_tiny_llama(tmp_path)))
