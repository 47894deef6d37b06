"""Alternative spellings of the names of networks."""

import re
from collections.abc import Mapping

# Keys are in lower case, letters and digits only.
_ALIASES = {
    "3dunet": "unet3d",
    "arcfaceresnet100": "resnet100_arcface",
    "bart": "bart_base",
    "bartlargecnn": "bart_large",
    "bert": "bert_base",
    "bertbaseuncased": "bert_base",
    "bertlargeuncased": "bert_large",
    "bloom": "bloom_176b",
    "biobert": "biobert_base",
    "densenet": "densenet121",
    "efficientdet": "efficientdet_d0",
    "fcn5mnist": "fcn5",
    "fullyconnected5": "fcn5",
    "gnmt": "gnmt_v2",
    "googlenettorchvision": "googlenet_bn",
    "gpt1t": "gpt_1t",
    "gpt21.5b": "gpt2_xl",
    "gpt2124m": "gpt2",
    "gpt21558m": "gpt2_xl",
    "gpt2355m": "gpt2_medium",
    "gpt2774m": "gpt2_large",
    "gpt3": "gpt3_175b",
    "inception1": "googlenet",
    "inception3": "inception_v3",
    "inceptionv1": "googlenet",
    "iresnet100": "resnet100_arcface",
    "jasper10x5dr": "jasper",
    "lstm": "lstm_ptb",
    "maskrcnn": "mask_rcnn_r50_fpn",
    "maskrcnnresnet50fpn": "mask_rcnn_r50_fpn",
    "megatron1t": "gpt_1t",
    "megatron530b": "mt_nlg_530b",
    "megatronturing530b": "mt_nlg_530b",
    "megatronturingnlg530b": "mt_nlg_530b",
    "mistral": "mistral_7b",
    "mistral7bv0.1": "mistral_7b",
    "mixtral": "mixtral_8x7b",
    "mobilefacenet": "mobilefacenet_arcface",
    "mobilenet": "mobilenet_v1",
    "mtnlg": "mt_nlg_530b",
    "neumf": "ncf",
    "neuralcollaborativefiltering": "ncf",
    "nnunet": "nnunet_3d",
    "ptblstm": "lstm_ptb",
    "quartznet15x5": "quartznet",
    "resnet100": "resnet100_arcface",
    "resnext101": "resnext101_32x4d",
    "retinanet": "retinanet_resnext50",
    "seresnext101": "se_resnext101_32x4d",
    "ssd": "ssd300_resnet50",
    "ssd300": "ssd300_resnet50",
    "stablediffusion": "stable_diffusion_v2",
    "stablediffusion2": "stable_diffusion_v2",
    "transformer": "transformer_base",
    "transformerlarge": "transformer_big",
    "transformerxl": "transformer_xl_base",
    "unet3dkits19": "unet3d",
    "vit": "vit_b_16",
    "vitbase16": "vit_b_16",
    "vitbasepatch16": "vit_b_16",
    "vitbasepatch16224": "vit_b_16",
    "wideanddeep": "wide_deep_outbrain",
    "widedeep": "wide_deep_outbrain",
}


def squeezed(name: str) -> str:
    """Lower case, letters and digits only: ``ResNet-50 v1.5`` becomes ``resnet50v1.5``."""
    return re.sub(r"[^a-z0-9.]|(?<!\d)\.|\.(?!\d)", "", name.lower())


def canonical(name: str, known: Mapping[str, str]) -> str | None:
    """The zoo's name of a network; ``known`` maps squeezed names to names."""
    # Llama 3.1 to 3.3 have the sizes of Llama 3.
    lowered = re.sub(r"llama[\s_-]*3[._-][123](?=[\s_:-]+\d)", "llama3", name.lower())
    key, without_owner = squeezed(lowered), squeezed(lowered.rpartition("/")[2])
    # A plain name means version 1 and the usual data set.
    plain = re.sub(r"(v1|cifar10|cifar|imagenet)$", "", key)
    for candidate in (key, plain, without_owner):
        if candidate in known:
            return known[candidate]
        if candidate in _ALIASES:
            return _ALIASES[candidate]
    return None
