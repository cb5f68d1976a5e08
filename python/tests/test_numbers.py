"""The three passes against sums in double, for all kinds of inputs."""

import unittest
import warnings

import torch
import torch.nn.functional as F
from support import Problem, TestCase, awkward, devices, in_double, operands, relative_error, step

import twiddle_torch


class Numbers(TestCase):
    def test_step_of_awkward_problems(self):
        for device in devices:
            for problem in awkward:
                for engine in ("rule", "measured"):
                    with self.subTest(device=device, problem=problem, engine=engine):
                        self.assert_step_is_right(problem, device, engine=engine)

    def test_tf32_keeps_its_class(self):
        for device in devices:
            self.assert_step_is_right(Problem(x=(4, 32, 24, 24), weight=(32, 32, 5, 5)), device, precision="tf32", limit=1e-3)

    def test_fp32_does_not_hang_on_pytorchs_flags(self):
        allowed = torch.backends.cudnn.allow_tf32
        try:
            torch.backends.cudnn.allow_tf32 = True
            for device in devices:
                self.assert_step_is_right(Problem(x=(4, 64, 16, 16), weight=(64, 64, 3, 3), padding=(1, 1)), device)
        finally:
            torch.backends.cudnn.allow_tf32 = allowed

    def test_layouts(self):
        problem = Problem()
        for device in devices:
            x, weight, bias = operands(problem, device)
            right = F.conv2d(*in_double(x, weight, bias), **problem.window())
            wide = torch.randn(2, 7, 12, 11, device=device)
            wide[:, 1:] = x.detach()
            for name, other in {
                "channels_last": x.to(memory_format=torch.channels_last),
                "transposed": x.transpose(2, 3).contiguous().transpose(2, 3),
                "part of a tensor": wide[:, 1:],
                "address off by one float": torch.cat([x.flatten()[:1], x.flatten()])[1:].view(x.shape),
            }.items():
                with self.subTest(device=device, layout=name):
                    y = twiddle_torch.conv2d(other, weight, bias, **problem.window())
                    self.assert_close(y, right)
                    self.assertTrue(y.is_contiguous())

    def test_strides_that_mislead(self):
        """These strides can look like another layout. Results must be bitwise equal to those of contiguous copies."""
        for device in devices:
            def random(*shape):
                return torch.randn(*shape, device=device)

            one_pixel = random(16).as_strided((1, 16, 1, 1), (16, 1, 16, 16))
            for name, (x, weight, grad) in {
                "size 1 with any stride": (one_pixel, random(8, 16, 1, 1), random(1, 8, 1, 1)),
                "transposed size 1": (random(1, 1, 16, 1).transpose(1, 2), random(8, 16, 1, 1), random(1, 8, 1, 1)),
                "gradient": (random(1, 1, 4, 4), random(1, 1, 3, 3), random(4).as_strided((1, 1, 2, 2), (4, 1, 2, 1))),
                "transposed gradient": (random(1, 1, 4, 4), random(1, 1, 3, 3), random(1, 1, 2, 2).transpose(2, 3)),
                "gradient of stride 0": (random(2, 6, 9, 8), random(4, 6, 3, 3), random(1).expand(2, 4, 7, 6)),
                "transposed weight": (random(2, 6, 9, 8), random(6, 4, 3, 3).transpose(0, 1), random(2, 4, 7, 6)),
                "every other weight": (random(2, 6, 9, 8), random(4, 6, 6, 6)[:, :, ::2, ::2], random(2, 4, 7, 6)),
            }.items():
                with self.subTest(device=device, name=name):
                    strided = [each.detach().requires_grad_() for each in (x, weight)]
                    plain = [torch.empty(each.shape, device=device).copy_(each).requires_grad_() for each in (x, weight)]
                    found = step(twiddle_torch.conv2d, strided, grad, engine="rule")
                    right = step(twiddle_torch.conv2d, plain, torch.empty(grad.shape, device=device).copy_(grad), engine="rule")
                    for a, b in zip(found, right):
                        self.assertTrue(torch.equal(a, b))
                    self.assert_close(found[0], F.conv2d(x.double(), weight.double()))

    def test_empty_batch(self):
        for device in devices:
            x, weight, bias = operands(Problem(), device)
            none = x[:0].detach().requires_grad_()
            y = twiddle_torch.conv2d(none, weight, bias, padding=2)
            self.assertEqual(y.shape, (0, 4, 12, 11))
            grads = torch.autograd.grad(y.sum(), (none, weight, bias))
            self.assertEqual([g.abs().sum().item() for g in grads], [0, 0, 0])

    def test_one_image_without_a_batch(self):
        for device in devices:
            x, weight, bias = operands(Problem(), device)
            self.assert_close(twiddle_torch.conv2d(x[0], weight, bias, padding=2), F.conv2d(*in_double(x[0], weight, bias), padding=2))

    def test_padding_in_words(self):
        for device in devices:
            for kernel in ((5, 5), (4, 6)):
                x, weight = torch.randn(2, 3, 10, 12, device=device), torch.randn(4, 3, *kernel, device=device)
                for padding in ("same", "valid"):
                    self.assert_close(
                        twiddle_torch.conv2d(x, weight, padding=padding, dilation=1),
                        F.conv2d(x.double(), weight.double(), padding=padding),
                    )

    def test_fp16_is_computed_in_float32(self):
        for device in devices:
            for dtype, limit in ((torch.bfloat16, 4e-3), (torch.float16, 5e-4)):
                x, weight, bias = operands(Problem(), device, dtype)
                y = twiddle_torch.conv2d(x, weight, bias, padding=2)
                self.assertEqual(y.dtype, dtype)
                self.assert_close(y, F.conv2d(*in_double(x, weight, bias), padding=2), limit)
                self.assertEqual({g.dtype for g in torch.autograd.grad(y.sum(), (x, weight, bias))}, {dtype})

    def test_autocast(self):
        for device in devices:
            x, weight, bias = operands(Problem(), device)
            with torch.autocast(device, torch.bfloat16):
                y = twiddle_torch.conv2d(x, weight, bias, padding=2)
                self.assertEqual(y.dtype, F.conv2d(x, weight, bias, padding=2).dtype)
                raw = torch.ops.twiddle.conv2d(x.bfloat16(), weight, bias, [1, 1], [2, 2], [1, 1], 1, "fp32", 1 << 30, "rule", False)
            self.assertEqual(raw.dtype, torch.float32)
            self.assert_close(y, F.conv2d(*in_double(x, weight, bias), padding=2), 4e-3)

    def test_only_gradients_that_are_asked_for(self):
        for device in devices:
            for wanted in ((True, False, False), (False, True, False), (False, False, True)):
                inputs = [t.detach().requires_grad_(w) for t, w in zip(operands(Problem(), device), wanted)]
                before = len(twiddle_torch.choices())
                y = twiddle_torch.conv2d(*inputs, padding=2, workspace_limit=(1 << 30) + sum(wanted[:1]) * 8 + 8 * wanted[1])
                y.sum().backward()
                self.assertEqual([t.grad is not None for t in inputs], list(wanted))
                self.assertLessEqual(len(twiddle_torch.choices()) - before, 2)

    def test_workspace_limit(self):
        problem = Problem(x=(4, 64, 32, 32), weight=(64, 64, 9, 9), padding=(4, 4))
        for device in devices:
            self.assert_step_is_right(problem, device, workspace_limit=1 << 16)

    def test_reports_mistakes(self):
        x, weight = torch.randn(1, 3, 8, 8), torch.randn(4, 2, 3, 3)
        with self.assertRaisesRegex(RuntimeError, "weight"):
            twiddle_torch.conv2d(x, weight)
        with self.assertRaisesRegex(RuntimeError, "precision 'fp16' is not one of"):
            twiddle_torch.conv2d(x, torch.randn(4, 3, 3, 3), precision="fp16")
        with self.assertRaisesRegex(RuntimeError, "fft"):
            twiddle_torch.conv2d(x, torch.randn(4, 3, 3, 3), engine="fftt")


class Gradients(TestCase):
    def test_second_derivatives(self):
        """The gradient of the norm of the gradients, against PyTorch's own in double."""
        for device in devices:
            for problem in awkward[:4]:
                with self.subTest(device=device, problem=problem):
                    inputs = operands(problem, device)
                    self.assertEqual(len(self.second(twiddle_torch.conv2d, inputs, problem)), 3)
                    found = self.second(twiddle_torch.conv2d, inputs, problem)
                    right = self.second(F.conv2d, in_double(*inputs), problem)
                    for a, b in zip(found, right):
                        self.assert_close(a, b, 1e-5)

    @staticmethod
    def second(conv, inputs, problem):
        y = conv(*inputs, **problem.window())
        grads = torch.autograd.grad(y.square().sum(), inputs, create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in grads), inputs)

    def test_gradcheck(self):
        """In float32, whose differences are coarse: what it sees is wrong factors and missing terms."""
        for device in devices:
            problem = Problem(x=(1, 2, 5, 4), weight=(2, 2, 3, 3), padding=(1, 1))
            inputs = operands(problem, device)

            def conv(*tensors):
                return twiddle_torch.conv2d(*tensors, **problem.window())

            loose = dict(eps=1e-2, atol=2e-2, rtol=1e-2, nondet_tol=1e-5)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # gradcheck warns about float32
                self.assertTrue(torch.autograd.gradcheck(
                    conv, inputs, check_forward_ad=True, check_batched_grad=True, check_batched_forward_grad=True, **loose))
                self.assertTrue(torch.autograd.gradgradcheck(
                    conv, inputs, check_fwd_over_rev=True, check_batched_grad=True, **loose))


if __name__ == "__main__":
    unittest.main()
