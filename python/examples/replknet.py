"""Trains a small RepLKNet on synthetic images, first by PyTorch, then with its kernels replaced by Twiddle's.

usage: python replknet.py [--device cuda] [--steps 60] [--precision fp32] [--compile]

Each image has a coarse pattern under noise, a pattern for each of ten classes. Both runs start from the same weights and see
the same images.
"""

import argparse
import pathlib
import sys
import time

import torch
import torch.nn.functional as F

import twiddle_torch

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "benchmarks"))
from networks import replknet  # noqa: E402


def batches(steps, device):
    generator = torch.Generator().manual_seed(7)
    patterns = torch.randn(10, 3, 4, 4, generator=generator).repeat_interleave(8, 2).repeat_interleave(8, 3)
    for _ in range(steps):
        labels = torch.randint(10, (64,), generator=generator)
        images = patterns[labels] + 2 * torch.randn(64, 3, 32, 32, generator=generator)
        yield images.to(device), labels.to(device)


def train(net, a):
    optimizer = torch.optim.AdamW(net.parameters(), 2e-3)
    call = torch.compile(net) if a.compile else net
    start = right = 0
    for step, (images, labels) in enumerate(batches(a.steps, a.device)):
        if step == 5:  # after plans are chosen and kernels are compiled
            start = time.perf_counter()
        scores = call(images)
        loss = F.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right = 0.8 * right + 0.2 * (scores.argmax(1) == labels).float().mean().item()
        if step % 10 == 9:
            print(f"  step {step + 1:3d}  loss {loss.item():.4f}  right {100 * right:.0f} %")
    print(f"  {(time.perf_counter() - start) / (a.steps - 5) * 1e3:.1f} ms per step")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--precision", default="fp32", choices=["fp32", "tf32"])
    parser.add_argument("--compile", action="store_true")
    a = parser.parse_args()
    for converted in (False, True):
        torch.manual_seed(1)
        net = replknet((32, 64), (2, 2), (31, 13), classes=10).to(a.device)
        print("Twiddle:" if converted else "PyTorch:")
        if converted:
            twiddle_torch.convert(net, precision=a.precision)
        train(net, a)


if __name__ == "__main__":
    main()
