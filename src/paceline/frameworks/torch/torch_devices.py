"""Where PyTorch computes, and what it is made of."""

import os

import torch


def versions() -> dict:
    """Versions and libraries that decide how fast this rank computes."""
    return {
        "framework": f"torch {torch.__version__}",
        "blas": "mkl" if torch.backends.mkl.is_available() else "other",
        "onednn": torch.backends.mkldnn.is_available(),
    }


def place(device: str) -> torch.device:
    """The device of this rank: the CPU, or the GPU with its local rank's number."""
    if device == "cuda":
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", "0")))
        return torch.device("cuda", torch.cuda.current_device())
    return torch.device("cpu")


def synchronise(device: torch.device) -> None:
    """Wait for a GPU to finish what was issued, so that the clock sees it; nothing on a CPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)
