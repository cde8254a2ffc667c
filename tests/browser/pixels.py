"""Reading what a picture shows."""

import io

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def pixels(png: bytes) -> NDArray[np.uint8]:
    """Rows, columns, and red, green and blue."""
    with Image.open(io.BytesIO(png)) as picture:
        return np.asarray(picture.convert("RGB"))


def shows(png: bytes, colour: tuple[int, int, int]) -> bool:
    """Whether any pixel has exactly this colour."""
    return bool((pixels(png) == np.array(colour, np.uint8)).all(axis=2).any())
