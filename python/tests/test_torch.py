"""That PyTorch's machinery goes with the operators: opcheck, compile, vmap, threads, streams, graphs, determinism."""

import threading
import time
import unittest
import warnings
from collections import Counter
from functools import partial

import torch
import torch.nn.functional as F
import torch.utils.checkpoint
from support import Problem, TestCase, awkward, devices, in_double, operands, step
from torch.autograd import forward_ad

import twiddle_torch

has_gpu = "cuda" in devices
arguments = ([1, 1], [2, 2], [1, 1], 1, "fp32", 1 << 30, "rule", False)


class Machinery(TestCase):
    def test_opcheck(self):
        for device in devices:
            x, weight, bias = operands(Problem(), device)
            grad = torch.randn(2, 4, 12, 11, device=device, requires_grad=True)
            torch.library.opcheck(torch.ops.twiddle.conv2d.default, (x, weight, bias, *arguments))
            torch.library.opcheck(torch.ops.twiddle.conv2d.default, (x, weight, None, *arguments))
            torch.library.opcheck(torch.ops.twiddle.conv2d_backward_input.default, (grad, weight, x.shape, *arguments))
            torch.library.opcheck(torch.ops.twiddle.conv2d_backward_weight.default, (grad, x, weight.shape, *arguments))

    def test_compile_in_one_graph(self):
        for device in devices:
            for dynamic in (False, True):
                for problem in awkward[:3]:
                    with self.subTest(device=device, dynamic=dynamic, problem=problem):
                        torch._dynamo.reset()
                        compiled = torch.compile(twiddle_torch.conv2d, fullgraph=True, dynamic=dynamic)
                        self.assert_step_is_right(problem, device, conv=compiled)

    def test_compile_with_autocast(self):
        for device in devices:
            torch._dynamo.reset()
            x, weight, bias = operands(Problem(), device)
            with torch.autocast(device, torch.bfloat16):
                y = torch.compile(twiddle_torch.conv2d, fullgraph=True)(x, weight, bias, padding=2)
            self.assertEqual(y.dtype, torch.bfloat16)
            y.sum().backward()
            self.assert_close(y, F.conv2d(*in_double(x, weight, bias), padding=2), 4e-3)

    def test_vmap(self):
        for device in devices:
            x, weight = torch.randn(3, 2, 6, 12, 11, device=device), torch.randn(4, 6, 5, 5, device=device)
            several = torch.randn(3, 4, 6, 5, 5, device=device)

            def conv(x, weight):
                return twiddle_torch.conv2d(x, weight, padding=2)

            def right(x, weight):
                return F.conv2d(x.double(), weight.double(), padding=2)

            self.assert_close(torch.vmap(conv, (0, None))(x, weight), torch.stack([right(each, weight) for each in x]))
            self.assert_close(torch.vmap(conv, (1, None))(x.transpose(0, 1), weight), torch.stack([right(each, weight) for each in x]))
            self.assert_close(torch.vmap(conv, (None, 0))(x[0], several), torch.stack([right(x[0], each) for each in several]))
            self.assert_close(torch.vmap(conv)(x, several), torch.stack([right(*each) for each in zip(x, several)]))

    def test_without_gradients_and_recomputed(self):
        for device in devices:
            x, weight, bias = operands(Problem(), device)
            right = step(F.conv2d, in_double(x, weight, bias), torch.ones(2, 4, 12, 11, device=device), padding=2)
            for mode in (torch.no_grad, torch.inference_mode):
                with mode():
                    y = twiddle_torch.conv2d(x, weight, bias, padding=2)
                self.assertFalse(y.requires_grad)
                self.assert_close(y, right[0])
            y = torch.utils.checkpoint.checkpoint(twiddle_torch.conv2d, x, weight, bias, 1, 2, use_reentrant=False)
            for a, b in zip(torch.autograd.grad(y.sum(), (x, weight, bias)), right[1:]):
                self.assert_close(a, b)

    def test_gradients_of_each_image(self):
        for device in devices:
            x, weight = torch.randn(3, 2, 6, 12, 11, device=device), torch.randn(4, 6, 5, 5, device=device)

            def of_each(conv, weight, x):
                loss = lambda weight, x: conv(x, weight, padding=2).square().sum()  # noqa: E731
                return torch.vmap(torch.func.grad(loss), (None, 0))(weight, x)

            self.assert_close(of_each(twiddle_torch.conv2d, weight, x), of_each(F.conv2d, weight.double(), x.double()))

    def test_gradients_of_a_batch_of_directions(self):
        for device in devices:
            inputs = operands(Problem(), device)
            grads = torch.randn(3, 2, 4, 12, 11, device=device)
            y = twiddle_torch.conv2d(*inputs, padding=2)
            found = torch.autograd.grad(y, inputs, grads, is_grads_batched=True)
            for index, grad in enumerate(grads):
                right = step(F.conv2d, in_double(*inputs), grad, padding=2)[1:]
                for a, b in zip(found, right):
                    self.assert_close(a[index], b)

    def test_vectorized_jacobian_and_hessian(self):
        functional = torch.autograd.functional
        for device in devices:
            x, weight = torch.randn(2, 2, 5, 4, device=device), torch.randn(3, 2, 3, 3, device=device)

            def conv(function):
                return lambda x, weight: function(x, weight, padding=1)

            def loss(function):
                return lambda x, weight: function(x, weight, padding=1).pow(3).sum()

            double = x.double(), weight.double()
            for strategy in ("reverse-mode", "forward-mode"):
                found = functional.jacobian(conv(twiddle_torch.conv2d), (x, weight), vectorize=True, strategy=strategy)
                for a, b in zip(found, functional.jacobian(conv(F.conv2d), double)):
                    self.assert_close(a, b)
                found = functional.hessian(loss(twiddle_torch.conv2d), (x, weight), vectorize=True, outer_jacobian_strategy=strategy)
                for row, right in zip(found, functional.hessian(loss(F.conv2d), double)):
                    for a, b in zip(row, right):
                        self.assert_close(a, b, 1e-5)

    def test_derivatives_forward(self):
        """By torch.func and by forward_ad, compiled too, with and without recorded gradients."""
        def by_func(conv, *tensors):
            return torch.func.jvp(lambda *tensors: conv(*tensors, padding=2), tensors[:3], tensors[3:])[1]

        def by_dual_numbers(conv, *tensors):
            with forward_ad.dual_level():
                y = conv(*map(forward_ad.make_dual, tensors[:3], tensors[3:]), padding=2)
                return forward_ad.unpack_dual(y).tangent

        for device in devices:
            recorded = [*operands(Problem(), device), *(t.detach() for t in operands(Problem(), device))]
            plain = [t.detach() for t in recorded]
            right = by_func(F.conv2d, *(t.double() for t in plain))
            compiled = torch.compile(twiddle_torch.conv2d, backend="aot_eager")
            for way, tensors, conv in (
                (by_func, plain, twiddle_torch.conv2d), (by_func, recorded, twiddle_torch.conv2d),
                (by_dual_numbers, plain, twiddle_torch.conv2d), (by_dual_numbers, recorded, twiddle_torch.conv2d),
                (by_dual_numbers, plain, compiled),
            ):
                self.assert_close(way(conv, *tensors), right)

    def test_derivatives_forward_of_gradients(self):
        for device in devices:
            x, weight = torch.randn(1, 2, 5, 4, device=device), torch.randn(3, 2, 3, 3, device=device)

            def hessian(conv, weight, x):
                return torch.func.hessian(lambda weight: conv(x, weight, padding=1).pow(3).sum())(weight)

            self.assert_close(hessian(twiddle_torch.conv2d, weight, x), hessian(F.conv2d, weight.double(), x.double()), 1e-5)

    def test_threads(self):
        for device in devices:
            problems = awkward[:4]
            failures = []

            def work(problem):
                try:
                    for _ in range(5):
                        self.assert_step_is_right(problem, device)
                except BaseException as error:  # raised again by the waiting thread
                    failures.append(error)

            threads = [threading.Thread(target=work, args=(problem,)) for problem in problems * 2]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])

    def assert_others_run_during(self, slow_calls, fast):
        """Within one slow call its thread computes during several fast calls of this one."""
        many, finished, done = 5, [0], threading.Event()

        def work():
            for call in slow_calls:
                call()
                finished[0] += 1
            done.wait()

        thread = threading.Thread(target=work)
        thread.start()
        clock = time.pthread_getcpuclockid(thread.ident)  # stops while the thread waits
        together = Counter()
        while finished[0] < len(slow_calls) and max(together.values(), default=0) < many:
            at, before = finished[0], time.clock_gettime(clock)
            fast()
            if time.clock_gettime(clock) - before > 1e-4 and finished[0] == at:
                together[at] += 1
        slow_calls.clear()
        done.set()
        thread.join()
        self.assertGreaterEqual(max(together.values(), default=0), many)

    def test_overlapping_calls_do_not_wait(self):
        for device in devices:
            x, weight = torch.randn(1, 2, 6, 5, device=device), torch.randn(2, 2, 3, 3, device=device)
            large, kernels = torch.randn(8, 64, 64, 64, device=device), torch.randn(64, 64, 9, 9, device=device)

            def fast():
                twiddle_torch.conv2d(x, weight, engine="rule")

            def slow():
                twiddle_torch.conv2d(large, kernels, padding=4, engine="gemm")

            def measure(batch):
                twiddle_torch.conv2d(large[:batch], kernels, engine="measured", workspace_limit=1 << 30)

            fast(), slow()
            self.assert_others_run_during([slow] * 50, fast)
            self.assert_others_run_during([partial(measure, batch) for batch in range(1, 5)], fast)

    def test_one_layer_in_several_threads(self):
        """A backward pass reuses the spectra of its forward pass, or computes them again."""
        for device in devices:
            engine = {"cpu": "fft", "cuda": "fbfft"}[device]
            problem = Problem(x=(2, 8, 20, 20), weight=(8, 8, 7, 7), padding=(3, 3))
            steps = [(operands(problem, device), torch.randn(2, 8, 20, 20, device=device)) for _ in range(4)]
            right = [step(F.conv2d, in_double(*inputs), grad, **problem.window()) for inputs, grad in steps]
            together, failures = threading.Barrier(len(steps)), []

            def work(index):
                try:
                    inputs, grad = steps[index]
                    for _ in range(10):
                        together.wait(60)
                        for a, b in zip(step(twiddle_torch.conv2d, inputs, grad, engine=engine, **problem.window()), right[index]):
                            self.assert_close(a, b)
                except BaseException as error:  # raised again by the waiting thread
                    together.abort()
                    failures.append(error)

            threads = [threading.Thread(target=work, args=(index,)) for index in range(len(steps))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])
            self.assertEqual(torch.ops.twiddle._kept(), 0)

    def test_deterministic(self):
        for device in devices:
            for problem in awkward:
                inputs = operands(problem, device)
                grad = torch.randn_like(F.conv2d(*inputs, **problem.window()))
                torch.use_deterministic_algorithms(True)
                try:
                    first, second = (step(twiddle_torch.conv2d, inputs, grad, **problem.window()) for _ in range(2))
                finally:
                    torch.use_deterministic_algorithms(False)
                for a, b in zip(first[:3], second[:3]):
                    self.assertTrue(torch.equal(a, b))

    def test_fallback_warns_once_and_strict_raises(self):
        x, weight = torch.randn(1, 2, 9, 9).double(), torch.randn(3, 2, 3, 3).double()
        twiddle_torch._warnings.reported.clear()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                y = twiddle_torch.conv2d(x, weight)
            twiddle_torch.conv2d(x.float(), weight.float(), dilation=(1, 2))
        self.assertEqual([str(w.message).split(": ")[1] for w in caught], [
            "torch.float64 is not supported", "a dilation of (1, 2) is not supported, only the same for rows and columns"])
        self.assertTrue(torch.equal(y, F.conv2d(x, weight)))
        with self.assertRaisesRegex(ValueError, "float64"):
            twiddle_torch.conv2d(x, weight, strict=True)
        compiled = torch.compile(twiddle_torch.conv2d, fullgraph=True, backend="aot_eager")
        self.assert_close(compiled(x, weight), F.conv2d(x, weight), 1e-12)

    def test_warns_of_copies_once_per_operand(self):
        for device in devices:
            x, weight, bias = operands(Problem(), device)
            grad = torch.randn(2, 4, 12, 11, device=device)
            right = step(F.conv2d, in_double(x, weight, bias), grad, padding=2)
            strided = [t.detach().repeat_interleave(2, -1)[..., ::2].requires_grad_() for t in (x, weight, bias)]
            last = grad.to(memory_format=torch.channels_last)
            for operand, inputs, gradient in [
                (None, (x, weight, bias), grad), ("an input", (strided[0], weight, bias), grad),
                ("a weight", (x, strided[1], bias), grad), ("a bias", (x, weight, strided[2]), grad),
                ("a gradient", (x, weight, bias), last),
            ]:
                twiddle_torch._warnings.reported.clear()
                with self.subTest(device=device, operand=operand), warnings.catch_warnings(record=True) as caught:
                    warnings.simplefilter("always")
                    for _ in range(3):
                        found = step(twiddle_torch.conv2d, inputs, gradient, padding=2)
                    for a, b in zip(found, right):
                        self.assert_close(a, b)
                    self.assertEqual([str(each.message) for each in caught], [] if operand is None else [
                        f"twiddle_torch: {operand} is not contiguous (channels_last is not, either): it is copied in each call"])

    def test_threads_that_pytorch_is_given(self):
        before = torch.get_num_threads()
        try:
            for threads, expected in ((1, "1 thread,"), (4, "4 threads"), (2, "2 threads")):
                torch.set_num_threads(threads)
                for problem in awkward:
                    self.assert_step_is_right(problem, "cpu", engine="rule")
                self.assertIn(expected, twiddle_torch.devices()[0])
        finally:
            torch.set_num_threads(before)


@unittest.skipUnless(has_gpu, "no GPU that this build can use")
class OnAGpu(TestCase):
    def setUp(self):
        self.problem = Problem(x=(8, 16, 32, 32), weight=(16, 1, 13, 13), padding=(6, 6), groups=16)
        self.inputs = operands(self.problem, "cuda")
        self.grad = torch.randn(8, 16, 32, 32, device="cuda")
        self.right = step(F.conv2d, in_double(*self.inputs), self.grad, **self.problem.window())

    def step(self):
        return step(twiddle_torch.conv2d, self.inputs, self.grad, **self.problem.window())

    def test_streams(self):
        self.step()
        streams = [torch.cuda.Stream() for _ in range(3)]
        torch.cuda.synchronize()
        results = []
        for _ in range(10):
            for stream in streams:
                with torch.cuda.stream(stream):
                    results.append(self.step())
        torch.cuda.synchronize()
        for result in results:
            for a, b in zip(result, self.right):
                self.assert_close(a, b)

    def test_graph(self):
        x, weight, bias = (t.detach().clone().requires_grad_() for t in self.inputs)
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(2):
                step(twiddle_torch.conv2d, (x, weight, bias), self.grad, **self.problem.window())
        torch.cuda.current_stream().wait_stream(stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            found = step(twiddle_torch.conv2d, (x, weight, bias), self.grad, **self.problem.window())
        other = operands(self.problem, "cuda")
        with torch.no_grad():
            for old, new in zip((x, weight, bias), other):
                old.copy_(new)
        graph.replay()
        right = step(F.conv2d, in_double(*other), self.grad, **self.problem.window())
        for a, b in zip(found, right):
            self.assert_close(a, b)

    def test_capture_before_a_plan_is_chosen_is_an_error(self):
        x, weight = torch.randn(2, 3, 11, 13, device="cuda"), torch.randn(5, 3, 5, 5, device="cuda")
        with self.assertRaisesRegex(RuntimeError, "run the step once before the capture"):
            with torch.cuda.graph(torch.cuda.CUDAGraph()):
                twiddle_torch.conv2d(x, weight)
        torch.cuda.synchronize()

    def test_compiled_with_graphs(self):
        torch._dynamo.reset()
        compiled = torch.compile(twiddle_torch.conv2d, fullgraph=True, mode="reduce-overhead")
        for _ in range(4):
            torch.compiler.cudagraph_mark_step_begin()
            found = [t.clone() for t in step(compiled, self.inputs, self.grad, **self.problem.window())]
        for a, b in zip(found, self.right):
            self.assert_close(a, b)

    def test_memory_is_pytorchs(self):
        self.step()
        torch.cuda.synchronize()
        before = torch.cuda.memory_allocated()
        torch.cuda.reset_peak_memory_stats()
        self.step()
        self.assertGreater(torch.cuda.max_memory_allocated(), before)
        self.assertEqual(torch.cuda.memory_allocated(), before)
        with torch.no_grad():
            twiddle_torch.conv2d(*self.inputs, **self.problem.window())
        self.assertEqual(torch.cuda.memory_allocated(), before)  # the step left no memory for a later call to free

    def test_current_gpu_stays(self):
        before = torch.cuda.current_device()
        for gpu in range(torch.cuda.device_count()):
            inputs = [t.detach().to(f"cuda:{gpu}") for t in self.inputs]
            self.assert_close(twiddle_torch.conv2d(*inputs, **self.problem.window()), self.right[0].to(f"cuda:{gpu}"))
            self.assertEqual(torch.cuda.current_device(), before)


if __name__ == "__main__":
    unittest.main()
