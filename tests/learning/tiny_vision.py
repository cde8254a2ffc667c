"""Vision-language models small enough for quick tests, of three architectures, with processors made on the spot.

They differ in all that matters to whoever feeds them: Llava has one size of pictures, Idefics cuts them into a
varying number of tiles, Qwen counts positions in three dimensions and wants to be told which tokens are pictures.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from PIL import Image, ImageDraw
from transformers import (
    CLIPVisionConfig,
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen2VLProcessor,
)
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.idefics3.processing_idefics3 import Idefics3Processor
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from models.tiny_llama import tiny_config, tiny_tokenizer

LENGTH = 16384
TEMPLATE = (
    "{% for message in messages %}<|turn|>{{ message['role'] }}\n"
    "{% for part in message['content'] %}"
    "{% if part['type'] == 'image' %}PICTURE{% else %}{{ part['text'] }}{% endif %}"
    "{% endfor %}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|turn|>assistant\n{% endif %}"
)


class PicturesOnlyQwenProcessor(Qwen2VLProcessor):
    """Without the part for films, which needs a package that nothing else here does."""

    def __init__(self, image_processor: Any = None, tokenizer: Any = None, chat_template: Any = None) -> None:
        self.image_token = "<|image_pad|>"
        self.image_token_id = tokenizer.convert_tokens_to_ids(self.image_token)
        super(Qwen2VLProcessor, self).__init__(image_processor, tokenizer, chat_template=chat_template)


def _tokenizer(*special: str) -> Any:
    tokenizer = tiny_tokenizer(chat_template=None)
    tokenizer.add_special_tokens({"additional_special_tokens": ["<|turn|>", "<|end|>", *special]})
    return tokenizer


def _text_config(tokenizer: Any) -> Any:
    return tiny_config(vocab_size=len(tokenizer), max_position_embeddings=LENGTH, initializer_range=0.1)


def tiny_llava() -> tuple[Any, Any]:
    tokenizer = _tokenizer("<image>")
    images = CLIPImageProcessorPil(size={"shortest_edge": 32}, crop_size={"height": 32, "width": 32})
    processor = LlavaProcessor(
        images,
        tokenizer,
        patch_size=8,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        chat_template=TEMPLATE.replace("PICTURE", "<image>"),
    )
    vision = CLIPVisionConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        image_size=32,
        patch_size=8,
        initializer_range=0.2,
    )
    config = LlavaConfig(
        vision_config=vision,
        text_config=_text_config(tokenizer),
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
    )
    return LlavaForConditionalGeneration(config), processor


def tiny_idefics() -> tuple[Any, Any]:
    tiles = [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]
    tokenizer = _tokenizer(
        "<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>", *tiles
    )
    images = Idefics3ImageProcessorPil(
        size={"longest_edge": 64}, max_image_size={"longest_edge": 32}, resample=Image.Resampling.BILINEAR
    )
    processor = Idefics3Processor(
        images,
        tokenizer,
        image_seq_len=4,
        chat_template=TEMPLATE.replace("PICTURE", "<image>").replace("<|end|>", "<end_of_utterance>"),
    )
    config = Idefics3Config(
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "image_size": 32,
            "patch_size": 8,
            "initializer_range": 0.2,
        },
        text_config=_text_config(tokenizer),
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
        scale_factor=2,
    )
    return Idefics3ForConditionalGeneration(config), processor


def tiny_qwen() -> tuple[Any, Any]:
    tokenizer = _tokenizer("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
    images = Qwen2VLImageProcessorPil(
        size={"shortest_edge": 16 * 16, "longest_edge": 64 * 64}, patch_size=8, merge_size=2
    )
    template = TEMPLATE.replace("PICTURE", "<|vision_start|><|image_pad|><|vision_end|>")
    processor = PicturesOnlyQwenProcessor(images, tokenizer, chat_template=template)
    text = {
        "vocab_size": len(tokenizer),
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": LENGTH,
        "initializer_range": 0.1,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [2, 3, 3]},
        "tie_word_embeddings": False,
    }
    config = Qwen2VLConfig(
        text_config=text,
        vision_config={
            "depth": 2,
            "embed_dim": 32,
            "hidden_size": 64,
            "num_heads": 2,
            "patch_size": 8,
            "mlp_ratio": 2,
            "initializer_range": 0.2,
        },
        image_token_id=tokenizer.convert_tokens_to_ids("<|image_pad|>"),
        video_token_id=tokenizer.convert_tokens_to_ids("<|video_pad|>"),
        vision_start_token_id=tokenizer.convert_tokens_to_ids("<|vision_start|>"),
        vision_end_token_id=tokenizer.convert_tokens_to_ids("<|vision_end|>"),
    )
    return Qwen2VLForConditionalGeneration(config), processor


MADE: dict[str, Callable[[], tuple[Any, Any]]] = {
    "llava": tiny_llava,
    "idefics": tiny_idefics,
    "qwen": tiny_qwen,
}


def make(architecture: str, seed: int = 0) -> tuple[Any, Any]:
    """A random model and its processor."""
    torch.manual_seed(seed)
    model, processor = MADE[architecture]()
    return model.eval(), processor


def save(architecture: str, folder: Path, seed: int = 0) -> Path:
    """A checkpoint as `save_pretrained` writes it."""
    model, processor = make(architecture, seed)
    model.save_pretrained(folder)
    processor.save_pretrained(folder)
    return folder


def draw(path: Path, colour: str, *, width: int = 96, height: int = 64) -> Path:
    """A picture of a page: a coloured header above a white body."""
    picture = Image.new("RGB", (width, height), "white")
    ImageDraw.Draw(picture).rectangle((0, 0, width, height // 2), fill=colour)
    picture.save(path)
    return path
