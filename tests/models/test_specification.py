import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweetrl.errors import UsageError
from sweetrl.models.specification import OFFICIAL_URL, parse_spec, parse_url


def test_an_endpoint_is_read_into_model_and_address() -> None:
    spec = parse_spec("openai:meta/Llama-3.1@http://localhost:8000/v1/")
    assert (spec.kind, spec.model) == ("openai", "meta/Llama-3.1")
    assert spec.url is not None
    assert spec.url.base == "http://localhost:8000/v1"
    assert spec.name == "openai:meta/Llama-3.1@http://localhost:8000/v1"


def test_without_an_address_it_is_the_official_service() -> None:
    spec = parse_spec("openai:gpt-x")
    assert spec.url is not None
    assert spec.url.base == OFFICIAL_URL
    assert spec.name == "openai:gpt-x"


def test_a_model_name_may_hold_an_at_sign_and_colons() -> None:
    spec = parse_spec("openai:llama3.2:1b@latest@http://h/v1")
    assert spec.model == "llama3.2:1b@latest"
    assert parse_spec("hf:org/name@v2").model == "org/name@v2"


@given(
    st.text(st.characters(codec="ascii", exclude_characters="@: /", categories=["L", "N"]), min_size=1),
    st.integers(1, 65535),
    st.sampled_from(["", "/v1", "/a/b"]),
)
def test_a_name_can_be_parsed_again_to_the_same_model(model: str, port: int, path: str) -> None:
    spec = parse_spec(f"openai:{model}@http://host:{port}{path}")
    assert parse_spec(spec.name) == spec


@given(st.text(max_size=40))
def test_any_text_is_a_specification_or_a_usage_error(text: str) -> None:
    for prefix in ("", "openai:", "openai:m@http://"):
        try:
            result = parse_spec(prefix + text).model
        except UsageError as error:
            result = str(error)
        assert len(result.splitlines()) == 1


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("opnai:gpt", "did you mean openai:MODEL@"),
        ("HF:path", "did you mean hf:PATH_OR_ID"),
        ("gpt-4o", "openai:MODEL"),
        ("openai:", "lacks its model"),
        ("openai:@http://host/v1", "openai:MODEL@http://HOST:PORT/v1"),
        ("openai:m@ftp://host/v1", "'ftp://'; write openai:MODEL@http"),
        ("openai:m@http://:80/v1", "no proper host"),
        ("openai:m@http://host:port/v1", "malformed"),
    ],
)
def test_a_wrong_specification_says_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_spec(text)
    assert hint in str(caught.value)


@pytest.mark.parametrize(
    ("text", "spelling"),
    [
        ("m@127.0.0.1:8000", "openai:m@http://127.0.0.1:8000/v1"),
        ("m@localhost:8000/v1", "openai:m@http://localhost:8000/v1"),
        ("m@host/v1", "openai:m@http://host/v1"),
        ("org/m@host", "openai:org/m@http://host/v1"),
        ("m@[::1]:8000", "openai:m@http://[::1]:8000/v1"),
        ("m@http:/host/v1", "openai:m@http://host/v1"),
        ("m@http:host", "openai:m@http://host/v1"),
        ("m@//host:1/v1", "openai:m@http://host:1/v1"),
        ("m@http//host:1/v1", "openai:m@http://host:1/v1"),
        ("//m@host", "openai:m@http://host/v1"),
        ("m@", "openai:m@http://HOST:PORT/v1"),
        ("name@2024", "openai:name@http://2024/v1"),
        ("m@me:s3cret@host/v1?key=s3cret", "openai:m@http://host/v1"),
    ],
)
def test_an_address_without_its_scheme_is_refused_with_the_right_spelling(text: str, spelling: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_spec(f"openai:{text}")
    assert f"write {spelling}, or https" in str(caught.value)
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "http://host:8000/v1",
            "https://me:s3cret@host/v1?key=s3cret",
            "127.0.0.1:8000",
            "localhost:8000/v1",
        ),
        *("m:http://host:8000", "m http://host/v1", "m,http://host/v1", "m＠host:8000", "m%40host:8000"),
        *("127.0.0.1", "localhost", "my.server.com", "vllm.internal", "GPU.Local", "host.local:8000"),
        *("meta-llama/Llama-3.1-8B", "/models/llama", "./llama", "m|host"),
    ],
)
def test_what_is_no_name_of_a_model_of_openais_service_is_not_sent_there(text: str) -> None:
    with pytest.raises(
        UsageError, match="write openai:MODEL@http://HOST:PORT/v1 for another server"
    ) as caught:
        parse_spec(f"openai:{text}")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    "model", ["gpt-4o-mini", "o3", "ft:gpt-4o-mini-2024-07-18:org::A1b2", "gpt_x.1", "gpt-4.1"]
)
def test_names_of_models_of_openais_service_need_no_address(model: str) -> None:
    assert parse_spec(f"openai:{model}").model == model


def test_passwords_and_queries_do_not_show() -> None:
    spec = parse_spec("openai:m@http://me:s3cret@host:1/v1?api-key=s3cret")
    assert spec.url is not None
    assert (spec.url.user, spec.url.password) == ("me", "s3cret")
    assert spec.url.at("/chat") == "http://host:1/v1/chat?api-key=s3cret"
    assert spec.name == "openai:m@http://host:1/v1"
    for shown in (spec.name, repr(spec), str(spec), repr(spec.url)):
        assert "s3cret" not in shown


@pytest.mark.parametrize("text", ["http://u:s3cret@host:port", "ftp://u:s3cret@host", "http://u:s3cret@:1"])
def test_complaints_do_not_repeat_a_password(text: str) -> None:
    for attempt in (
        lambda: parse_url(text),
        lambda: parse_spec(f"openai:m@{text}"),
        lambda: parse_spec(text),
    ):
        with pytest.raises(UsageError) as caught:
            attempt()
        assert "s3cret" not in str(caught.value)


def test_the_official_key_goes_to_the_official_service_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "official")
    monkeypatch.delenv("SWEETRL_API_KEY", raising=False)
    assert parse_url(OFFICIAL_URL).key() == "official"
    assert parse_url("http://host/v1").key() is None
    monkeypatch.setenv("SWEETRL_API_KEY", " other\n")
    assert parse_url("http://host/v1").key() == "other"


def test_the_official_service_without_a_key_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        parse_url(OFFICIAL_URL).key()


def test_a_key_that_would_break_the_header_is_refused_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWEETRL_API_KEY", "abc\r\nX-Evil: 1")
    with pytest.raises(UsageError, match="SWEETRL_API_KEY") as caught:
        parse_url("http://host/v1").key()
    assert "abc" not in str(caught.value)
