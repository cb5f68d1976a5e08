"""Spectra that the forward pass leaves for the backward passes: right results, and gone when the graph is."""

import gc
import resource
import unittest

import torch
import torch.nn.functional as F
from support import Problem, TestCase, devices, in_double, operands, step

import twiddle_torch

problem = Problem(x=(2, 16, 20, 20), weight=(8, 16, 7, 7), padding=(3, 3))
engines = {"cpu": "fft", "cuda": "fbfft"}


def kept():
    gc.collect()
    return torch.ops.twiddle._kept()


class Spectra(TestCase):
    def setUp(self):
        self.assertEqual(kept(), 0)

    def forward(self, device, inputs, **more):
        return twiddle_torch.conv2d(*inputs, **problem.window(), engine=engines[device], **more)

    def test_stay_until_the_backward_pass(self):
        for device in devices:
            inputs = operands(problem, device)
            for _ in range(2):  # the first call takes another path
                y = self.forward(device, inputs)
                self.assertEqual(kept(), 1)
                grad = torch.randn_like(y)
                found = torch.autograd.grad(y, inputs, grad)
                self.assertEqual(kept(), 0)  # although y is alive
            for a, b in zip((y, *found), step(F.conv2d, in_double(*inputs), grad, **problem.window())):
                self.assert_close(a, b)

    def test_stay_for_a_second_backward_pass(self):
        for device in devices:
            inputs = operands(problem, device)
            y = self.forward(device, inputs)
            grad = torch.randn_like(y)
            first = torch.autograd.grad(y, inputs, grad, retain_graph=True)
            self.assertEqual(kept(), 1)
            second = torch.autograd.grad(y, inputs, grad)
            for a, b in zip(first, second):
                self.assert_close(a, b)

    def test_freed_with_unused_graph(self):
        for device in devices:
            y = self.forward(device, operands(problem, device))
            self.assertEqual(kept(), 1)
            del y
            self.assertEqual(kept(), 0)

    def test_none_where_nothing_is_trained(self):
        for device in devices:
            inputs = operands(problem, device)
            with torch.no_grad():
                self.forward(device, inputs)
                self.assertEqual(kept(), 0)
            frozen = [inputs[0], *(t.detach() for t in inputs[1:])]
            grad = torch.randn_like(self.forward(device, inputs))
            y = self.forward(device, frozen)
            right = F.conv2d(*in_double(*inputs), **problem.window())
            self.assert_close(torch.autograd.grad(y, frozen[0], grad)[0],
                              torch.autograd.grad(F.conv2d(frozen[0].double(), frozen[1].double(), **problem.window()), frozen[0], grad.double())[0])
            self.assert_close(y, right)

    def test_a_layer_that_is_called_twice(self):
        def twice(conv, x, weight, **more):
            return conv(conv(x, weight, padding=3, **more).tanh(), weight, padding=3, **more)

        for device in devices:
            x, weight = torch.randn(2, 8, 20, 20, device=device), 0.1 * torch.randn(8, 8, 7, 7, device=device)
            x.requires_grad_(), weight.requires_grad_()
            y = twice(twiddle_torch.conv2d, x, weight, engine=engines[device])
            self.assertEqual(kept(), 2)
            grad = torch.randn_like(y)
            found = torch.autograd.grad(y, (x, weight), grad)
            double = in_double(x, weight)
            for a, b in zip(found, torch.autograd.grad(twice(F.conv2d, *double), double, grad.double())):
                self.assert_close(a, b, 1e-5)

    def test_inputs_that_come_back_elsewhere(self):
        """As where what is saved waits on the host: the place of x then holds something else, and memory is scarce."""
        for device in devices:
            inputs = operands(problem, device)
            right = step(F.conv2d, in_double(*inputs), torch.ones(2, 8, 20, 20, device=device), **problem.window())
            with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
                y = self.forward(device, inputs)
            self.assertEqual(kept(), 0)
            with torch.no_grad():
                inputs[0].fill_(7)
            found = torch.autograd.grad(y.sum(), inputs)
            for a, b in zip(found, right[1:]):
                self.assert_close(a, b)

    def test_out_of_memory(self):
        for device in devices:
            inputs = operands(problem, device)
            limit = 3 << 18
            ys = [twiddle_torch.conv2d(*inputs, **problem.window(), engine="rule", workspace_limit=limit) for _ in range(6)]
            grads = torch.randn(6, 2, 8, 20, 20, device=device)
            for y, grad in zip(ys, grads):
                right = step(F.conv2d, in_double(*inputs), grad, **problem.window())
                for a, b in zip(torch.autograd.grad(y, inputs, grad), right[1:]):
                    self.assert_close(a, b)

    def test_none_after_failed_forward_pass(self):
        """A training loop may catch the error and continue with a smaller batch."""
        x, weight = (torch.randn(size, requires_grad=True) for size in ((1, 512, 32, 32), (512, 512, 7, 7)))

        def forward():  # needs about 220 MB; the result is 2 MB
            return twiddle_torch.conv2d(x, weight, padding=3, engine="fft")

        forward()
        self.assertEqual(kept(), 0)
        twiddle_torch.conv2d(torch.randn(1, 1, 5, 6), torch.randn(1, 1, 3, 3), engine="rule")  # choosing a plan empties the pool
        limits = resource.getrlimit(resource.RLIMIT_AS)
        with open("/proc/self/statm") as file:
            taken = int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + (16 << 20), limits[1]))
        try:
            with self.assertRaisesRegex(RuntimeError, "memory"):
                forward()
        finally:
            resource.setrlimit(resource.RLIMIT_AS, limits)
        self.assertEqual(kept(), 0)
        forward()

    @unittest.skipUnless("cuda" in devices, "no GPU that this build can use")
    def test_in_a_graph(self):
        inputs = operands(problem, "cuda")
        grad = torch.randn(2, 8, 20, 20, device="cuda")
        work = lambda: torch.autograd.grad(self.forward("cuda", inputs), inputs, grad)  # noqa: E731
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            work()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = work()
        self.assertEqual(kept(), 0)
        for _ in range(3):
            with torch.no_grad():
                for old, new in zip(inputs, operands(problem, "cuda")):
                    old.copy_(new)
            torch.randn(1 << 22, device="cuda")  # overwrites memory that the graph does not hold
            graph.replay()
            for a, b in zip(found, step(F.conv2d, in_double(*inputs), grad, **problem.window())[1:]):
                self.assert_close(a, b)

    @unittest.skipUnless("cuda" in devices, "no GPU that this build can use")
    def test_on_streams_in_turn(self):
        streams = [torch.cuda.Stream() for _ in range(3)]
        for _ in range(8):
            steps = []
            for stream in streams:
                with torch.cuda.stream(stream):
                    inputs = operands(problem, "cuda")
                    steps.append((inputs, self.forward("cuda", inputs), torch.randn(2, 8, 20, 20, device="cuda")))
            for (inputs, y, grad), stream in zip(steps, streams):
                with torch.cuda.stream(stream):
                    found = torch.autograd.grad(y, inputs, grad)
                    right = step(F.conv2d, in_double(*inputs), grad, **problem.window())[1:]
                    for a, b in zip(found, right):
                        self.assert_close(a, b)

    @unittest.skipUnless("cuda" in devices, "no GPU that this build can use")
    def test_memory_is_given_back(self):
        inputs = operands(problem, "cuda")
        torch.autograd.grad(self.forward("cuda", inputs).sum(), inputs)
        before = torch.cuda.memory_allocated()
        y = self.forward("cuda", inputs)
        self.assertGreater(torch.cuda.memory_allocated() - before, y.numel() * 4)
        torch.autograd.grad(y.sum(), inputs)
        self.assertLess(torch.cuda.memory_allocated() - before, y.numel() * 4 + 1024)


if __name__ == "__main__":
    unittest.main()
