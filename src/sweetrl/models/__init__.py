"""Chat models: behind an endpoint, in this process, or scripted. `open_model` makes one from its name."""

from typing import TYPE_CHECKING

from sweetrl.errors import UsageError, needs_extra
from sweetrl.models.endpoints import EndpointOptions, Endpoints
from sweetrl.models.meter import FREE, Meter, MeteredModel, Price
from sweetrl.models.scripted import ScriptedModel, script_named
from sweetrl.models.shipped import located
from sweetrl.models.specification import ModelSpec, parse_spec
from sweetrl.protocols import ChatModel

if TYPE_CHECKING:
    from sweetrl.models.prompt_logprobs import PromptLogprobs

__all__ = [
    "FREE",
    "EndpointOptions",
    "Endpoints",
    "Meter",
    "MeteredModel",
    "Price",
    "ScriptedModel",
    "open_model",
    "open_prompt_logprobs",
    "parse_spec",
]


def open_model(
    spec: str,
    *,
    endpoints: Endpoints | None = None,
    meter: Meter | None = None,
    price: Price = FREE,
    logprobs: bool = False,
    max_batch: int | None = None,
) -> ChatModel:
    """The model that `spec` names: `openai:MODEL@URL`, `openai:MODEL`, `hf:PATH_OR_ID`, `scripted:NAME`, `mini`.

    Models that are given the same `endpoints` share connections and concurrency limits. `meter` counts what
    the model uses. `logprobs` is for endpoints, `max_batch` for models in this process.
    """
    parsed = parse_spec(spec)
    if parsed.url is not None:
        return _behind_endpoint(parsed, endpoints or Endpoints(), meter, price, logprobs=logprobs)
    model = _scripted(parsed) if parsed.kind == "scripted" else _local(parsed, max_batch)
    return model if meter is None else MeteredModel(model, meter, price)


def open_prompt_logprobs(
    spec: str, *, endpoints: Endpoints | None = None, meter: Meter | None = None
) -> "PromptLogprobs":
    """A model behind an endpoint, `openai:MODEL@URL`, that returns the log-probabilities of given tokens."""
    parsed = parse_spec(spec)
    if parsed.url is None:
        raise UsageError(
            f"{parsed.name}: is no model behind an endpoint; write openai:MODEL@http://HOST:PORT/v1"
        )
    server = (endpoints or Endpoints()).server(parsed.url)
    from sweetrl.models.prompt_logprobs import PromptLogprobs

    return PromptLogprobs(parsed.model, server, name=parsed.name, meter=meter)


def _behind_endpoint(
    spec: ModelSpec, endpoints: Endpoints, meter: Meter | None, price: Price, *, logprobs: bool
) -> ChatModel:
    assert spec.url is not None
    server = endpoints.server(spec.url)
    from sweetrl.models.openai import OpenAIModel

    return OpenAIModel(spec.model, server, name=spec.name, meter=meter, price=price, logprobs=logprobs)


def _local(spec: ModelSpec, max_batch: int | None) -> ChatModel:
    folder = located(spec.model)  # before PyTorch is loaded, which takes seconds
    with needs_extra("a model in this process", "train"):
        from sweetrl.models.local import LocalModel
    return LocalModel(folder, name=spec.name, max_batch=max_batch)


def _scripted(spec: ModelSpec) -> ChatModel:
    return ScriptedModel(script_named(spec.model), name=spec.name)
