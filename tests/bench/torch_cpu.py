#!/usr/bin/env python3
"""Whole training iterations of models/lenet.yaml and models/cifar10.yaml in PyTorch on the CPU, to hold `twiddle time` against.

usage: torch_cpu.py [--threads N] [--batch N] [--convolutions]
Prints the median, p10 and p90 of forward + loss + backward + SGD (momentum 0.9, weight decay 5e-4) in ms. Random input.
--convolutions: forward and both gradients of convolutions with large kernels instead, batch 32, as in twiddle_conv_bench.
"""
import argparse
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

LENET = (1, 28), [
    nn.Conv2d(1, 20, 5), nn.MaxPool2d(2), nn.Conv2d(20, 50, 5), nn.MaxPool2d(2), nn.Flatten(),
    nn.Linear(800, 500), nn.ReLU(), nn.Linear(500, 10)]


def cifar10_block(channels, filters):
    return [nn.Conv2d(channels, filters, 3, padding=1, bias=False), nn.BatchNorm2d(filters), nn.ReLU(), nn.MaxPool2d(2)]


CIFAR10 = (3, 32), [
    *cifar10_block(3, 32), *cifar10_block(32, 64), *cifar10_block(64, 128), nn.Flatten(), nn.Linear(2048, 10)]


def time_network(name, network, batch, seconds=8.0):
    (channels, side), layers = network
    net = nn.Sequential(*layers)
    images = torch.randn(batch, channels, side, side)
    labels = torch.randint(0, 10, (batch,))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)

    def step():
        loss = functional.cross_entropy(net(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    for _ in range(20):
        step()
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        start = time.perf_counter()
        step()
        times.append((time.perf_counter() - start) * 1e3)
    p10, *_, p90 = statistics.quantiles(times, n=10)
    print(f"{name:8s} batch {batch}: median {statistics.median(times):7.3f} ms  p10 {p10:7.3f}  p90 {p90:7.3f}  ({len(times)} steps)", flush=True)


def time_convolutions(seconds=1.0):
    for channels in (32, 64, 128):
        for plane in (16, 28, 56):
            for kernel in (3, 5, 7, 9):
                x = torch.randn(32, channels, plane, plane, requires_grad=True)
                w = torch.randn(channels, channels, kernel, kernel, requires_grad=True)
                grad_y = torch.randn(32, channels, plane, plane)
                best, end, runs = float("inf"), time.perf_counter() + seconds, 0
                while runs < 4 or time.perf_counter() < end:
                    start = time.perf_counter()
                    y = functional.conv2d(x, w, padding=kernel // 2)
                    torch.autograd.grad(y, (x, w), grad_y)
                    best, runs = min(best, (time.perf_counter() - start) * 1e3), runs + 1
                print(f"{channels} channels {plane}x{plane} k={kernel}: {best:.3f} ms", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--convolutions", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(options.threads)
    print(f"PyTorch {torch.__version__}, {options.threads} threads")
    if options.convolutions:
        return time_convolutions()
    time_network("lenet", LENET, options.batch)
    time_network("cifar10", CIFAR10, options.batch)


if __name__ == "__main__":
    main()
