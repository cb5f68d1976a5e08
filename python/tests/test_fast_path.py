"""The fast path, which most calls take, and who must not be sent there."""

import unittest
import warnings
from unittest import mock

import torch
import torch.nn.functional as F
from support import Problem, TestCase, awkward, devices, in_double, operands, step
from torch.utils._python_dispatch import TorchDispatchMode

import twiddle_torch


class Watcher(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, op, types, args=(), kwargs=None):
        self.seen.append(op.name())
        return op(*args, **(kwargs or {}))


class FastPath(TestCase):
    def test_second_call_takes_it_forward_and_backward(self):
        ops = twiddle_torch.ops
        for device in devices:
            inputs = operands(Problem(), device)
            grad = torch.randn(2, 4, 12, 11, device=device)
            step(twiddle_torch.conv2d, inputs, grad, padding=2)
            with mock.patch.object(ops, "_recorded_conv2d", wraps=ops._recorded_conv2d) as forward, \
                    mock.patch.object(ops, "_fast_backward", wraps=ops._fast_backward) as back:
                step(twiddle_torch.conv2d, inputs, grad, padding=2)
            self.assertEqual((forward.call_count, back.call_count), (1, 1))

    def test_problems_in_turn(self):
        for device in devices:
            for _ in range(3):
                for problem in awkward:
                    self.assert_step_is_right(problem, device, engine="rule")

    def test_lists_do_as_well(self):
        x, weight, bias = operands(Problem(), "cpu")
        for _ in range(2):
            y = twiddle_torch.conv2d(x, weight, bias, padding=[2, 2])
            self.assert_close(y, F.conv2d(*in_double(x, weight, bias), padding=2))

    def test_who_watches_sees_the_operators_of_the_documents(self):
        for device in devices:
            inputs = operands(Problem(), device)
            grad = torch.randn(2, 4, 12, 11, device=device)
            right = step(twiddle_torch.conv2d, inputs, grad, padding=2)
            with Watcher() as watcher:
                found = step(twiddle_torch.conv2d, inputs, grad, padding=2)
            ours = {name for name in watcher.seen if name.startswith("twiddle")}
            self.assertEqual(ours, {"twiddle::conv2d", "twiddle::conv2d_backward_input", "twiddle::conv2d_backward_weight"})
            for a, b in zip(found, right):
                self.assert_close(a, b)

    def test_watched_in_the_backward_pass_alone(self):
        inputs = operands(Problem(), "cpu")
        y = twiddle_torch.conv2d(*inputs, padding=2)
        with Watcher() as watcher:
            y.sum().backward()
        self.assertIn("twiddle::conv2d_backward_input", watcher.seen)
        self.assertNotIn("twiddle::_conv2d_backward", watcher.seen)

    def test_traced_as_numbers_of_no_process(self):
        x, weight, _ = (t.detach() for t in operands(Problem(), "cpu"))
        twiddle_torch.conv2d(x, weight, padding=2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # this tracing API is deprecated
            traced = torch.jit.trace(lambda x, weight: twiddle_torch.conv2d(x, weight, padding=2), (x, weight))
        self.assertIn("twiddle::conv2d(", str(traced.graph))
        self.assert_close(traced(x, weight), F.conv2d(x.double(), weight.double(), padding=2))
        graph = torch.fx.experimental.proxy_tensor.make_fx(lambda x: twiddle_torch.conv2d(x, weight, padding=2))(x)
        self.assertIn("torch.ops.twiddle.conv2d.default", graph.code)

    def test_rejects_shapes_that_do_not_fit(self):
        for _ in range(2):
            with self.assertRaisesRegex(RuntimeError, "a weight of 4x6x3x3 is expected, got 4x5x3x3"):
                twiddle_torch.conv2d(torch.randn(1, 6, 8, 8), torch.randn(4, 5, 3, 3))
            with self.assertRaisesRegex(RuntimeError, "a bias of 4 is expected, got 3"):
                twiddle_torch.conv2d(torch.randn(1, 6, 8, 8), torch.randn(4, 6, 3, 3), torch.randn(3))

    def test_reports_later_changes(self):
        x, weight, bias = operands(Problem(), "cpu")
        y = twiddle_torch.conv2d(x, weight, bias, padding=2)
        with torch.no_grad():
            weight.mul_(2)
        with self.assertRaisesRegex(RuntimeError, "modified by an inplace operation"):
            y.sum().backward()

    def test_leftovers_of_torch_func(self):
        x, weight, _ = (t.detach() for t in operands(Problem(), "cpu"))
        escaped = []
        torch.func.grad(lambda x: escaped.append(x * 1) or x.sum())(x)
        y = twiddle_torch.conv2d(escaped[0], weight, padding=2)
        self.assert_close(y, F.conv2d(x.double(), weight.double(), padding=2))


if __name__ == "__main__":
    unittest.main()
