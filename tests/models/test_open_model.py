import asyncio
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sweetrl.models
from sweetrl.errors import MissingExtra, ModelError, UsageError
from sweetrl.models import EndpointOptions, Endpoints, Meter, MeteredModel, ScriptedModel, open_model
from sweetrl.models.openai import OpenAIModel
from sweetrl.types import Message, Role, Sampling


def test_scripted_models_open_by_name() -> None:
    model = open_model("scripted:echo")
    assert isinstance(model, ScriptedModel)
    assert model.name == "scripted:echo"
    [said] = asyncio.run(model.complete([Message(Role.USER, "hello")], n=1, sampling=Sampling(), seed=0))
    assert said.text == "hello"


def test_a_meter_counts_models_that_do_not_count_themselves() -> None:
    meter = Meter()
    model = open_model("scripted:echo", meter=meter)
    assert isinstance(model, MeteredModel)
    asyncio.run(model.complete([Message(Role.USER, "hello you")], n=1, sampling=Sampling(), seed=0))
    assert meter.tokens == 4


def test_endpoints_open_without_being_asked_anything() -> None:
    async def run() -> str:
        model = open_model("openai:some/model@http://127.0.0.1:9/v1")
        assert isinstance(model, OpenAIModel)
        await model.close()
        return model.name

    assert asyncio.run(run()) == "openai:some/model@http://127.0.0.1:9/v1"


@given(st.text(max_size=20), st.sampled_from(["", ":1", "/v1", "/v1?a=b"]))
def test_any_address_opens_or_is_a_usage_error(host: str, rest: str) -> None:
    async def run() -> None:
        try:
            model = open_model(f"openai:m@http://{host}{rest}")
        except UsageError:
            return
        await model.close()

    asyncio.run(run())


def test_while_a_host_cannot_be_reached_the_meter_says_so() -> None:
    async def run() -> Meter:
        meter = Meter()
        options = EndpointOptions(attempts=2, first_backoff=0.01)
        url = "http://user:secret@127.0.0.1:0/v1"
        model = open_model(f"openai:m@{url}", endpoints=Endpoints(options), meter=meter)
        with pytest.raises(ModelError):
            await model.complete([Message(Role.USER, "hi")], n=1, sampling=Sampling(), seed=0)
        await model.close()
        return meter

    meter = asyncio.run(run())
    assert meter.trouble == "no connection to http://127.0.0.1:0/v1, retrying"
    assert meter.asked == "http://127.0.0.1:0/v1"


@pytest.mark.parametrize("host", ["a" * 70 + ".invalid", "nowhere.invalid", "127.0.0.1:0"])
def test_a_host_that_cannot_be_reached_is_a_model_error(host: str) -> None:
    async def run() -> None:
        model = open_model(f"openai:m@http://{host}/v1", endpoints=Endpoints(EndpointOptions(attempts=1)))
        with pytest.raises(ModelError, match="no connection") as caught:
            await model.complete([Message(Role.USER, "hi")], n=1, sampling=Sampling(), seed=0)
        await model.close()
        assert caught.value.kind == "connection"

    asyncio.run(run())


def test_the_official_service_needs_its_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        open_model("openai:gpt-x")


def test_the_official_service_is_asked_in_its_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")

    async def run() -> dict[str, object]:
        model = open_model("openai:gpt-x")
        assert isinstance(model, OpenAIModel)
        request = model._request([Message(Role.USER, "hi")], Sampling(max_tokens=7))
        await model.close()
        return request

    request = asyncio.run(run())
    assert request["max_completion_tokens"] == 7
    assert "max_tokens" not in request


def test_an_unknown_script_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no script 'nonsense'"):
        open_model("scripted:nonsense")


@pytest.mark.parametrize(
    ("spec", "packages", "extra"),
    [("openai:m@http://h/v1", ["aiohttp"], "serve"), ("hf:some/model", ["torch", "transformers"], "train")],
)
def test_a_missing_package_names_the_extra_to_install(
    monkeypatch: pytest.MonkeyPatch, spec: str, packages: list[str], extra: str
) -> None:
    for name in list(sys.modules):
        if name.startswith(("sweetrl.models.server", "sweetrl.models.openai", "sweetrl.models.local")):
            monkeypatch.delitem(sys.modules, name)
    for package in packages:
        monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"pip install .*\[{extra}\]'"):
        open_model(spec)


def test_naming_a_model_loads_nothing_heavy() -> None:
    program = (
        "import sys, sweetrl.models; sweetrl.models.parse_spec('openai:m@http://h/v1');"
        "print(sorted({'openai', 'aiohttp', 'torch', 'transformers', 'pydantic', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_public_names_are_sorted_and_exist() -> None:
    names = sweetrl.models.__all__
    assert names == sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))
    assert all(hasattr(sweetrl.models, name) for name in names)
