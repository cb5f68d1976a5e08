"""Puts Twiddle's convolutions into an existing model."""

import sys
from typing import Dict, Optional, TextIO, cast

from torch import nn

from twiddle_torch.conv import WORKSPACE_LIMIT, Conv2d


def convert(
    model: nn.Module,
    min_kernel: int = 5,
    *,
    precision: str = "fp32",
    workspace_limit: int = WORKSPACE_LIMIT,
    engine: Optional[str] = None,
    file: Optional[TextIO] = sys.stdout,
) -> "Dict[str, str]":
    """Replaces the convolutions of ``model`` whose kernel has ``min_kernel`` rows or columns at least, in place.

    Layers stay the same objects with the same parameters, so that optimizers, hooks and state_dict do not notice.
    What is replaced and what is not, and why, is printed to ``file`` (None: nowhere).

    Returns:
        for each convolution's name, why it stays PyTorch's; "" where it is replaced.
    """
    reasons: Dict[str, str] = {}
    lines = []
    for name, layer in model.named_modules():
        if not isinstance(layer, nn.Conv2d):
            continue
        reason = _why_not(layer, min_kernel)
        if reason == "":
            layer.__class__ = Conv2d
            Conv2d._set_options(cast(Conv2d, layer), precision, workspace_limit, engine, strict=False)
        reasons[name] = reason
        lines.append(f"{name or '(the model)'}: {_describe(layer)}: {reason and 'stays, ' + reason or 'Twiddle, ' + precision}")
    if file is not None:
        done = sum(reason == "" for reason in reasons.values())
        print(f"twiddle_torch: {done} of {len(reasons)} convolutions replaced", *_folded(lines), sep="\n  ", file=file)
    return reasons


def _why_not(layer: nn.Conv2d, min_kernel: int) -> str:
    if isinstance(layer, Conv2d):
        return "it is Twiddle's already"
    if type(layer) is not nn.Conv2d:
        return f"it is a {type(layer).__name__}, whose forward pass may do more"
    if max(layer.kernel_size) < min_kernel:
        return f"its kernel is smaller than min_kernel = {min_kernel}"
    if len(set(layer.dilation)) != 1:
        return f"its dilation differs between rows and columns, {tuple(layer.dilation)}"
    if layer.weight.dtype.itemsize > 4 or not layer.weight.dtype.is_floating_point:
        return f"{layer.weight.dtype} is not supported"
    return ""


def _describe(layer: nn.Conv2d) -> str:
    rows, columns = layer.kernel_size
    text = f"{layer.in_channels} to {layer.out_channels}, {rows}x{columns}"
    if max(layer.stride) > 1:
        text += f", stride {layer.stride[0]}" if layer.stride[0] == layer.stride[1] else f", stride {layer.stride}"
    if layer.groups > 1:
        text += ", depthwise" if layer.groups == layer.in_channels else f", {layer.groups} groups"
    return text


def _folded(lines: "list[str]") -> "list[str]":
    """Lines that differ in the layer's name alone become one, with the first name and how many more."""
    names: Dict[str, list] = {}
    for line in lines:
        name, rest = line.split(": ", 1)
        names.setdefault(rest, []).append(name)
    more = {rest: f" and {len(all) - 1} more" if len(all) > 1 else "" for rest, all in names.items()}
    return [f"{all[0]}{more[rest]}: {rest}" for rest, all in names.items()]
