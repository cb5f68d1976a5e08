"""What a call costs beside the arithmetic: a 3x3 layer on one image of 4x4, microseconds a call on the host.

usage: python overhead.py [--device cuda]
"""

import argparse
import time

import torch
import torch.nn.functional as F

import twiddle_torch


def microseconds(work, device, calls=2000, samples=9):
    times = []
    for _ in range(samples):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            work()
        times.append((time.perf_counter() - start) / calls * 1e6)  # of the host: it does not wait for the GPU
        if device == "cuda":
            torch.cuda.synchronize()
    return min(times), sorted(times)[samples // 2]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    device = parser.parse_args().device
    torch.set_num_threads(1)
    x, weight = torch.randn(1, 1, 4, 4, device=device), torch.randn(1, 1, 3, 3, device=device)
    arguments = [1, 1], [1, 1], [1, 1], 1, "fp32", 1 << 30, "rule", False
    calls = {
        "torch.nn.functional.conv2d": lambda: F.conv2d(x, weight, padding=1),
        "twiddle_torch.conv2d": lambda: twiddle_torch.conv2d(x, weight, padding=1, engine="rule"),
        "torch.ops.twiddle.conv2d": lambda: torch.ops.twiddle.conv2d(x, weight, None, *arguments),
        "the same, an empty batch": lambda: torch.ops.twiddle.conv2d(x[:0], weight, None, *arguments),
        "a new tensor of PyTorch's": lambda: torch.empty(1, 1, 4, 4, device=device),
    }
    for gradients in (False, True):
        x.requires_grad_(gradients), weight.requires_grad_(gradients)
        print(f"{'with' if gradients else 'without'} gradients, microseconds a call, least and median of nine:")
        for name, call in calls.items():
            least, median = microseconds(call, device, calls=500 if device == "cuda" else 2000)
            print(f"  {name:28s} {least:6.2f} {median:6.2f}", flush=True)
    print("backward passes of x and weight, and forward and backward in turn:")
    grad = torch.randn(1, 1, 4, 4, device=device)
    for name in ("torch.nn.functional.conv2d", "twiddle_torch.conv2d"):
        y = calls[name]()
        least, median = microseconds(lambda: torch.autograd.grad(y, (x, weight), grad, retain_graph=True), device, calls=300)
        both = microseconds(lambda: torch.autograd.grad(calls[name](), (x, weight), grad), device, calls=300)
        print(f"  {name:28s} {least:6.2f} {median:6.2f}   {both[0]:6.2f} {both[1]:6.2f}", flush=True)


if __name__ == "__main__":
    main()
