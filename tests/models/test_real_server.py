import json
from urllib.request import Request, urlopen

import pytest

from models.real_server import serving_smollm2

pytestmark = pytest.mark.slow


def test_the_real_server_speaks_the_chat_protocol() -> None:
    chat = [
        {"role": "system", "content": "You are a helpful assistant."},
        {"role": "user", "content": "What is the capital of France?"},
    ]
    with serving_smollm2() as server:
        body = {"model": server.model, "messages": chat, "temperature": 0, "max_tokens": 24}
        request = Request(f"{server.base_url}/chat/completions", json.dumps(body).encode())
        request.add_header("Content-Type", "application/json")
        with urlopen(request) as response:
            answer = json.load(response)
    assert "Paris" in answer["choices"][0]["message"]["content"]
    assert 0 < answer["usage"]["completion_tokens"] <= 24
