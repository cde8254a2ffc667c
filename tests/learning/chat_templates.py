"""Chat templates of our own that behave as those of well-known models do, and some that behave worse."""

from transformers import PreTrainedTokenizerFast

from models.tiny_llama import CHAT_TEMPLATE, tiny_tokenizer

# A header for every message, contents trimmed, a begin-of-text token, a default system message.
HEADERS_AND_TRIMS = (
    "<|begin|>"
    "{% if messages[0]['role'] == 'system' %}{% set first = messages[0]['content'] | trim %}"
    "{% set rest = messages[1:] %}{% else %}{% set first = '' %}{% set rest = messages %}{% endif %}"
    "<|head|>system<|/head|>\n\nKnowledge until: some day\n\n{{ first }}<|eot|>"
    "{% for message in rest %}<|head|>{{ message['role'] }}<|/head|>\n\n"
    "{{ message['content'] | trim }}<|eot|>{% endfor %}"
    "{% if add_generation_prompt %}<|head|>assistant<|/head|>\n\n{% endif %}"
)
# Contents as they are, a line break after the end token, a default system message.
KEEPS_ALL = (
    "{% for message in messages %}"
    "{% if loop.first and message['role'] != 'system' %}<|im|>system\nYou are kind.<|/im|>\n{% endif %}"
    "<|im|>{{ message['role'] }}\n{{ message['content'] }}<|/im|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im|>assistant\n{% endif %}"
)
# No system role: its text goes into the first message of the user; the assistant is called model; trims.
MERGES_SYSTEM = (
    "<|begin|>"
    "{% if messages[0]['role'] == 'system' %}{% set first = messages[0]['content'] | trim + '\n\n' %}"
    "{% set rest = messages[1:] %}{% else %}{% set first = '' %}{% set rest = messages %}{% endif %}"
    "{% for message in rest %}"
    "<|sot|>{{ 'model' if message['role'] == 'assistant' else message['role'] }}\n"
    "{{ first if loop.first else '' }}{{ message['content'] | trim }}<|eot|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|sot|>model\n{% endif %}"
)
# No system role at all.
REFUSES_SYSTEM = (
    "{% for message in messages %}"
    "{% if message['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "<|sot|>{{ message['role'] }}\n{{ message['content'] }}<|eot|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|sot|>assistant\n{% endif %}"
)
# The system's text goes into the LAST message of the user; nothing ends a user's message; a space before the
# reply that the prompt for it has not.
INSTRUCTIONS = (
    "<|begin|>"
    "{% if messages[0]['role'] == 'system' %}{% set first = messages[0]['content'] %}"
    "{% set rest = messages[1:] %}{% else %}{% set first = '' %}{% set rest = messages %}{% endif %}"
    "{% for message in rest %}{% if message['role'] == 'user' %}"
    "[INST] {% if first and loop.index0 >= (rest | length) - 2 %}{{ first + '\n\n' }}{% endif %}"
    "{{ message['content'] | trim }} [/INST]"
    "{% else %} {{ message['content'] | trim }}<|bye|>{% endif %}{% endfor %}"
)
# The latest message first, and a summary at the end that counts the messages.
REORDERS = (
    "{% for message in messages | reverse %}<|turn|>{{ message['role'] }}\n{{ message['content'] }}<|end|>\n"
    "{% endfor %}{{ messages | length }} messages\n"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)
# A reminder after each message of the user, and after the last one of all.
ADDS_TEXT = (
    "{% for message in messages %}<|turn|>{{ message['role'] }}\n{{ message['content'] }}<|end|>\n"
    "{% if message['role'] == 'user' %}<|turn|>system\nassistant: be brief<|end|>\n{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% else %}(end){% endif %}"
)
# Thoughts are opened in the prompt for a reply and in the last reply, and left out of earlier ones.
THINKS = (
    "{% for message in messages %}<|turn|>{{ message['role'] }}\n"
    "{% if message['role'] == 'assistant' and loop.last %}<think>\n\n</think>\n\n{% endif %}"
    "{{ message['content'] }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n<think>\n{% endif %}"
)
# Only ordinary characters: the end of the text has to end a turn.
PLAIN_TEXT = (
    "{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n\n{% endfor %}"
    "{% if add_generation_prompt %}assistant: {% endif %}"
)

TEMPLATES = {
    "tiny": CHAT_TEMPLATE,
    "headers and trims": HEADERS_AND_TRIMS,
    "keeps all": KEEPS_ALL,
    "merges system": MERGES_SYSTEM,
    "instructions": INSTRUCTIONS,
    "reorders": REORDERS,
    "adds text": ADDS_TEXT,
    "thinks": THINKS,
    "plain text": PLAIN_TEXT,
}
END_OF_TURN = {
    "tiny": "<|end|>",
    "headers and trims": "<|eot|>",
    "keeps all": "<|/im|>",
    "merges system": "<|eot|>",
    "instructions": "<|bye|>",
    "reorders": "<|end|>",
    "adds text": "<|end|>",
    "thinks": "<|end|>",
    "plain text": "<|bye|>",
}
STABLE = ("tiny", "headers and trims", "keeps all", "merges system", "adds text")
"""Where the prompt of a turn begins with all of the turn before, so that a dialogue is one sequence."""

SPECIAL = ["<|begin|>", "<|head|>", "<|/head|>", "<|eot|>", "<|im|>", "<|/im|>", "<|sot|>"]


def tokenizer_with(template: str) -> PreTrainedTokenizerFast:
    """The byte-level tokenizer of the tiny model with another template and the special tokens of all."""
    tokenizer = tiny_tokenizer(chat_template=template)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|turn|>", "<|end|>", *SPECIAL]})
    return tokenizer
