import asyncio

import pytest

from sweetrl.errors import ModelError, UsageError
from sweetrl.models.scripted import SCRIPTS, ScriptedModel, script_named
from sweetrl.types import Completion, Message, Role, Sampling

CHAT = [Message(Role.USER, "one two three")]


def ask(model: ScriptedModel, chat: list[Message] = CHAT, *, n: int = 1, seed: int = 0, **sampling: object):
    return asyncio.run(model.complete(chat, n=n, sampling=Sampling(**sampling), seed=seed))


def test_lines_follow_the_turns_of_the_chat() -> None:
    model = ScriptedModel(["first", "second"])
    later = [*CHAT, Message(Role.ASSISTANT, "first"), Message(Role.USER, "go on")]
    assert ask(model, later)[0].text == "second"
    assert ask(model)[0].text == "first"


def test_a_script_that_is_too_short_is_a_model_error() -> None:
    with pytest.raises(ModelError, match="turn 1 needs one more") as caught:
        ask(ScriptedModel([]))
    assert caught.value.kind == "script_over"


def test_samples_of_a_function_get_different_seeds_and_the_first_one_the_callers() -> None:
    texts = [each.text for each in ask(ScriptedModel(lambda _, seed: str(seed)), n=5, seed=9)]
    assert texts[0] == "9"
    assert len(set(texts)) == 5


def test_tokens_are_words_and_the_prompt_is_counted_once() -> None:
    usages = [each.usage for each in ask(ScriptedModel(["a b"]), n=2)]
    assert [(usage.prompt_tokens, usage.completion_tokens) for usage in usages] == [(3, 2), (0, 2)]


def test_a_long_line_is_cut_at_the_token_limit() -> None:
    [completion] = ask(ScriptedModel(["a  b c d"]), max_tokens=2)
    assert completion == Completion(text="a  b", finish="length", usage=completion.usage)


def test_a_line_ends_before_the_earliest_stop() -> None:
    [completion] = ask(ScriptedModel(["a b STOP c END"]), stop=("END", "STOP"))
    assert (completion.text, completion.finish) == ("a b ", "stop")


def test_latency_may_depend_on_the_seed() -> None:
    async def run() -> list[int]:
        model = ScriptedModel(["x"], latency=lambda seed: seed / 100)
        order: list[int] = []

        async def one(seed: int) -> None:
            await model.complete(CHAT, n=1, sampling=Sampling(), seed=seed)
            order.append(seed)

        await asyncio.gather(one(8), one(0), one(4))
        return order

    assert asyncio.run(run()) == [0, 4, 8]


def test_one_text_is_not_taken_for_a_list_of_letters() -> None:
    with pytest.raises(TypeError):
        ScriptedModel("hello")


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_named_scripts_depend_on_chat_and_seed_alone(name: str) -> None:
    first, again = (ask(ScriptedModel(script_named(name)), seed=5) for _ in range(2))
    assert first == again
    assert first[0].text


def test_the_curious_agent_answers_after_two_questions() -> None:
    model, chat, said = ScriptedModel(script_named("curious")), list(CHAT), []
    for _ in range(3):
        said.append(ask(model, chat)[0].text)
        chat += [Message(Role.ASSISTANT, said[-1]), Message(Role.USER, "hm")]
    assert [text.startswith("I WANT TO ANSWER:") for text in said] == [False, False, True]


def test_an_unknown_script_gets_a_suggestion() -> None:
    with pytest.raises(UsageError, match="did you mean 'echo'"):
        script_named("ecko")
