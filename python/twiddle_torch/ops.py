"""What PyTorch must know of the operators beyond their arithmetic: shapes, gradients, derivatives forward, autocast, vmap.

Each gradient is again one of the three operators, so that derivatives of any order are available.
"""

from types import SimpleNamespace
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple, cast

import torch
from torch import Tensor
from torch.autograd import forward_ad

from twiddle_torch import _library  # noqa: F401  loads the operators
from twiddle_torch._warnings import warn_of_copy


def output_size(size: int, kernel: int, stride: int, padding: int, dilation: int) -> int:
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


# Shapes.


def _fake_conv2d(x: Tensor, weight: Tensor, bias: Optional[Tensor], stride: Sequence[int], padding: Sequence[int],
                 dilation: Sequence[int], *rest: Any) -> Tensor:
    plane = [output_size(x.shape[i + 2], weight.shape[i + 2], stride[i], padding[i], dilation[i]) for i in (0, 1)]
    return x.new_empty([x.shape[0], weight.shape[0], *plane])


def _fake_gradient(grad: Tensor, other: Tensor, shape: Sequence[int], *rest: Any) -> Tensor:
    return grad.new_empty(shape)


torch.library.register_fake("twiddle::conv2d", _fake_conv2d)
torch.library.register_fake("twiddle::conv2d_backward_input", _fake_gradient)
torch.library.register_fake("twiddle::conv2d_backward_weight", _fake_gradient)


# Gradients. Each operator has two tensors a and b, and is linear in each: conv2d(x, weight), backward_input(grad, weight) and
# backward_weight(grad, x). Only tensors that the required gradients need are saved.


def _setup(ctx: Any, inputs: Sequence[Any], output: Tensor) -> None:
    a, b, _bias_or_shape, *ctx.arguments = inputs
    needs_a, needs_b = ctx.needs_input_grad[:2]
    ctx.save_for_backward(a if needs_b else None, b if needs_a else None)
    ctx.shapes = a.shape, b.shape
    ctx.shape = output.shape


Gradient = Callable[..., Tensor]  # arguments: saved tensors, the output's gradient, the result's shape, and the rest


def _gradients_by(of_a: Gradient, of_b: Gradient) -> Callable[..., "tuple[Optional[Tensor], ...]"]:
    def gradients(ctx: Any, grad: Tensor) -> "tuple[Optional[Tensor], ...]":
        a, b = ctx.saved_tensors
        wants_a, wants_b, wants_bias = ctx.needs_input_grad[:3]
        return (
            of_a(b, grad, ctx.shapes[0], *ctx.arguments) if wants_a else None,
            of_b(a, grad, ctx.shapes[1], *ctx.arguments) if wants_b else None,
            grad.sum((0, 2, 3)) if wants_bias else None,
            *[None] * len(ctx.arguments),
        )

    return gradients


_conv2d_gradients = _gradients_by(
    lambda weight, grad, *rest: backward_input(grad, weight, *rest),
    lambda x, grad, *rest: backward_weight(grad, x, *rest))
# Gradients of <backward_input(grad, weight), v> = <grad, conv2d(v, weight)>.
_input_gradients = _gradients_by(
    lambda weight, v, _shape, *rest: conv2d(v, weight, None, *rest),
    lambda grad, v, *rest: backward_weight(grad, v, *rest))
# Gradients of <backward_weight(grad, x), v> = <grad, conv2d(x, v)>.
_weight_gradients = _gradients_by(
    lambda x, v, _shape, *rest: conv2d(x, v, None, *rest),
    lambda grad, v, *rest: backward_input(grad, v, *rest))


# Autocast: the operators compute in float32, whatever the types of other operators.
for _device in ("cpu", "cuda"):
    torch.library.register_autocast("twiddle::conv2d", _device, torch.float32)


# vmap: batches of images become one larger batch. If the weights are batched, there is one call for each of them.


def _one_by_one(op: Callable[..., Tensor]) -> Callable[..., "tuple[Tensor, int]"]:
    def batched(info: Any, in_dims: Sequence[Optional[int]], *args: Any) -> "tuple[Tensor, int]":
        def of(index: int) -> List[Any]:
            return [arg.select(dim, index) if isinstance(dim, int) else arg for arg, dim in zip(args, in_dims)]

        return torch.stack([op(*of(index)) for index in range(info.batch_size)]), 0

    return batched


def _as_larger_batch(op: Callable[..., Tensor]) -> Callable[..., "tuple[Tensor, int]"]:
    def batched(info: Any, in_dims: Sequence[Any], images: Tensor, weight: Tensor, bias_or_shape: Any,
                *arguments: Any) -> "tuple[Tensor, int]":
        if in_dims[0] is None or in_dims[1] is not None or isinstance(in_dims[2], int):
            return _one_by_one(op)(info, in_dims, images, weight, bias_or_shape, *arguments)
        images = images.movedim(in_dims[0], 0)
        if isinstance(bias_or_shape, (list, tuple)):
            bias_or_shape = [images.shape[0] * images.shape[1], *bias_or_shape[1:]]
        return op(images.flatten(0, 1), weight, bias_or_shape, *arguments).unflatten(0, images.shape[:2]), 0

    return batched


# The older vmap, which autograd.grad(is_grads_batched=True) and torch.autograd.functional still use. It calls a kernel.
_older_vmap = torch.library.Library("twiddle", "IMPL")
_is_batched: Any = torch._C._functorch.is_legacy_batchedtensor


def _for_older_vmap(batched: Callable[..., "tuple[Tensor, int]"]) -> Callable[..., Tensor]:
    """The same rule, for the outermost level at which an argument is batched."""

    def rule(*args: Any) -> Tensor:
        for level in range(1, 65):  # the maximum number of levels is 64
            # A tensor that is not batched at this level gets a batch dimension of size 0.
            unwrapped = [
                torch._remove_batch_dim(arg, level, 0, 0) if isinstance(arg, Tensor) and _is_batched(arg) else None  # type: ignore
                for arg in args
            ]
            in_dims = [None if each is None or each.shape[0] == 0 else 0 for each in unwrapped]
            if 0 in in_dims:
                break
        info = SimpleNamespace(batch_size=unwrapped[in_dims.index(0)].shape[0])
        y, dim = batched(info, in_dims, *(arg if dim is None else each for arg, dim, each in zip(args, in_dims, unwrapped)))
        return cast(Tensor, torch._add_batch_dim(y, dim, level))  # type: ignore

    return rule


# The operators as they are called.

_transforms_are_active: Any = torch._C._are_functorch_transforms_active


def _operator(name: str, gradients: Callable[..., Any], vmap_rule: Callable[..., Any]) -> Callable[..., Tensor]:
    op = getattr(torch.ops.twiddle, name).default

    def call(*args: Any) -> Tensor:
        if forward_ad._current_level >= 0 or not torch.compiler.is_compiling() and _transforms_are_active():
            return cast(Tensor, Transformed.apply(*args))
        return cast(Tensor, op(*args))

    batched = vmap_rule(call)
    torch.library.register_autograd(f"twiddle::{name}", gradients, setup_context=_setup)
    torch.library.register_vmap(f"twiddle::{name}", batched)
    _older_vmap.impl(name, _for_older_vmap(batched), "Batched")

    def alone(*args: Any) -> Tensor:
        with torch._C._AutoDispatchBelowAutograd():
            return cast(Tensor, op(*args))

    def tangent(ctx: Any, of_a: Tensor, of_b: Tensor, of_bias: Optional[Tensor], *rest: Any) -> Tensor:
        a, b = ctx.saved_tensors
        bias_or_shape = (of_bias, None) if name == "conv2d" else (ctx.shape, ctx.shape)
        return call(of_a, b, bias_or_shape[0], *ctx.arguments) + call(a, of_b, bias_or_shape[1], *ctx.arguments)

    class Transformed(torch.autograd.Function):  # for torch.func and forward_ad, which ignore registered rules
        forward = staticmethod(alone)
        backward = staticmethod(gradients)
        jvp = staticmethod(tangent)
        vmap = staticmethod(batched)

        @staticmethod
        def setup_context(ctx: Any, inputs: Sequence[Any], output: Tensor) -> None:
            _setup(ctx, inputs, output)
            ctx.save_for_forward(*inputs[:2])

    return call


_any_conv2d = _operator("conv2d", _conv2d_gradients, _as_larger_batch)
backward_input = _operator("conv2d_backward_input", _input_gradients, _as_larger_batch)
backward_weight = _operator("conv2d_backward_weight", _weight_gradients, _one_by_one)


def conv2d(x: Tensor, weight: Tensor, bias: Optional[Tensor], *arguments: Any) -> Tensor:
    if not torch.compiler.is_compiling() and may_take_fast_path(x, weight, bias):
        return fast_conv2d(x, weight, bias, id_of(arguments))
    return _any_conv2d(x, weight, bias, *arguments)


# A fast path with the same results, for plain tensors if no mode, tracer or transform is active. PyTorch's dispatch to an
# operator with many arguments and with gradients in Python takes several times as long as a small layer. The operators of the
# fast path get the arguments that do not change between calls as one id.

# The Python code here takes longer than the operators: a backward pass runs on another thread, on a core with cold caches.
# So each call runs few functions without nesting, and attributes are looked up in advance.

Arguments = Tuple[Any, ...]
_float32, _plain_types = torch.float32, (Tensor, torch.nn.Parameter)
_fast_conv2d: Any = torch.ops.twiddle._conv2d.default._op
_recorded_conv2d: Any = torch.ops.twiddle._conv2d_recorded.default._op
_fast_backward: Any = torch.ops.twiddle._conv2d_backward.default._op
_release: Any = torch.ops.twiddle._release.default._op
_saving_is_hooked: Any = torch._C._autograd._top_saved_tensors_default_hooks
_graph_is_kept: Any = torch._C._autograd._get_current_graph_task_keep_graph
_count_of_modes: Any = torch._C._len_torch_dispatch_stack
_tracing_state: Any = torch._C._get_tracing_state
_grad_is_enabled, _is_compiling = torch.is_grad_enabled, torch.compiler.is_compiling
_ids: Dict[Arguments, int] = {}
_arguments: Dict[int, Arguments] = {}


def id_of(arguments: Arguments) -> int:
    arguments = tuple(tuple(each) if isinstance(each, list) else each for each in arguments)
    if arguments not in _ids:
        id = _ids[arguments] = torch.ops.twiddle._id(*arguments)
        _arguments[id] = arguments
    return _ids[arguments]


def may_take_fast_path(x: Tensor, weight: Tensor, bias: Optional[Tensor]) -> bool:
    return (
        type(x) in _plain_types and x.dtype is _float32 and (x.is_cpu or x.is_cuda)
        and type(weight) in _plain_types and weight.dtype is _float32
        and (bias is None or type(bias) in _plain_types and bias.dtype is _float32)
        and not (_transforms_are_active() or _count_of_modes() or _tracing_state() or forward_ad._current_level >= 0)
    )


def fast_conv2d(x: Tensor, weight: Tensor, bias: Optional[Tensor], id: int) -> Tensor:
    records = _grad_is_enabled() and (x.requires_grad or weight.requires_grad or bias is not None and bias.requires_grad)
    y: Tensor = _record(x, weight, bias, id) if records else _fast_conv2d(x, weight, bias, id)
    return y


class _Spectra:
    """Those that the forward pass has left for the backward passes, for as long as this object lives."""

    __slots__ = ("id",)

    def __init__(self, id: int) -> None:
        self.id = id

    def __del__(self, release: Callable[[int], None] = _release, unwatched: Any = torch._C._DisableTorchDispatch) -> None:
        with unwatched():  # garbage collection may run under any dispatch mode
            release(self.id)


class _Recorded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Optional[Tensor], id: int) -> Tensor:
        needs_x, needs_weight = x.requires_grad, weight.requires_grad
        ctx.save_for_backward(x if needs_weight else None, weight if needs_x else None)
        missing = () if needs_x and needs_weight else x.shape if needs_x else weight.shape
        y: Tensor
        y, kept = _recorded_conv2d(x, weight, bias, id, needs_x, needs_weight)
        spectra = _Spectra(kept) if kept else None
        if spectra and _saving_is_hooked(False):
            spectra = None  # hooks that offload or recompute saved tensors mean that memory is short
        ctx.rest = id, missing, bias is not None and bias.requires_grad, spectra
        return y

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> "tuple[Optional[Tensor], ...]":
        x, weight = ctx.saved_tensors
        id, missing, has_bias, spectra = ctx.rest
        of_bias = grad.sum((0, 2, 3)) if has_bias and ctx.needs_input_grad[2] else None
        of_x = of_weight = None
        if not grad.is_contiguous():
            warn_of_copy("a gradient")
        if _grad_is_enabled() or _is_compiling() or not may_take_fast_path(grad, grad, None):
            of_x, of_weight = _backward(grad, x, weight, missing, id)
        elif x is not None or weight is not None:
            of_x, of_weight = _fast_backward(grad, x, weight, missing, id, spectra.id if spectra else 0)
        if spectra and not _graph_is_kept():
            # Released now, like PyTorch's saved tensors: the result of the forward pass may live longer.
            ctx.rest = id, missing, has_bias, None
        return of_x, of_weight, of_bias, None


# The same with the documented operators, which have gradients and vmap rules.


def _forward(x: Tensor, weight: Tensor, bias: Optional[Tensor], id: int, *needs: bool) -> Tensor:
    return _any_conv2d(x, weight, bias, *_arguments[id])


def _backward(grad: Tensor, x: Optional[Tensor], weight: Optional[Tensor], shape: Sequence[int], id: int,
              spectra: int = 0) -> "tuple[Optional[Tensor], Optional[Tensor]]":
    arguments = _arguments[id]
    of_x = of_weight = None
    if weight is not None:
        of_x = backward_input(grad, weight, shape if x is None else x.shape, *arguments)
    if x is not None:
        of_weight = backward_weight(grad, x, shape if weight is None else weight.shape, *arguments)
    return of_x, of_weight


_older_vmap.impl("_conv2d", _forward, "Batched")
_older_vmap.impl("_conv2d_recorded", lambda *args: (_forward(*args), 0), "Batched")
_older_vmap.impl("_conv2d_backward", _backward, "Batched")

# Skips Function.apply in Python, whose work is only for torch.func.
_record: Any = super(torch.autograd.Function, _Recorded).apply
