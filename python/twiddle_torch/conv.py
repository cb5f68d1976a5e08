"""conv2d and Conv2d, with the arguments of PyTorch's own and what Twiddle adds."""

from typing import Any, Dict, Optional, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from twiddle_torch import ops
from twiddle_torch._library import usable, why_not
from twiddle_torch._warnings import warn_of_copy, warn_once

IntPair = Union[int, Tuple[int, ...]]  # a number, or one for rows and one for columns
CallArguments = Tuple[Any, ...]  # the arguments of conv2d from `stride` on

WORKSPACE_LIMIT = 4 << 30
"""Bytes that a plan may take while it runs, unless an argument says otherwise."""

_computed_in_float32 = (torch.float32, torch.bfloat16, torch.float16)
_is_compiling = torch.compiler.is_compiling
_is_deterministic: Any = torch._C._get_deterministic_algorithms
_any_autocast_is_enabled: Any = torch._C._is_any_autocast_enabled
_known_ids: Dict[Any, int] = {}


def conv2d(
    x: Tensor,
    weight: Tensor,
    bias: Optional[Tensor] = None,
    stride: IntPair = 1,
    padding: Union[str, IntPair] = 0,
    dilation: IntPair = 1,
    groups: int = 1,
    *,
    precision: str = "fp32",
    workspace_limit: int = WORKSPACE_LIMIT,
    engine: Optional[str] = None,
    strict: bool = False,
) -> Tensor:
    """``torch.nn.functional.conv2d`` by Twiddle's engines.

    Args:
        x, weight, bias, stride, padding, dilation, groups: as in PyTorch.
        precision: ``"fp32"``: relative errors below 2e-6, whatever PyTorch's flags for TF32 say; ``"tf32"``: below 1e-3.
        workspace_limit: bytes of scratch memory that a pass may take.
        engine: ``"measured"`` times all plans of all engines once for each shape and remembers the fastest, on disk,
            too; ``"rule"`` selects one without measuring; ``"fbfft"`` or ``"fft:48x48"`` names an engine or its plan.
            None: ``"measured"``, and ``"rule"`` under ``torch.use_deterministic_algorithms``.
        strict: raise if PyTorch's convolution would have to be used, instead of a warning.

    bfloat16 and float16 are computed in float32 and returned in the type that PyTorch's conv2d would return.
    Operands that are not contiguous (channels_last, too) are copied in each call, with one warning.
    """
    arguments = stride, padding, dilation, groups, precision, workspace_limit, engine
    is_fast = not _is_compiling() and _takes_fast_path(x, weight, bias)
    if is_fast and (id := _known_id(arguments)) is not None:
        return ops.fast_conv2d(x, weight, bias, id)
    reason = refusal(x, weight, bias, dilation)
    if reason is not None:
        if strict:
            raise ValueError(f"twiddle_torch.conv2d: {reason}")
        warn_once(f"{reason}: torch.nn.functional.conv2d is used")
        return F.conv2d(x, weight, bias, stride, padding, dilation, groups)
    if x.dim() == 3:
        return conv2d(
            x.unsqueeze(0), weight, bias, stride, padding, dilation, groups, precision=precision,
            workspace_limit=workspace_limit, engine=engine, strict=strict,
        ).squeeze(0)
    if not _is_compiling():
        for name, operand in (("an input", x), ("a weight", weight), ("a bias", bias)):
            if operand is not None and not operand.is_contiguous():
                warn_of_copy(name)
    x, op_arguments = _op_arguments(x, weight, *arguments)
    if is_fast and not isinstance(padding, str):
        _remember(arguments, op_arguments)
    device = x.device.type
    autocasts = device != "meta" and torch.is_autocast_enabled(device)
    if x.dtype is torch.float32 and weight.dtype is torch.float32 and not autocasts:
        return ops.conv2d(x, weight, bias, *op_arguments)
    dtype = torch.get_autocast_dtype(device) if autocasts else x.dtype
    y = ops.conv2d(x.float(), weight.float(), None if bias is None else bias.float(), *op_arguments)
    return y.to(dtype)


def _takes_fast_path(x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> bool:
    """Whether nothing has to be reported, cast or copied, so that only the arguments are left to check."""
    return ops.may_take_fast_path(x, weight, bias) and (
        x.dim() == 4 and x.numel() > 0 and x.is_contiguous() and weight.is_contiguous()
        and (bias is None or bias.is_contiguous()) and x.get_device() in usable and not _any_autocast_is_enabled()
    )


def _known_id(arguments: CallArguments) -> Optional[int]:
    """Returns the id of the operators' arguments, if an earlier call with these has made one."""
    try:
        return _known_ids.get((arguments, _is_deterministic()))
    except TypeError:  # a list is not hashable
        return None


def _remember(arguments: CallArguments, op_arguments: ops.Arguments) -> None:
    try:
        _known_ids[arguments, op_arguments[-1]] = ops.id_of(op_arguments)
    except TypeError:
        pass


def _op_arguments(
    x: Tensor, weight: Tensor, stride: IntPair, padding: Union[str, IntPair], dilation: IntPair, groups: int, precision: str,
    workspace_limit: int, engine: Optional[str],
) -> "tuple[Tensor, ops.Arguments]":
    """What the operators want to know, and x with the padding that they cannot give."""
    stride, dilation = _pair(stride), _pair(dilation)
    if isinstance(padding, str):
        x, padding = _padded(x, weight, padding, stride, dilation)
    deterministic = torch.are_deterministic_algorithms_enabled()
    if engine is None:
        engine = "rule" if deterministic else "measured"
    return x, (stride, _pair(padding), dilation, groups, precision, workspace_limit, engine, deterministic)


def refusal(x: Tensor, weight: Tensor, bias: Optional[Tensor], dilation: IntPair) -> Optional[str]:
    """Why Twiddle's engines cannot do a convolution that PyTorch can; None: nothing speaks against it."""
    for tensor in (x, weight, bias):
        if tensor is not None and tensor.dtype not in _computed_in_float32:
            return f"{tensor.dtype} is not supported"
    if not torch.compiler.is_compiling() and (reason := why_not(x.device)) is not None:
        return reason
    if x.dim() not in (3, 4):
        return f"an input of {x.dim()} dimensions is not supported"
    if not isinstance(dilation, int) and len(set(dilation)) != 1:
        return f"a dilation of {tuple(dilation)} is not supported, only the same for rows and columns"
    if 0 in x.shape[-3:]:
        return f"an input of shape {tuple(x.shape)} is not supported"
    return None


class Conv2d(nn.Conv2d):
    """``torch.nn.Conv2d`` by Twiddle's engines: the same arguments, parameters and state_dict, and what
    :func:`conv2d` adds: ``precision``, ``workspace_limit``, ``engine``, ``strict``."""

    precision: str
    workspace_limit: int
    engine: Optional[str]
    strict: bool

    def __init__(
        self,
        *args: Any,
        precision: str = "fp32",
        workspace_limit: int = WORKSPACE_LIMIT,
        engine: Optional[str] = None,
        strict: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self._set_options(precision, workspace_limit, engine, strict)

    def _set_options(self, precision: str, workspace_limit: int, engine: Optional[str], strict: bool) -> None:
        self.precision, self.workspace_limit, self.engine, self.strict = precision, workspace_limit, engine, strict

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Optional[Tensor]) -> Tensor:
        padding: Union[str, IntPair] = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = 0
        return conv2d(
            input, weight, bias, self.stride, padding, self.dilation, self.groups, precision=self.precision,
            workspace_limit=self.workspace_limit, engine=self.engine, strict=self.strict,
        )

    def extra_repr(self) -> str:
        engine = "" if self.engine is None else f", engine={self.engine}"
        return f"{super().extra_repr()}, precision={self.precision}{engine}"


def _pair(value: IntPair) -> "tuple[int, int]":
    if isinstance(value, int):
        return value, value
    first, second = value if len(value) == 2 else (value[0], value[0])
    return first, second


def _padded(
    x: Tensor, weight: Tensor, padding: str, stride: Tuple[int, int], dilation: Tuple[int, int]
) -> "tuple[Tensor, IntPair]":
    """"valid" and "same" as numbers; where one side gets more than the other, x is padded by what it gets."""
    if padding == "valid":
        return x, 0
    if padding != "same":
        raise ValueError(f"a padding of {padding!r} is not 'valid', 'same', a number or two numbers")
    if stride != (1, 1):
        raise ValueError("padding='same' goes with a stride of 1 alone")
    total = [dilation[i] * (weight.shape[i + 2] - 1) for i in (0, 1)]
    if any(each % 2 for each in total):
        x = F.pad(x, (0, total[1] % 2, 0, total[0] % 2))
    return x, (total[0] // 2, total[1] // 2)
