import asyncio

from sweetrl.models import Meter, MeteredModel, Price
from sweetrl.models.scripted import ScriptedModel
from sweetrl.types import Message, Role, Sampling, Usage


def test_cost_is_tokens_times_the_price_of_a_million() -> None:
    meter = Meter()
    meter.add(Usage(2_000_000, 500_000), Price(prompt=3.0, completion=10.0))
    meter.add(Usage(1, 1))
    assert meter.cost == 11.0
    assert meter.tokens == 2_500_002


def test_models_that_share_a_meter_are_counted_together() -> None:
    async def run() -> Meter:
        meter = Meter()
        for price in (Price(1, 1), Price(0, 2)):
            model = MeteredModel(ScriptedModel(["x y"]), meter, price)
            await model.complete([Message(Role.USER, "a b c")], n=2, sampling=Sampling(), seed=0)
            await model.close()
        return meter

    meter = asyncio.run(run())
    assert (meter.prompt_tokens, meter.completion_tokens, meter.requests) == (6, 8, 2)
    assert round(meter.cost * 1e6) == 7 + 8
