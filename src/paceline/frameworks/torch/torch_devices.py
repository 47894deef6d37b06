"""Devices and versions of PyTorch."""

import os
import re

import torch


def versions() -> dict:
    """Return the versions and libraries that affect the speed of this rank."""
    return {
        "framework": f"torch {torch.__version__}",
        "blas": "mkl" if torch.backends.mkl.is_available() else "other",
        "onednn": torch.backends.mkldnn.is_available(),
        "build": build(),
    }


def build() -> str:
    """Return compiler, options of optimisation and instruction set of the installed PyTorch."""
    text = torch.__config__.show()
    compiler = re.search(r"^\s*- ((?:GCC|clang|MSVC) \S+)", text, re.MULTILINE)
    flags = re.search(r"CXX_FLAGS=([^,]*)", text)
    options = re.findall(r"(?<!\S)-(?:O|m|f\S*math)\S*", flags[1] if flags else "")
    found = [compiler[1] if compiler else "", " ".join(options)]
    return ", ".join([*filter(None, found), torch.backends.cpu.get_cpu_capability()])


def place(device: str) -> torch.device:
    """Return the device of this rank: the CPU, or the GPU of its local rank."""
    if device == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def synchronise(device: torch.device) -> None:
    """Wait for the issued work of a GPU, so that the timer includes it; no-op on a CPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
