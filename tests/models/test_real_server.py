import pytest
from openai import OpenAI

from models.real_server import serving_smollm2

pytestmark = pytest.mark.slow


def test_the_real_server_answers_the_openai_client() -> None:
    with serving_smollm2() as server, OpenAI(base_url=server.base_url, api_key="unused") as client:
        answer = client.chat.completions.create(
            model=server.model,
            messages=[
                {"role": "system", "content": "You are a helpful assistant."},
                {"role": "user", "content": "What is the capital of France?"},
            ],
            temperature=0,
            max_tokens=24,
        )
    text = answer.choices[0].message.content
    assert text is not None
    assert "Paris" in text
    assert answer.usage is not None
    assert 0 < answer.usage.completion_tokens <= 24
