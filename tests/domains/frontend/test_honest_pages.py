"""No page is lost for what its text says or what is said around it: from an agent's output to the page scored."""

import pytest

from sweetrl.dialogue.rules import Rules, conclude, spoken
from sweetrl.domains.frontend.domain import FRONTEND
from sweetrl.domains.frontend.scorer import page_in

PAGE = '<!DOCTYPE html>\n<html lang="en">\n<head><title>x</title></head>\n<body>\n<h1>Hi</h1>{}\n</body>\n</html>'
TEXTS = {
    "OUTPUT in a paragraph": "<p>OUTPUT: 3</p>",
    "OUTPUT on a line of its own": "\nOUTPUT:\n",
    "both markers": "<pre>\nOUTPUT:\nI WANT TO ANSWER:\n</pre>",
    "marker in a paragraph": "<p>I WANT TO ANSWER: yes</p>",
    "marker on a line of its own": "\nI WANT TO ANSWER:\n",
    "script": "<script>console.log('OUTPUT:')</script>",
    "comment": "<!-- OUTPUT: here -->",
    "fence": "<p>```</p><p>OUTPUT: x</p>",
    "open quotes": "<p>don't \"OUTPUT: x</p>",
    "open docstring": '<textarea>\n"""\nOUTPUT:\n</textarea>',
}
MESSAGES = {
    "bare": "PAGE",
    "prose around it": "Here is my draft:\nPAGE\nWhat do you think?",
    "fence": "Draft:\n```html\nPAGE\n```\nOK?",
    "tildes": "~~~html\nPAGE\n~~~",
    "thought": "I need a page.\nOUTPUT:\nPAGE",
    "thought and marker": 'Think "so".\nOUTPUT:\nI WANT TO ANSWER:\nPAGE',
    "marker": "I WANT TO ANSWER:\nPAGE",
    "marker and fence": "Thanks!\nI WANT TO ANSWER:\n```html\nPAGE\n```\nDone.",
    "one of several blocks": "```css\np { margin: 0 }\n```\n```html\nPAGE\n```\n```bash\nopen x.html\n```",
    "talk about tags": "PAGE\n\nI put all of it between <html>...</html> and `<body>`.",
    "reasoning about tags": "<think><html></think>PAGE",
    "older page in the thought": "<html><body>old</body></html> is bad\nOUTPUT:\nPAGE",
}


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("message", MESSAGES)
def test_a_page_is_scored_as_it_was_written(message: str, text: str) -> None:
    page = PAGE.replace("{}", TEXTS[text])
    conclusion = conclude(FRONTEND, [spoken(MESSAGES[message].replace("PAGE", page))], Rules(turn_limit=1))
    assert conclusion is not None
    assert conclusion.answer == page
    assert page_in(conclusion.answer) == page
