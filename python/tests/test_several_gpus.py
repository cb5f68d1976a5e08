"""Several GPUs in one process, in turn and at the same time."""

import copy
import subprocess
import sys
import threading
import unittest

import torch
import torch.nn.functional as F
from support import Problem, TestCase, awkward, devices, in_double, operands, step

import twiddle_torch

gpus = [f"cuda:{index}" for index in range(torch.cuda.device_count())] if "cuda" in devices else []
problems = [
    *awkward,
    Problem(x=(4, 32, 28, 28), weight=(32, 32, 5, 5)),
    Problem(x=(4, 64, 56, 56), weight=(64, 64, 1, 1), padding=(0, 0)),
    Problem(x=(4, 16, 32, 32), weight=(16, 1, 31, 31), padding=(15, 15), groups=16),
]


@unittest.skipUnless(len(gpus) > 1, "fewer than two GPUs")
class SeveralGpus(TestCase):
    def setUp(self):
        self.assertEqual(torch.cuda.current_device(), 0)  # unchanged, although support.py queries all devices

    def tearDown(self):
        self.assertEqual(torch.cuda.current_device(), 0)

    def test_a_first_call_opens_its_own_gpu_alone(self):
        for gpu, other in ((0, 1), (1, 0)):
            code = f"""if True:
                import torch, twiddle_torch
                x = torch.randn(2, 8, 20, 20, device="cuda:{gpu}").requires_grad_()
                twiddle_torch.conv2d(x, torch.randn(8, 8, 7, 7, device="cuda:{gpu}"), engine="rule").sum().backward()
                print(torch._C._cuda_hasPrimaryContext({gpu}), torch._C._cuda_hasPrimaryContext({other}), torch.cuda.current_device())"""
            shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
            self.assertEqual(shown.stdout, "True False 0\n", shown.stderr)

    def test_in_turn(self):
        for precision, limit in (("fp32", self.fp32), ("tf32", 1e-3)):
            for problem in problems:
                for gpu in gpus[::-1] + gpus:
                    with self.subTest(problem=problem, gpu=gpu, precision=precision):
                        self.assert_step_is_right(problem, gpu, limit=limit, precision=precision, engine="rule")
                        self.assertEqual(torch.cuda.current_device(), 0)

    def test_forward_on_all_before_any_backward(self):
        problem = problems[-3]
        inputs = [operands(problem, gpu) for gpu in gpus]
        results = [twiddle_torch.conv2d(*each, **problem.window(), engine="rule") for each in inputs]
        for each, y in zip(inputs, results):
            grad = torch.randn_like(y)
            right = step(F.conv2d, in_double(*each), grad, **problem.window())
            for a, b in zip([y, *torch.autograd.grad(y, each, grad)], right):
                self.assert_close(a, b)

    def test_plans_by_the_clock(self):
        for gpu in gpus[::-1]:
            self.assert_step_is_right(problems[0], gpu)

    def test_a_thread_for_each(self):
        failures = []

        def work(gpu):
            try:
                with torch.cuda.device(gpu), torch.cuda.stream(torch.cuda.Stream()):
                    for problem in problems * 4:
                        self.assert_step_is_right(problem, "cuda", engine="rule")
                        self.assertEqual(torch.cuda.current_device(), torch.device(gpu).index)
            except BaseException as error:  # raised again by the waiting thread
                failures.append(error)

        threads = [threading.Thread(target=work, args=(gpu,)) for gpu in gpus * 2]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])

    def test_copies_of_a_model(self):
        model = twiddle_torch.Conv2d(8, 8, 7, padding=3, engine="rule")
        x = torch.randn(2, 8, 20, 20)
        right = F.conv2d(x.double(), model.weight.double(), model.bias.double(), padding=3)
        for gpu in gpus:
            self.assert_close(copy.deepcopy(model).to(gpu)(x.to(gpu)), right.to(gpu))
        twice = torch.nn.Sequential(copy.deepcopy(model).to(gpus[0]), copy.deepcopy(model).to(gpus[1]))
        y = twice[1](twice[0](x.to(gpus[0])).to(gpus[1]))
        y.sum().backward()
        self.assertEqual([layer.weight.grad.device.index for layer in twice], [0, 1])

    def test_graphs(self):
        problem = problems[-1]
        graphs = []
        for gpu in gpus:
            with torch.cuda.device(gpu):
                inputs, grad = operands(problem, gpu), torch.randn(4, 16, 32, 32, device=gpu)
                work = lambda: step(  # noqa: E731
                    twiddle_torch.conv2d, inputs, grad, **problem.window(), engine="rule")
                with torch.cuda.stream(torch.cuda.Stream()):
                    work()
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph, stream=torch.cuda.Stream()):  # torch.cuda.graph's default stream is on the first GPU
                    graphs.append((graph, inputs, grad, work()))
        for graph, inputs, grad, found in graphs:
            with torch.no_grad():
                inputs[0].mul_(2)
            graph.replay()
            for a, b in zip(found, step(F.conv2d, in_double(*inputs), grad, **problem.window())):
                self.assert_close(a, b)

    def test_operands_on_two_are_refused(self):
        x, weight, _bias = operands(problems[0], gpus[0])
        with self.assertRaisesRegex(RuntimeError, "operands lie on cuda:0 and on cuda:1"):
            twiddle_torch.conv2d(x, weight.to(gpus[1]), padding=2)


if __name__ == "__main__":
    unittest.main()
