"""Writes examples/chats.jsonl: 30 made-up support chats, each with an outcome.

    python examples/make_chats.py > examples/chats.jsonl

Whether a customer ends up satisfied is decided by a rule, so that credit has something to find: chats fail in which
the assistant closes the ticket without asking whether the problem is solved. Four of the 30 go against the rule, as
in real logs. Customers, orders and wording are drawn from a seed.
"""

import json
import random
import sys
from typing import Any

SYSTEM = "You are the support assistant of Lumen & Oak, a shop for lamps and small furniture."
CASES = (
    ("My {item} arrived broken.", "I have ordered a new one; it ships tomorrow."),
    (
        "The {item} from last week is still not here.",
        "The parcel was stuck, so I have sent it on by express.",
    ),
    ("I was charged twice for the {item}.", "I have sent the second payment back to your card."),
    ("I would like to return the {item}.", "I have mailed you a return label for the {item}."),
    ("The {item} does not switch on any more.", "Please hold the switch for ten seconds; that resets it."),
)
ITEMS = ("desk lamp", "floor lamp", "side table", "reading light")
GREETINGS = ("Hello!", "Hi there.", "Good morning.")
ASK_NUMBER = (
    "I am sorry to hear that. What is your order number?",
    "Let me look into it. Which order number is on the confirmation?",
)
NUMBER = ("It is {number}.", "{number}", "The number is {number}.")
ASK_DETAIL = (
    "Thank you, I have found it. Is the delivery address still {house} Mill Lane?",
    "Thanks, I see the order. Should we reach you under the same mail address?",
)
DETAILS = ("Yes, it is.", "Yes, the same.", "That is right.")
CONFIRM = (
    "Does that solve it for you?",
    "Is everything settled for you with that?",
    "Before we finish: is the problem solved for you?",
)
STILL_OPEN = (
    ("Almost. When will that be?", "By Thursday at the latest."),
    ("Not quite: does it cost anything?", "There is no charge for it."),
)
SOLVED = ("Yes, that is perfect. Thank you!", "Great, that is all I needed.", "Yes, thanks a lot.")
CLOSE = (
    "I am closing this ticket now.",
    "With that I have closed your ticket.",
    "This ticket is now closed.",
)
PROTEST = (
    "Wait, you have not told me when that happens.",
    "But that does not help me, I still have the problem.",
    "Hold on, that was not everything.",
)
GOODBYE = ("You are welcome. Have a good day!", "Glad to help. Have a nice week!")
AGAINST_THE_RULE = (5, 13, 22, 28)


class Deck:
    """Deals wordings evenly, so that no wording goes with an outcome by accident."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self._left: dict[tuple[Any, ...], list[Any]] = {}

    def deal(self, choices: tuple[Any, ...]) -> Any:
        """One of the choices; all of them come before one comes again."""
        left = self._left.setdefault(choices, [])
        if not left:
            left += self.rng.sample(choices, len(choices))
        return left.pop()


class Chat:
    """The messages of one chat, with the wording from a deck."""

    def __init__(self, deck: Deck) -> None:
        self.number = deck.rng.randint(10_000, 99_999)
        self._item = deck.deal(ITEMS)
        self._words = {"item": self._item, "number": self.number, "house": deck.rng.randint(2, 90)}
        self.messages: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM}]

    def say(self, role: str, *texts: str) -> None:
        """One message."""
        self.messages.append({"role": role, "content": " ".join(texts).format(**self._words)})

    def look_up(self) -> None:
        """The assistant calls a tool and reads its result."""
        arguments = json.dumps({"number": self.number})
        call = {
            "id": "call-1",
            "type": "function",
            "function": {"name": "find_order", "arguments": arguments},
        }
        self.messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        found = json.dumps({"number": self.number, "item": self._item})
        self.messages.append({"role": "tool", "tool_call_id": "call-1", "content": found})


def make_chat(deck: Deck, *, confirms: bool, uses_tool: bool) -> list[dict[str, Any]]:
    """A chat in which the assistant asks whether the problem is solved, or closes the ticket unasked."""
    chat = Chat(deck)
    problem, action = deck.deal(CASES)
    chat.say("user", deck.deal(GREETINGS), problem)
    chat.say("assistant", deck.deal(ASK_NUMBER))
    chat.say("user", deck.deal(NUMBER))
    if uses_tool:
        chat.look_up()
    chat.say("assistant", deck.deal(ASK_DETAIL))
    chat.say("user", deck.deal(DETAILS))
    if confirms:
        chat.say("assistant", action, deck.deal(CONFIRM))
        if deck.deal((True, False, False)):
            question, reply = deck.deal(STILL_OPEN)
            chat.say("user", question)
            chat.say("assistant", reply, deck.deal(CONFIRM))
        chat.say("user", deck.deal(SOLVED))
    else:
        chat.say("assistant", action, deck.deal(CLOSE))
        chat.say("user", deck.deal(PROTEST))
    chat.say("assistant", deck.deal(GOODBYE))
    return chat.messages


def make_chats(count: int = 30, seed: int = 7) -> list[dict[str, Any]]:
    """Half of the chats of each kind, four of them with the outcome that the rule does not give them."""
    rng = random.Random(seed)
    decks = {confirms: Deck(rng) for confirms in (True, False)}
    chats = []
    for number in range(count):
        confirms = number % 2 == 0
        messages = make_chat(decks[confirms], confirms=confirms, uses_tool=number % 3 == 0)
        success = confirms != (number in AGAINST_THE_RULE)
        chats.append({"id": f"ticket-{number + 1:02}", "messages": messages, "success": success})
    rng.shuffle(chats)
    return chats


if __name__ == "__main__":
    for line in make_chats():
        sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
