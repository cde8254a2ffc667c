"""The files of recipes/accelerate are ones that accelerate reads."""

from pathlib import Path

import pytest
import yaml
from accelerate.commands.config.config_args import load_config_from_file

FILES = sorted((Path(__file__).parents[2] / "recipes/accelerate").glob("*.yaml"))


def test_each_way_to_share_the_work_has_a_file() -> None:
    assert {path.stem for path in FILES} == {"ddp", "deepspeed_zero3", "fsdp2"}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_accelerate_knows_every_field(path: Path) -> None:
    config = load_config_from_file(str(path))
    assert config.num_processes == 8
    assert str(config.distributed_type.value) in {"MULTI_GPU", "FSDP", "DEEPSPEED"}
    assert f"recipes/accelerate/{path.name}" in path.read_text()


def test_sharded_models_are_loaded_and_saved_whole() -> None:
    fields = {path.stem: yaml.safe_load(path.read_text()) for path in FILES}
    assert fields["fsdp2"]["fsdp_config"]["fsdp_version"] == 2
    assert fields["fsdp2"]["fsdp_config"]["fsdp_cpu_ram_efficient_loading"] is False
    assert fields["fsdp2"]["fsdp_config"]["fsdp_state_dict_type"] == "FULL_STATE_DICT"
    assert fields["deepspeed_zero3"]["deepspeed_config"]["zero3_save_16bit_model"] is True
