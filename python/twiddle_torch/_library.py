"""Loads the library of operators, and asks it what there is."""

import pathlib
from typing import Dict, Optional

import torch

from twiddle_torch import _cache

__version__ = "0.1.0"

_least_torch = (2, 10)


def _load() -> None:
    if tuple(int(part) for part in torch.__version__.split(".")[:2]) < _least_torch:
        raise ImportError(f"twiddle_torch needs PyTorch {_least_torch[0]}.{_least_torch[1]} or later, this is {torch.__version__}")
    library = pathlib.Path(__file__).with_name("_C.so")
    if not library.exists():
        raise ImportError(
            f"{library} is missing: install the wheel, or build it (docs/pytorch.md says how); "
            "a checkout of the sources alone will not do"
        )
    _cache.set_up()
    torch.ops.load_library(str(library))


def choices() -> "list[dict[str, str]]":
    """The plans that were chosen in this process: one dict a pass, with device, problem, precision, pass, plan, reason."""
    keys = ("device", "problem", "precision", "pass", "plan", "reason")
    return [dict(zip(keys, line.split("\t"))) for line in torch.ops.twiddle.choices().splitlines()]


def devices() -> "list[str]":
    """A line for each device that can be used, with its engines, and for each GPU that cannot, why."""
    lines = [torch.ops.twiddle._device(-1), *map(_ask_about, range(torch.cuda.device_count()))]
    return [line.replace("\t", ": engines ").rstrip() for line in lines if line]


def why_not(device: torch.device) -> Optional[str]:
    """Why nothing can be computed on a device; None: it can."""
    if device not in _why_not:
        _why_not[device] = _look_at(device)
        if _why_not[device] is None and device.type != "meta":
            usable.add(-1 if device.index is None else device.index)
    return _why_not[device]


def _look_at(device: torch.device) -> Optional[str]:
    if device.type in ("cpu", "meta"):
        return None
    if device.type != "cuda":
        return f"the device {device.type} is not supported"
    line = _ask_about(torch.cuda.current_device() if device.index is None else device.index)
    if not line:
        return "this build of twiddle_torch has no CUDA side, or sees no GPU"
    return None if "\t" in line else line


def _ask_about(gpu: int) -> str:
    with torch.cuda.device(gpu):  # keeps the current GPU, and creates no context on other GPUs
        line: str = torch.ops.twiddle._device(gpu)
    return line


_why_not: Dict[torch.device, Optional[str]] = {}
usable: "set[int]" = set()
"""The requested devices that something can be computed on, as ``Tensor.get_device`` numbers them."""
_load()
