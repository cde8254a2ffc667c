"""The paper's similarity, on a tiny CLIP model with random weights."""

import asyncio
import io

import numpy as np
import pytest

from pages.painted import body, paint, shop
from sweetrl.domains.frontend import clip
from sweetrl.domains.frontend.clip import ClipSimilarity
from sweetrl.errors import DataError, RenderError
from sweetrl.types import Shot

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model folder as it would come from the hub."""
    path = tmp_path_factory.mktemp("models") / "tiny-clip"
    vision = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2}
    config = transformers.CLIPConfig(
        vision_config={**vision, "image_size": 64, "patch_size": 16},
        text_config={**vision, "vocab_size": 100},
        projection_dim=16,
    )
    torch.manual_seed(0)
    transformers.CLIPModel(config).save_pretrained(path)
    sizes = {"size": {"shortest_edge": 64}, "crop_size": {"height": 64, "width": 64}}
    from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil

    CLIPImageProcessorPil(**sizes).save_pretrained(path)
    return path


def by_hand(folder, shot):
    """The embedding, one picture at a time, by the processor's and the model's own calls."""
    from PIL import Image

    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    model = transformers.CLIPModel.from_pretrained(folder).eval()
    pixels = processor(images=Image.open(io.BytesIO(shot.png)).convert("RGB"), return_tensors="pt")
    with torch.inference_mode():
        vector = model.visual_projection(model.vision_model(**pixels).pooler_output)[0].numpy()
    return vector / np.linalg.norm(vector)


def test_the_score_is_the_cosine_of_the_models_own_embeddings(folder):
    one, other = shop(), paint(body("#1f2937"))
    found = asyncio.run(ClipSimilarity.load(str(folder)).compare(one, other))
    assert found.score == pytest.approx(float(by_hand(folder, one) @ by_hand(folder, other)), abs=1e-5)
    assert found.parts == {"cosine": found.score}


def test_a_page_is_like_itself(folder):
    assert asyncio.run(ClipSimilarity.load(str(folder)).compare(shop(), shop())).score == pytest.approx(1.0)


def test_many_comparisons_at_once_are_embedded_in_batches_each_picture_once(folder):
    similarity = ClipSimilarity.load(str(folder))
    sizes = []
    embed = similarity._embed
    similarity._embed = lambda pngs: sizes.append(len(pngs)) or embed(pngs)
    drafts = [paint(body(f"#{shade:02x}4080")) for shade in range(0, 200, 10)]

    async def all_at_once():
        return await asyncio.gather(*(similarity.compare(shop(), draft) for draft in drafts))

    async def twice():
        return await all_at_once(), await all_at_once()

    first, second = asyncio.run(twice())
    assert first == second
    assert sum(sizes) == len(drafts) + 1
    assert max(sizes) <= clip.BATCH
    assert len(sizes) <= 3
    alone = asyncio.run(ClipSimilarity.load(str(folder)).compare(shop(), drafts[3]))
    assert alone.score == pytest.approx(first[3].score, abs=1e-5)


def test_the_name_tells_the_model_and_never_claims_to_be_the_default(folder):
    assert ClipSimilarity.load(str(folder)).name == "clip-tiny-clip/2"


def test_a_broken_picture_is_our_failure_and_the_next_one_works(folder):
    similarity = ClipSimilarity.load(str(folder))

    async def one_after_the_other():
        with pytest.raises(RenderError):
            await similarity.compare(shop(), Shot(png=b"no png", width=1, height=1))
        found = await similarity.compare(shop(), shop())
        await similarity.close()
        return found

    assert asyncio.run(one_after_the_other()).score == pytest.approx(1.0)


def test_a_folder_without_a_model_is_named(tmp_path):
    with pytest.raises(DataError, match="cannot be loaded"):
        ClipSimilarity.load(str(tmp_path))
