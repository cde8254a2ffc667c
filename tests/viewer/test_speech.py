"""Players must not see thoughts, which may quote the reference."""

from sweetrl.domains.transcripts import spoken_reply
from sweetrl.outputs import spoken
from sweetrl.viewer.speech import Speech


def test_what_may_be_a_thought_is_not_shown_while_it_comes() -> None:
    thinking = Speech(spoken_reply)
    assert thinking.so_far("The reference returns x") == ""
    assert thinking.so_far("The reference returns x</think>Twice the") == "Twice the"
    thinking.learn("The reference returns x</think>Twice the number.")
    assert thinking.so_far("The reference returns x") == ""
    thinking.learn("Yes.")
    assert thinking.so_far("The reference returns x") == ""
    plain = Speech(spoken)
    plain.learn("Yes.")
    assert plain.so_far("Is it") == "Is it"
    assert plain.so_far("I wonder. OUTPUT: Is it") == "Is it"
