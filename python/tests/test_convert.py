"""Layers, `convert`, weights both ways, and what `python -m twiddle_torch` prints."""

import io
import os
import subprocess
import sys
import unittest

import torch
from support import TestCase, devices, relative_error
from torch import nn

import twiddle_torch


def small_net():
    torch.manual_seed(3)
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(),
        nn.Conv2d(8, 8, 13, padding=6, groups=8, bias=False), nn.ReLU(),
        nn.Sequential(nn.Conv2d(8, 8, 5, padding=2, padding_mode="reflect"), nn.ReLU()),
        nn.Conv2d(8, 4, 7, padding=3, dilation=(1, 2)),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2),
    )


class Convert(TestCase):
    def test_replaces_and_gives_reasons(self):
        net, text = small_net(), io.StringIO()
        reasons = twiddle_torch.convert(net, file=text)
        self.assertEqual([name for name, reason in reasons.items() if reason == ""], ["3", "5.0"])
        self.assertIn("2 of 4 convolutions replaced", text.getvalue())
        self.assertIn("0: 3 to 8, 3x3: stays, its kernel is smaller than min_kernel = 5", text.getvalue())
        self.assertIn("3: 8 to 8, 13x13, depthwise: Twiddle, fp32", text.getvalue())
        self.assertIn("its dilation differs", reasons["6"])
        self.assertEqual(twiddle_torch.convert(net, file=None)["3"], "it is Twiddle's already")

    def test_computes_the_same(self):
        for device in devices:
            net = small_net().to(device)
            x = torch.randn(4, 3, 16, 16, device=device)
            right = small_net().to(device).double()(x.double())
            parameters = list(net.parameters())
            twiddle_torch.convert(net, file=None)
            self.assertTrue(all(a is b for a, b in zip(parameters, net.parameters())))
            y = net(x)
            self.assert_close(y, right, 1e-5)
            y.sum().backward()
            self.assertTrue(all(p.grad is not None for p in net.parameters()))

    def test_converted_model_compiles_in_one_graph(self):
        for device in devices:
            torch._dynamo.reset()
            net = small_net().to(device)
            twiddle_torch.convert(net, file=None)
            x = torch.randn(4, 3, 16, 16, device=device)
            y = torch.compile(net, fullgraph=True)(x)
            y.sum().backward()
            self.assert_close(y, small_net().to(device).double()(x.double()), 1e-5)

    def test_the_model_itself(self):
        layer = nn.Conv2d(4, 4, 9)
        self.assertEqual(twiddle_torch.convert(layer, precision="tf32", file=None), {"": ""})
        self.assertIsInstance(layer, twiddle_torch.Conv2d)
        self.assertIn("precision=tf32", repr(layer))

    def test_state_dict_is_pytorchs(self):
        ours, theirs = twiddle_torch.Conv2d(4, 6, 5, engine="rule"), nn.Conv2d(4, 6, 5)
        ours.load_state_dict(theirs.state_dict())
        theirs.load_state_dict(ours.state_dict())
        x = torch.randn(2, 4, 9, 9)
        self.assert_close(ours(x), theirs.double()(x.double()))

    def test_training_goes_as_in_float64(self):
        def losses(net, dtype, convert):
            net = net.to(dtype)
            if convert:
                twiddle_torch.convert(net, min_kernel=1, file=None)
            generator = torch.Generator().manual_seed(5)
            optimizer = torch.optim.SGD(net.parameters(), 0.05, momentum=0.9)
            losses = []
            for _ in range(10):
                x, y = torch.randn(8, 3, 16, 16, generator=generator), torch.randint(2, (8,), generator=generator)
                loss = nn.functional.cross_entropy(net(x.to(dtype)), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                losses.append(loss.item())
            return losses

        found, right = losses(small_net(), torch.float32, True), losses(small_net(), torch.float64, False)
        self.assertLess(max(abs(a - b) for a, b in zip(found, right)), 1e-4)


class Command(unittest.TestCase):
    def test_prints_what_is_here_and_a_self_test(self):
        folder = os.path.dirname(os.path.dirname(os.path.abspath(twiddle_torch.__file__)))
        shown = subprocess.run([sys.executable, "-m", "twiddle_torch"], env={**os.environ, "PYTHONPATH": folder},
                               capture_output=True, text=True)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn(f"PyTorch {torch.__version__}", shown.stdout)
        self.assertIn("self-test on cpu", shown.stdout)
        self.assertIn("fine", shown.stdout)


if __name__ == "__main__":
    unittest.main()
