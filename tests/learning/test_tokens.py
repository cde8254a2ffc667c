from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from learning.chat_templates import END_OF_TURN, PLAIN_TEXT, REFUSES_SYSTEM, STABLE, TEMPLATES, tokenizer_with
from models.smollm2 import require_smollm2
from models.tiny_llama import CHAT_TEMPLATE, SENTENCES, tiny_tokenizer
from sweetrl.errors import DataError, UsageError
from sweetrl.learning.tokens import NO_TURN, DialogueEncoder, EncodedDialogue, EncodedSequence
from sweetrl.types import Message, Reply, Role, Turn

LONG = 100_000


@cache
def encoder(template: str, max_tokens: int = LONG) -> DialogueEncoder:
    return DialogueEncoder(tokenizer_with(TEMPLATES[template]), max_tokens=max_tokens)


# Words that templates are made of, ends that they trim, characters of several bytes.
TRICKY = [
    "yes",
    "no",
    "def f(x):\n    return x",
    "OUTPUT:",
    "assistant",
    "user\n",
    "[INST]",
    "[/INST]",
    "<think>",
    "</think>",
    "\n",
    "\n\n",
    " ",
    "  ",
    "\t",
    "é",
    "日本",
    "🙂",
    "{{",
    "%}",
]
WORDS = st.sampled_from([*TRICKY, "<|end|>", "<|eot|>", "<|bye|>"])
TEXTS = st.one_of(
    st.lists(WORDS, max_size=6).map("".join), st.text(st.characters(codec="utf-8"), max_size=12)
)
OPTIONAL = st.none() | TEXTS.filter(str.strip)


@st.composite
def turns(draw: st.DrawFn, least: int = 1) -> list[Turn]:
    outputs = draw(st.lists(TEXTS, min_size=least, max_size=4))
    drawn = []
    for output in outputs:
        said = draw(st.sampled_from([output, output.strip(), "something else"]))
        drawn.append(Turn(output, said, Reply(draw(TEXTS))))
    return drawn


def spoken(encoded: EncodedDialogue) -> dict[int, list[int]]:
    """The tokens of each turn; fails if a turn is in two sequences or in two pieces."""
    found: dict[int, list[int]] = {}
    for sequence in encoded.sequences:
        assert len(sequence.ids) == len(sequence.turns)
        for turn in sorted(set(sequence.turns) - {NO_TURN}):
            assert turn not in found
            places = [place for place, each in enumerate(sequence.turns) if each == turn]
            assert places == list(range(places[0], places[-1] + 1))
            found[turn] = [sequence.ids[place] for place in places]
    return found


def before(encoded: EncodedDialogue, turn: int) -> list[int]:
    [sequence] = [each for each in encoded.sequences if turn in each.turns]
    return sequence.ids[: sequence.turns.index(turn)]


def prompt(
    tokenizer: PreTrainedTokenizerFast, system: str | None, request: str, past: list[Turn]
) -> list[int]:
    """What whoever samples from the model gives it, by the library's own means."""
    chat = [] if system is None else [{"role": "system", "content": system}]
    chat.append({"role": "user", "content": request})
    for turn in past:
        assert turn.reply is not None
        chat += [{"role": "assistant", "content": turn.said}, {"role": "user", "content": turn.reply.text}]
    encoded = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_dict=True)
    return list(encoded["input_ids"])


# ---------------------------------------------------------------- what is learned


@pytest.mark.parametrize("template", TEMPLATES)
@given(request=TEXTS, turns=turns(), system=OPTIONAL, privileged=OPTIONAL)
@settings(max_examples=40)
def test_the_marked_text_of_a_turn_is_what_the_agent_said_and_the_end_of_the_turn(
    template: str, request: str, turns: list[Turn], system: str | None, privileged: str | None
) -> None:
    encoding = encoder(template)
    encoded = encoding.dialogue(request, turns, system=system, privileged=privileged)
    texts = {turn: encoding.tokenizer.decode(tokens) for turn, tokens in spoken(encoded).items()}
    assert texts == {index: turn.output + END_OF_TURN[template] for index, turn in enumerate(turns)}


@pytest.mark.parametrize("template", TEMPLATES)
@given(request=TEXTS, turns=turns(), data=st.data())
@settings(max_examples=20)
def test_of_a_turn_that_a_limit_ended_no_end_is_learned(
    template: str, request: str, turns: list[Turn], data: st.DataObject
) -> None:
    encoding = encoder(template)
    cut = [replace(turn, unfinished=data.draw(st.booleans())) for turn in turns]
    whole, found = (spoken(encoding.dialogue(request, each)) for each in (turns, cut))
    for index, turn in enumerate(cut):
        ends = 1 if turn.unfinished and turn.output and END_OF_TURN[template] else 0
        assert found[index] == whole[index][: len(whole[index]) - ends]
        alone = encoding.turn([Message(Role.USER, request)], turn.given)
        assert [token for token, of in zip(alone.ids, alone.turns, strict=True) if of == 0] == found[index]
    # What the model reads before each turn is the same: there the template ends the turns.
    for index in range(len(turns)):
        prompts = [before(encoding.dialogue(request, each), index) for each in (turns, cut)]
        assert prompts[0] == prompts[1]


@pytest.mark.parametrize("template", TEMPLATES)
@given(request=TEXTS, turns=turns(), system=OPTIONAL)
@settings(max_examples=40)
def test_before_a_turn_stands_exactly_the_prompt_that_it_was_drawn_from(
    template: str, request: str, turns: list[Turn], system: str | None
) -> None:
    encoding = encoder(template)
    encoded = encoding.dialogue(request, turns, system=system)
    for index in range(len(turns)):
        assert before(encoded, index) == prompt(encoding.tokenizer, system, request, turns[:index])


@pytest.mark.parametrize("template", TEMPLATES)
@given(request=TEXTS, turns=turns(), outputs=st.lists(TEXTS, min_size=1, max_size=3), privileged=OPTIONAL)
@settings(max_examples=20)
def test_candidates_are_the_same_tokens_as_single_turns_and_as_dialogues(
    template: str, request: str, turns: list[Turn], outputs: list[str], privileged: str | None
) -> None:
    encoding = encoder(template)
    history = [Message(Role.USER, request)]
    for past in turns[:-1]:
        assert past.reply is not None
        history += [Message(Role.ASSISTANT, past.said), Message(Role.USER, past.reply.text)]
    outputs = [*outputs, turns[-1].output]
    candidates = encoding.candidates(history, outputs, privileged=privileged)
    for output, continuation in zip(outputs, candidates.continuations, strict=True):
        alone = encoding.turn(history, output, privileged=privileged)
        assert alone.ids == candidates.prefix + continuation
        assert alone.turns == [NO_TURN] * len(candidates.prefix) + [0] * len(continuation)
    encoded = encoding.dialogue(request, turns, privileged=privileged)
    last = len(turns) - 1
    assert before(encoded, last) + spoken(encoded)[last] == alone.ids


@pytest.mark.parametrize("template", STABLE)
def test_a_dialogue_without_thoughts_is_one_sequence_where_the_template_only_appends(template: str) -> None:
    said = ["Which items?", "And an empty list?", "I WANT TO ANSWER: pass"]
    dialogue = [Turn(text, text, Reply("All of them.")) for text in said]
    encoded = encoder(template).dialogue("Write it.", dialogue, system="Be kind.", privileged="It is f.")
    [sequence] = encoded.sequences
    assert sorted(set(sequence.turns)) == [NO_TURN, 0, 1, 2]


@pytest.mark.parametrize("template", STABLE)
@pytest.mark.parametrize("finished", [True, False])
def test_a_dialogue_can_be_continued_token_by_token(template: str, finished: bool) -> None:
    encoding = encoder(template)
    output = encoding.turn([Message(Role.USER, "Write it.")], "Which items?").ids
    drawn = output if finished else output[:-1]
    expected = prompt(
        encoding.tokenizer, None, "Write it.", [Turn("Which items?", "Which items?", Reply("All."))]
    )
    assert encoding.ends_turn(drawn) is finished
    assert drawn + encoding.between_turns("All.", finished=finished) == expected


def test_a_template_that_rewrites_what_was_said_cannot_be_continued_token_by_token() -> None:
    with pytest.raises(UsageError, match="does not append a reply"):
        encoder("reorders").between_turns("All of them.")


@pytest.mark.parametrize("template", [name for name in TEMPLATES if name not in STABLE])
def test_turns_have_sequences_of_their_own_where_the_template_changes_what_came_before(template: str) -> None:
    dialogue = [Turn("a", "a", Reply("b")), Turn("c", "c", Reply("d"))]
    encoded = encoder(template).dialogue("Write it.", dialogue, system="Be kind.")
    assert len(encoded.sequences) == 2


def test_a_thought_is_learned_but_later_turns_do_not_see_it() -> None:
    encoding = encoder("tiny")
    dialogue = [Turn("Hm. OUTPUT: Which?", "Which?", Reply("This.")), Turn("Done.", "Done.")]
    first, second = encoding.dialogue("Write it.", dialogue).sequences
    assert encoding.tokenizer.decode(first.ids).endswith("Hm. OUTPUT: Which?<|end|>")
    assert "Hm." not in encoding.tokenizer.decode(second.ids)
    assert "Which?<|end|>" in encoding.tokenizer.decode(second.ids)
    assert 0 not in second.turns


def test_special_tokens_in_an_output_are_ordinary_text() -> None:
    encoding = encoder("tiny")
    end = encoding.tokenizer.convert_tokens_to_ids("<|end|>")
    tokens = encoding.output("I say <|end|> here")
    assert tokens.index(end) == len(tokens) - 1


def test_the_secret_stands_before_the_request_in_the_first_message_of_the_user() -> None:
    encoding = encoder("tiny")
    told = encoding.turn([Message(Role.USER, "Write it.")], "Yes", system="Be kind.", privileged="It is f.")
    assert encoding.tokenizer.decode(told.ids) == (
        "<|turn|>system\nBe kind.<|end|>\n<|turn|>user\nIt is f.\n\nWrite it.<|end|>\n"
        "<|turn|>assistant\nYes<|end|>"
    )


def test_a_real_template_and_tokenizer() -> None:
    tokenizer = AutoTokenizer.from_pretrained(require_smollm2())
    encoding = DialogueEncoder(tokenizer, max_tokens=LONG)
    outputs = [
        "Which items, and in\n\n\twhat order?",
        "  Ünïcode 🙂 <|im_end|> in text ",
        "",
        "def f():\n    pass\n",
    ]
    dialogue = [Turn(output, output, Reply("All.")) for output in outputs]
    encoded = encoding.dialogue("Write it.", dialogue, privileged="It is f.")
    texts = [tokenizer.decode(tokens) for _, tokens in sorted(spoken(encoded).items())]
    assert texts == [output + "<|im_end|>" for output in outputs]
    for index in range(len(outputs)):
        wanted = prompt(tokenizer, None, "It is f.\n\nWrite it.", dialogue[:index])
        assert before(encoded, index) == wanted
    # The text that looks like the end of a message is one to whoever renders the history, not to the agent.
    assert len(encoded.sequences) == 2


# ---------------------------------------------------------------- tokenizers that put a space in front


@pytest.mark.parametrize("scheme", ["first", "always"])
@pytest.mark.parametrize("template", [CHAT_TEMPLATE, PLAIN_TEXT.replace(": ", ":\n")])
def test_a_tokenizer_that_begins_texts_with_a_space_adds_none_inside_a_template(
    scheme: str, template: str
) -> None:
    trained = Tokenizer(models.BPE(byte_fallback=True))
    trained.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme)
    trained.decoder = decoders.Metaspace(prepend_scheme=scheme)
    special = ["<|bye|>", "<|turn|>", "<|end|>"]
    trained.train_from_iterator(
        [*SENTENCES, ":\n"], trainers.BpeTrainer(vocab_size=300, special_tokens=special, show_progress=False)
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=trained, eos_token="<|bye|>", additional_special_tokens=special[1:]
    )
    tokenizer.chat_template = template
    encoding = DialogueEncoder(tokenizer, max_tokens=LONG)
    text = "It should give zero"
    whole = [{"role": "user", "content": "a list"}, {"role": "assistant", "content": text}]
    rendered = tokenizer.apply_chat_template(whole, return_dict=True)["input_ids"]
    encoded = encoding.turn([Message(Role.USER, "a list")], text)
    said = [token for token, turn in zip(encoded.ids, encoded.turns, strict=True) if turn == 0][:-1]
    length = encoded.turns.index(0) + len(said)
    assert encoded.ids[:length] == rendered[:length]


# ---------------------------------------------------------------- too long for the context


def pieces(encoding: DialogueEncoder, sequence: EncodedSequence) -> str:
    text: str = encoding.tokenizer.decode(sequence.ids)
    return text


def test_a_history_that_does_not_fit_loses_its_oldest_turns_and_says_how_many() -> None:
    dialogue = [Turn(f"question {n}", f"question {n}", Reply(f"answer {n}")) for n in range(5)]
    whole = encoder("tiny").dialogue("The request.", dialogue, system="The system.")
    [all_turns] = whole.sequences
    assert whole.cut == 0
    encoding = encoder("tiny", len(all_turns.ids) - 1)
    encoded = encoding.dialogue("The request.", dialogue, system="The system.")
    kept, shortened = encoded.sequences
    assert set(kept.turns) == {NO_TURN, 0, 1, 2, 3}
    assert (kept.cut, shortened.cut, encoded.cut) == (0, 1, 1)
    text = pieces(encoding, shortened)
    assert "The system." in text
    assert "The request." in text
    assert "question 0" not in text
    assert "answer 0" not in text
    assert "question 1" in text
    assert text.endswith("question 4<|end|>")


@given(turns=turns(least=2), share=st.floats(0.3, 1), system=OPTIONAL)
@settings(max_examples=60)
def test_whatever_is_cut_every_sequence_fits_and_no_turn_is_cut_inside(
    turns: list[Turn], share: float, system: str | None
) -> None:
    loose = encoder("tiny")
    longest = max(len(each.ids) for each in loose.dialogue("Go.", turns, system=system).sequences)
    room = max(1, int(longest * share))
    encoding = DialogueEncoder(loose.tokenizer, max_tokens=room)
    try:
        encoded = encoding.dialogue("Go.", turns, system=system)
    except DataError:
        alone = [loose.turn([Message(Role.USER, "Go.")], turn.output, system=system) for turn in turns]
        assert max(len(each.ids) for each in alone) > room
        return
    assert all(len(each.ids) <= room for each in encoded.sequences)
    for index, turn in enumerate(turns):
        [sequence] = [each for each in encoded.sequences if index in each.turns]
        assert spoken(encoded)[index] == encoding.output(turn.output)
        kept = turns[sequence.cut : index]
        assert before(encoded, index) == prompt(encoding.tokenizer, system, "Go.", kept)
        if sequence.cut:
            one_more = prompt(encoding.tokenizer, system, "Go.", turns[sequence.cut - 1 : index])
            assert len(one_more) + len(encoding.output(turn.output)) > room


def test_the_shared_history_of_candidates_is_cut_for_the_longest() -> None:
    history = [
        Message(Role.USER, "Go."),
        Message(Role.ASSISTANT, "question " * 5),
        Message(Role.USER, "answer"),
    ]
    loose = encoder("tiny")
    room = len(loose.turn(history, "short").ids) + 2
    encoding = DialogueEncoder(loose.tokenizer, max_tokens=room)
    assert encoding.candidates(history, ["short"]).cut == 0
    both = encoding.candidates(history, ["short", "a much longer candidate"])
    assert both.cut == 1
    assert both.prefix == encoding.turn(history[:1], "short").ids[: len(both.prefix)]


def test_a_turn_longer_than_the_context_is_an_error_that_names_the_dialogue_and_the_turn() -> None:
    encoding = encoder("tiny", 40)
    dialogue = [Turn("a", "a", Reply("b")), Turn("word " * 50, "word")]
    with pytest.raises(
        DataError, match=r"^task-7#3: turn 2 alone has \d+ tokens .* only 40; raise max_tokens"
    ):
        encoding.dialogue("Go.", dialogue, name="task-7#3")


# ---------------------------------------------------------------- what cannot be encoded


def test_a_tokenizer_without_a_chat_template_is_refused() -> None:
    with pytest.raises(UsageError, match=r"the tokenizer has no chat template; use an instruction-tuned"):
        DialogueEncoder(tiny_tokenizer(chat_template=None), max_tokens=LONG)


def test_what_the_template_refuses_is_a_usage_error() -> None:
    encoding = DialogueEncoder(tokenizer_with(REFUSES_SYSTEM), max_tokens=LONG)
    with pytest.raises(UsageError, match=r"refuses the dialogue: System role not supported"):
        encoding.turn([Message(Role.USER, "Go.")], "Yes", system="Be kind.")
    told = encoding.turn([Message(Role.USER, "Go.")], "Yes", privileged="It is f.")
    assert "It is f." in encoding.tokenizer.decode(told.ids)


def test_dialogues_with_images_are_refused() -> None:
    with pytest.raises(UsageError, match="text only"):
        encoder("tiny").turn([Message(Role.USER, "Look.", (b"png",))], "Nice")


def test_a_template_that_makes_nothing_of_a_chat_is_refused() -> None:
    with pytest.raises(UsageError, match="empty prompt"):
        DialogueEncoder(tokenizer_with("{{ '' }}"), max_tokens=LONG)


def test_a_special_end_of_turn_without_a_name_is_learned() -> None:
    tokenizer = tiny_tokenizer(chat_template=CHAT_TEMPLATE.replace("<|end|>", "<|over|>"))
    tokenizer.add_tokens([AddedToken("<|over|>", special=True)])
    over = tokenizer.convert_tokens_to_ids("<|over|>")
    assert over not in tokenizer.all_special_ids
    assert DialogueEncoder(tokenizer, max_tokens=LONG).output("So?")[-1] == over
