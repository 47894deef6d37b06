"""Vision Transformer (Dosovitskiy et al. 2021)."""

from paceline.workload.graph import Graph
from paceline.workload.zoo.transformers import TransformerShape
from paceline.workload.zoo.transformers.encoder_decoder import image_classifier


def vit_b_16() -> Graph:
    """Build ViT-B/16 for images of 224 x 224: 86,567,656 parameters."""
    shape = TransformerShape.multi_head(
        768, 12, 12, causal=False, joint_projection=True, labels=1000
    )
    return image_classifier("vit_b_16", shape, side=224, patch=16)
