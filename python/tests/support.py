"""What the tests share: devices, problems, and PyTorch's convolution in float64 as the reference."""

import os
import tempfile
import unittest
from typing import NamedTuple, Tuple

# A temporary cache: choices of these tests do not outlive them or depend on earlier ones.
os.environ["TWIDDLE_TORCH_CACHE"] = os.path.join(tempfile.mkdtemp(), "choices.txt")

import torch
import torch.nn.functional as F

import twiddle_torch

torch.manual_seed(1)

devices = ["cpu"] + (["cuda"] if torch.cuda.is_available() and len(twiddle_torch.devices()) > 1 else [])


class Problem(NamedTuple):
    x: Tuple[int, ...] = (2, 6, 12, 11)
    weight: Tuple[int, ...] = (4, 6, 5, 5)
    stride: Tuple[int, int] = (1, 1)
    padding: Tuple[int, int] = (2, 2)
    dilation: Tuple[int, int] = (1, 1)
    groups: int = 1

    def window(self):
        return dict(stride=self.stride, padding=self.padding, dilation=self.dilation, groups=self.groups)


awkward = [
    Problem(),
    Problem(x=(3, 4, 9, 17), weight=(6, 2, 3, 5), padding=(0, 3), groups=2),
    Problem(x=(2, 8, 14, 14), weight=(8, 1, 13, 13), padding=(6, 6), groups=8),
    Problem(x=(2, 3, 23, 19), weight=(5, 3, 7, 7), stride=(2, 3), padding=(3, 1)),
    Problem(x=(1, 4, 20, 20), weight=(4, 4, 3, 3), padding=(2, 2), dilation=(2, 2)),
    Problem(x=(2, 16, 7, 7), weight=(24, 16, 1, 1), padding=(0, 0)),
]


def operands(problem: Problem, device: str, dtype=torch.float32):
    x, weight = (torch.randn(shape, device=device, dtype=dtype) for shape in (problem.x, problem.weight))
    bias = torch.randn(problem.weight[0], device=device, dtype=dtype)
    return x.requires_grad_(), weight.requires_grad_(), bias.requires_grad_()


def in_double(*tensors):
    return [tensor.detach().double().requires_grad_() for tensor in tensors]


def step(conv, inputs, grad, **window):
    """The result, and the gradients of all inputs."""
    y = conv(*inputs, **window)
    return [y, *torch.autograd.grad(y, inputs, grad.to(y.dtype))]


def relative_error(a, b):
    return ((a.double() - b.double()).norm() / b.double().norm()).item()


class TestCase(unittest.TestCase):
    fp32 = 2e-6

    def assert_close(self, a, b, limit=fp32):
        self.assertEqual(a.shape, b.shape)
        self.assertLessEqual(relative_error(a, b), limit)

    def assert_step_is_right(self, problem, device, conv=twiddle_torch.conv2d, limit=fp32, **options):
        inputs = operands(problem, device)
        grad = torch.randn_like(F.conv2d(*inputs, **problem.window()))
        found = step(conv, inputs, grad, **problem.window(), **options)
        right = step(F.conv2d, in_double(*inputs), grad, **problem.window())
        for a, b in zip(found, right):
            self.assert_close(a, b, limit)
