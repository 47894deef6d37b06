"""Third-party networks through ``FILE.py:FUNCTION``: parameters and FLOP compared with PyTorch.

100 architectures of torchvision and timm and 40 small language, speech and image models of
Hugging Face, with random weights. Each is captured from a file, then built and trained for one step
with PyTorch's FLOP counter, on the meta device or, if that fails, on the CPU (with a corrected
weight gradient of grouped convolutions, and unfused attention). Correct means equal parameters and
FLOP within 1 %. Needs packages that are not dependencies of Paceline:

  pip install torchvision timm transformers
"""

import copy
import importlib.metadata
import importlib.util
import inspect
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from common import arguments, finish, machine

import hugging_face_models

RIGHT_WITHIN = 0.01
TORCHVISION = """
alexnet convnext_tiny densenet121 efficientnet_b0 efficientnet_v2_s googlenet:1x3x224x224
inception_v3:2x3x299x299 maxvit_t mnasnet1_0 mobilenet_v2 mobilenet_v3_large mobilenet_v3_small
regnet_x_400mf regnet_y_400mf resnet18 resnet50 resnext50_32x4d shufflenet_v2_x1_0 squeezenet1_0
swin_t swin_v2_t:2x3x256x256 vgg11_bn vit_b_32 wide_resnet50_2
segmentation.deeplabv3_resnet50:2x3x128x128 segmentation.fcn_resnet50:2x3x128x128
segmentation.lraspp_mobilenet_v3_large:2x3x128x128 video.r3d_18:1x3x8x112x112
video.mc3_18:1x3x8x112x112 video.r2plus1d_18:1x3x8x112x112 video.s3d:1x3x16x224x224
video.mvit_v2_s:1x3x16x224x224 video.swin3d_t:1x3x8x112x112
detection.fasterrcnn_mobilenet_v3_large_320_fpn detection.retinanet_resnet50_fpn
detection.ssdlite320_mobilenet_v3_large detection.fcos_resnet50_fpn
"""
TIMM = """
bat_resnext26ts:2x3x256x256 beit_base_patch16_224 botnet26t_256:2x3x256x256 cait_xxs24_224
coat_tiny coatnet_0_rw_224 convit_tiny convmixer_768_32 convnext_atto convnextv2_atto
crossvit_9_240:2x3x240x240 cs3darknet_m cspresnet50 darknet53 davit_tiny deit_tiny_patch16_224
dla34 dpn68 eca_nfnet_l0 edgenext_xx_small:2x3x256x256
efficientformer_l1 efficientformerv2_s0 efficientnet_b0
efficientvit_b0 ese_vovnet19b_dw eva02_tiny_patch14_224 fastvit_t8:2x3x256x256 focalnet_tiny_srf
gcvit_xxtiny gernet_s ghostnet_100 halonet26t:2x3x256x256 hardcorenas_a hgnet_tiny hiera_tiny_224
hrnet_w18_small inception_next_tiny inception_resnet_v2:2x3x299x299 lambda_resnet26t:2x3x256x256
lcnet_050 levit_128s mambaout_femto mixer_s32_224 mixnet_s mobilenetv4_conv_small
mobileone_s0 mobilevit_xxs:2x3x256x256 mvitv2_tiny nest_tiny nf_resnet50 pit_ti_224 poolformer_s12
pvt_v2_b0 regnety_002 repghostnet_050 repvgg_a0 resmlp_12_224 resnest14d rexnet_100
res2net50d sequencer2d_s starnet_s1 volo_d1_224
"""
DEFAULT_INPUT = "2x3x224x224"

DETECTOR = """
def {name}():
    import torchvision

    model = torchvision.models.{path}(weights=None, weights_backbone=None)
    images = [torch.rand(3, 320, 320), torch.rand(3, 320, 320)]
    targets = [
        {{"boxes": torch.tensor([[10.0, 20.0, 150.0, 200.0]]), "labels": torch.tensor([1])}}
        for _ in images
    ]
    return model, (images, targets)
"""
LSTM_FLOP_MISSING = {"sequencer2d_s": "PyTorch's counter does not count LSTM layers"}


def main() -> None:
    parser = arguments(__doc__ or "")
    parser.add_argument("--only", help="networks whose name contains this text")
    parser.add_argument("--subject", nargs=2, metavar=("FILE", "NAME"), help="one, in this process")
    options = parser.parse_args()
    if options.subject:
        print(json.dumps(_compared(Path(options.subject[0]), options.subject[1])))
        return
    figures: dict[str, Any] = {"machine": machine(), "versions": _versions(), "networks": {}}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "networks.py"
        names = _write_networks(path)
        if options.only:
            names = {name: kind for name, kind in names.items() if options.only in name}
        if options.quick:
            names = dict(list(names.items())[::10])
        for name in names:
            figures["networks"][name] = answer = _in_own_process(path, name)
            print(f"{name:44s} {answer['verdict']:8s} {answer['detail']}", flush=True)
        for kind in sorted(set(names.values())):
            verdicts = [figures["networks"][n]["verdict"] for n in names if names[n] == kind]
            counts = {v: verdicts.count(v) for v in sorted(set(verdicts))}
            print(f"{kind}: {len(verdicts)} networks, {counts}")
    finish(figures, options.json)


def _versions() -> dict[str, str]:
    versions = {}
    for package in ("torch", "torchvision", "timm", "transformers"):
        if importlib.util.find_spec(package) is None:
            print(f"{package} is not installed: its networks are skipped")
        else:
            versions[package] = importlib.metadata.version(package)
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    return versions


def _write_networks(path: Path) -> dict[str, str]:
    """Write a file with a function per network; return names and kinds."""
    lines, names = ["import torch"], {}
    if importlib.util.find_spec("torchvision"):
        for given in TORCHVISION.split():
            target, _, shape = given.partition(":")
            name = f"torchvision_{target.replace('.', '_')}"
            names[name] = "vision"
            backbone = "" if target.count(".") == 0 else ", weights_backbone=None"
            if target.startswith("video."):
                backbone = ""
            template = DETECTOR if target.startswith("detection.") else _plain("torchvision", shape)
            call = f"torchvision.models.{target}(weights=None{backbone})"
            lines.append(template.format(name=name, path=target, call=call))
    if importlib.util.find_spec("timm"):
        for given in TIMM.split():
            target, _, shape = given.partition(":")
            name = f"timm_{target}"
            names[name] = "vision"
            call = f"timm.create_model('{target}')"
            lines.append(_plain("timm", shape).format(name=name, call=call))
    if importlib.util.find_spec("transformers"):
        lines.append(inspect.getsource(hugging_face_models))
        names |= dict.fromkeys(hugging_face_models.names(), "hugging_face")
        for name in hugging_face_models.names():
            lines.append(f"def {name}():\n    return hugging_face_model('{name}')\n")
    path.write_text("\n".join(lines), encoding="utf-8")
    return names


def _plain(package: str, shape: str) -> str:
    sizes = ", ".join((shape or DEFAULT_INPUT).split("x"))
    return f"def {{name}}():\n    import {package}\n\n    return {{call}}, torch.rand({sizes})\n"


def _in_own_process(path: Path, name: str) -> dict[str, Any]:
    command = [sys.executable, __file__, "--subject", str(path), name]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        last = answer.stderr.strip().splitlines()[-1:] or ["no message"]
        return {"verdict": "failed", "detail": last[0]}
    result: dict[str, Any] = json.loads(answer.stdout.splitlines()[-1])
    return result


def _compared(path: Path, name: str) -> dict[str, Any]:
    import torch

    from paceline.errors import PacelineError
    from paceline.workload.capture import capture_notes, load_user_model

    torch.manual_seed(1)
    try:
        graph = load_user_model(f"{path}:{name}")
    except PacelineError as refusal:
        return {"verdict": "refused", "detail": f"{refusal.message} [{refusal.hint}]"}
    cost = graph.cost(graph.dimensions["recorded_batch"])
    parameters, flops = _truth(path, name)
    apart = float(cost.training_flops) / flops - 1
    right = cost.parameters == parameters and abs(apart) <= RIGHT_WITHIN
    known = LSTM_FLOP_MISSING.get(name.removeprefix("timm_"))
    verdict = "right" if right else "counter" if known else "WRONG"
    off = f"{cost.parameters - parameters:+,} of {parameters:,} parameters, {apart:+.3%} FLOP"
    detail = "; ".join([off, *([known] if known else []), *capture_notes(graph)])
    return {"verdict": verdict, "detail": detail}


def _truth(path: Path, name: str) -> tuple[int, int]:
    """Parameters and FLOP of one training step, by PyTorch: without data where that can be."""
    import torch
    from torch.utils._pytree import tree_map_only

    from paceline.workload.capture.fake import ExampleInputs

    specification = importlib.util.spec_from_file_location("networks", path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    torch.manual_seed(1)
    model, example = getattr(module, name)()
    inputs = ExampleInputs(example)
    args, kwargs = inputs.real(inputs.batch)
    parameters = sum(p.numel() for p in model.parameters())
    try:
        with torch.device("meta"):
            shapes = copy.deepcopy(model).to("meta")
            return parameters, _counted(
                shapes, *tree_map_only(torch.Tensor, _on_meta, (args, kwargs))
            )
    except (RuntimeError, NotImplementedError):
        return parameters, _counted(model, args, kwargs)


def _counted(model: Any, args: Any, kwargs: Any) -> int:
    import torch
    from torch.nn.attention import SDPBackend, sdpa_kernel
    from torch.utils.flop_counter import FlopCounterMode
    from workload_checks import convolution_backward_flops

    from paceline.workload.capture.fake import trained_outputs

    model.train()
    aten = torch.ops.aten
    counted = {aten.convolution_backward: convolution_backward_flops, aten._grouped_mm: _grouped}
    with (
        sdpa_kernel(SDPBackend.MATH),
        FlopCounterMode(display=False, custom_mapping=counted) as counter,
    ):
        outputs = trained_outputs(model(*args, **kwargs))
        torch.autograd.backward(outputs, [torch.ones_like(output) for output in outputs])
    return int(counter.get_total_flops())


def _on_meta(tensor: Any) -> Any:
    return tensor.to("meta")


def _grouped(first: Any, second: Any, *_: Any, **__: Any) -> int:
    """Rows times depth times columns: every row (or column) belongs to one group."""
    return int(2 * first[-2] * first[-1] * second[-1])


if __name__ == "__main__":
    main()
