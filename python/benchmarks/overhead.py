"""What a call costs apart from the arithmetic: small 3x3 layers, microseconds per call on the host.

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
        times.append((time.perf_counter() - start) / calls * 1e6)  # host time: does not wait for the GPU
        if device == "cuda":
            torch.cuda.synchronize()
    return min(times), sorted(times)[samples // 2]


def measure_layer(channels, size, device):
    x, grad = (torch.randn(1, channels, size, size, device=device) for _ in range(2))
    weight, bias = torch.randn(channels, channels, 3, 3, device=device), torch.randn(channels, device=device)
    arguments = [1, 1], [1, 1], [1, 1], 1, "fp32", 1 << 30, "rule", False
    convs = {
        "torch.nn.functional.conv2d": lambda *bias: F.conv2d(x, weight, *bias, padding=1),
        "twiddle_torch.conv2d": lambda *bias: twiddle_torch.conv2d(x, weight, *bias, padding=1, engine="rule"),
        "torch.ops.twiddle.conv2d": lambda *bias: torch.ops.twiddle.conv2d(x, weight, *(bias or [None]), *arguments),
    }
    calls = 300 if device == "cuda" else 2000

    def report(what, work, name):
        print("  %-36s %-28s %7.2f %7.2f" % (what, name, *microseconds(work, device, calls)), flush=True)

    print(f"1x{channels}x{size}x{size}, microseconds a call, least and median of nine:")
    report("a new tensor", lambda: torch.empty(1, channels, size, size, device=device), "torch.empty")
    for name, conv in convs.items():
        report("without gradients", conv, name)
    for tensor in (x, weight, bias):
        tensor.requires_grad_()
    for name, conv in convs.items():
        y = conv()
        report("with gradients", conv, name)
        report("backward alone", lambda: torch.autograd.grad(y, (x, weight), grad, retain_graph=True), name)
        report("forward and backward", lambda: torch.autograd.grad(conv(), (x, weight), grad), name)
        report("forward and backward with a bias", lambda: torch.autograd.grad(conv(bias), (x, weight, bias), grad), name)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    device = parser.parse_args().device
    torch.set_num_threads(1)
    for channels, size in ((1, 4), (16, 16)):
        measure_layer(channels, size, device)
    for chosen in sorted({(each["problem"], each["pass"], each["plan"]) for each in twiddle_torch.choices()}):
        print(*chosen)


if __name__ == "__main__":
    main()
