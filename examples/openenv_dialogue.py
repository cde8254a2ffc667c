"""A dialogue over OpenEnv's client, with an agent that asks one question and answers.

SWEETRL_TASKS=mini-backend:train:100 SWEETRL_COLLABORATOR=colleague \
    uvicorn --factory sweetrl.integrations.openenv:app --port 8000
python examples/openenv_dialogue.py http://localhost:8000
"""

import sys
from collections.abc import Sequence

from sweetrl.integrations.openenv import ColBenchClient, Say


def my_agent(messages: Sequence[dict[str, str]]) -> str:
    """Yours goes here: from the messages so far, the system prompt first, to the agent's next."""
    return "What should it return?" if len(messages) == 2 else "I WANT TO ANSWER: def f(x): return x"


def main(server: str) -> None:
    """Hold the dialogue and say what it earned."""
    with ColBenchClient(base_url=server).sync() as env:
        result = env.reset(seed=1)
        while not result.done:
            result = env.step(Say(text=my_agent(result.observation.messages)))
    for message in result.observation.messages[1:]:
        print(f"{message['role']}: {message['content']}")
    print(f"reward {result.reward}, success {result.observation.success}")


if __name__ == "__main__":
    main(sys.argv[1])
