"""Vision Transformer (Dosovitskiy et al. 2021)."""

from paceline.workload.graph import Graph
from paceline.workload.zoo.transformers import TransformerShape
from paceline.workload.zoo.transformers.encoders import image_classifier


def vit_b_16() -> Graph:
    """ViT-B/16 on 224 x 224 images: 86,567,656."""
    shape = TransformerShape(
        *(768, 12),
        heads=12,
        kv_heads=12,
        head_dim=64,
        inner=3072,
        causal=False,
        joint_projection=True,
        labels=1000,
    )
    return image_classifier("vit_b_16", shape, side=224, patch=16)
