"""Losses of the same training by PyTorch in float64, by PyTorch in float32, and after `convert`: how far each is from the first.

usage: python losses.py [--device cuda] [--steps 200] [--precision fp32 tf32] [--engine rule]
"""

import argparse

import torch
import torch.nn.functional as F
from networks import replknet

import twiddle_torch


def losses(steps, device, dtype, convert=None):
    torch.manual_seed(1)
    net = replknet((16, 32), (1, 1), (13, 13), classes=10).to(device, dtype)
    if convert is not None:
        twiddle_torch.convert(net, min_kernel=1, file=None, **convert)
    optimizer = torch.optim.SGD(net.parameters(), 0.02, momentum=0.9)
    generator = torch.Generator().manual_seed(7)
    patterns = torch.randn(10, 3, 4, 4, generator=generator).repeat_interleave(8, 2).repeat_interleave(8, 3)
    for _ in range(steps):
        labels = torch.randint(10, (32,), generator=generator)
        images = patterns[labels] + 2 * torch.randn(32, 3, 32, 32, generator=generator)
        loss = F.cross_entropy(net(images.to(device, dtype)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss.item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--precision", nargs="+", default=["fp32"], choices=["fp32", "tf32"])
    parser.add_argument("--engine", default=None)
    a = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    right = list(losses(a.steps, a.device, torch.float64))
    runs = {"PyTorch, float32": list(losses(a.steps, a.device, torch.float32))}
    for precision in a.precision:
        runs[f"twiddle_torch, {precision}"] = list(losses(a.steps, a.device, torch.float32, dict(precision=precision, engine=a.engine)))
    marks = [step for step in (1, 10, 50, 100, 150, 200, 500) if step <= a.steps]
    print("step".ljust(22), *(f"{step:>9d}" for step in marks))
    print("PyTorch, float64".ljust(22), *(f"{right[step - 1]:9.5f}" for step in marks))
    for name, run in runs.items():
        print(name.ljust(22), *(f"{run[step - 1]:9.5f}" for step in marks))
        print("  largest difference".ljust(22), *(f"{max(abs(p - q) for p, q in zip(run[:step], right)):9.1e}" for step in marks))


if __name__ == "__main__":
    main()
