"""Pictures of the documentation are made by scripts, so that they can be made again."""

import pytest

from conftest import CHECKOUT

SCRIPT = (CHECKOUT / "scripts/viewer_screenshots.py").read_text()
TAKEN = [*(CHECKOUT / "docs/pictures").glob("viewer-*.png"), *(CHECKOUT / "docs/pictures").glob("play-*.png")]


@pytest.mark.parametrize("name", sorted(path.stem for path in TAKEN))
def test_a_picture_of_the_viewer_is_made_by_the_script(name: str) -> None:
    assert f"{name}.png" in SCRIPT or f'("{name.removeprefix("viewer-")}", ' in SCRIPT
