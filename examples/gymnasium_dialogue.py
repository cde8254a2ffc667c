"""A dialogue in the Gymnasium environment, with an agent that asks one question and answers.

python examples/gymnasium_dialogue.py
"""

from collections.abc import Sequence

import gymnasium

ENVIRONMENT = "sweetrl.integrations.gymnasium:sweetrl/ColBench-v0"


def my_agent(messages: Sequence[dict[str, str]]) -> str:
    """Yours goes here: from the messages so far to the agent's next."""
    return "What should it return?" if len(messages) == 1 else "I WANT TO ANSWER: def f(x): return x"


def main() -> None:
    """Hold the dialogue and say what it earned."""
    env = gymnasium.make(ENVIRONMENT, tasks="mini-backend:train:100", collaborator="colleague")
    observation, info = env.reset(seed=1)
    terminated = truncated = False
    while not (terminated or truncated):
        observation, reward, terminated, truncated, info = env.step(my_agent(info["messages"]))
    print(observation)
    print(f"reward {reward}, success {info['verdict'].success}")
    env.close()


if __name__ == "__main__":
    main()
