"""The paper's similarity: the cosine of two CLIP image embeddings (ViT-B/32 there, any CLIP model here).

Screenshots go through the model's own processor, which shrinks the shorter side and cuts out the middle: very
flat and very tall pages are judged by their middle, as in the paper.
"""

import asyncio
import io
from collections import OrderedDict
from pathlib import Path
from typing import Any

from sweetrl.domains.frontend.similarity import SimilarityScore
from sweetrl.errors import DataError, MissingExtra, RenderError, StageError, one_line
from sweetrl.types import Shot, picture_digest

BATCH = 16
"""Pictures embedded at a time."""
_EMBEDDINGS_KEPT = 1 << 16
_WIDEST = 100
"""The widest picture, in multiples of its height."""


class ClipSimilarity:
    """A `Similarity` based on a CLIP model. Pictures of concurrent requests are embedded together."""

    def __init__(self, model: Any, processor: Any, *, name: str) -> None:
        """`model` and `processor` are those of transformers; `name` is how records call the pair."""
        self._model = model.eval()
        self._processor = processor
        self.name = name
        self._known: OrderedDict[str, Any] = OrderedDict()
        self._waiting: dict[str, tuple[bytes, asyncio.Future[Any]]] = {}
        self._worker: asyncio.Task[None] | None = None

    @classmethod
    def load(cls, path_or_id: str) -> "ClipSimilarity":
        """The model of a local folder or of the Hugging Face hub."""
        try:
            from transformers import AutoImageProcessor, CLIPModel
        except ImportError:
            raise MissingExtra("CLIP", "train") from None
        try:
            model = CLIPModel.from_pretrained(path_or_id, trust_remote_code=False)
            # Pillow's resampling is what CLIP was trained with.
            processor = AutoImageProcessor.from_pretrained(  # type: ignore[no-untyped-call]
                path_or_id, backend="pil", trust_remote_code=False
            )
        except (OSError, ValueError) as error:
            raise DataError(f"clip:{path_or_id} cannot be loaded: {one_line(error)[:200]}") from error
        return cls(model, processor, name=f"clip-{Path(path_or_id).name}/2")

    async def compare(self, reference: Shot, answer: Shot) -> SimilarityScore:
        """The cosine; opposite directions count as nothing in common."""
        one, other = await asyncio.gather(self._embedding(reference.png), self._embedding(answer.png))
        cosine = float(one @ other)
        return SimilarityScore(min(max(cosine, 0.0), 1.0), {"cosine": min(max(cosine, 0.0), 1.0)})

    async def close(self) -> None:
        """Stop embedding and forget what is known."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
            self._worker = None
        self._known.clear()

    async def _embedding(self, png: bytes) -> Any:
        key = picture_digest(png)
        if key in self._known:
            self._known.move_to_end(key)
            return self._known[key]
        if key not in self._waiting:
            self._waiting[key] = (png, asyncio.get_running_loop().create_future())
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        # Shielded: others may be waiting for the same picture.
        return await asyncio.shield(self._waiting[key][1])

    async def _work(self) -> None:
        """Embed what is waiting, a batch at a time, until nothing is."""
        while self._waiting:
            batch = dict(list(self._waiting.items())[:BATCH])
            try:
                vectors = await asyncio.to_thread(self._embed, [png for png, _ in batch.values()])
            except Exception as error:  # handed to those who wait
                failure = error if isinstance(error, StageError) else StageError(f"CLIP failed: {error}")
                self._settle(batch, failure)
            else:
                for key, vector in zip(batch, vectors, strict=True):
                    self._known[key] = vector
                    self._waiting.pop(key)[1].set_result(vector)
                while len(self._known) > _EMBEDDINGS_KEPT:
                    self._known.popitem(last=False)

    def _settle(self, batch: dict[str, tuple[bytes, "asyncio.Future[Any]"]], failure: StageError) -> None:
        for key in batch:
            self._waiting.pop(key)[1].set_exception(failure)

    def _embed(self, pngs: list[bytes]) -> Any:
        """One unit vector per picture."""
        import torch

        # One at a time: sixteen pictures of the largest size would take gigabytes before they are made small.
        inputs = [self._processor(images=_opened(png), return_tensors="pt")["pixel_values"] for png in pngs]
        with torch.inference_mode():
            pixels = torch.cat(inputs).to(self._model.device)
            features = self._model.get_image_features(pixel_values=pixels).pooler_output
        return torch.nn.functional.normalize(features.float(), dim=-1).cpu().numpy().astype("float64")


def _opened(png: bytes) -> Any:
    from PIL import Image

    try:
        picture = Image.open(io.BytesIO(png)).convert("RGB")
    except (OSError, ValueError, Image.DecompressionBombError) as error:
        raise RenderError(f"a screenshot is no readable picture: {error}") from error
    width, height = picture.size
    if width <= _WIDEST * height:
        return picture
    # Only its middle counts. The processor would first enlarge a page of one pixel's height to a hundred million.
    middle = (width - _WIDEST * height) // 2
    return picture.crop((middle, 0, middle + _WIDEST * height, height))
