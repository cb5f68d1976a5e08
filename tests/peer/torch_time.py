"""Times training steps of our models' files in PyTorch, to stand beside `twiddle time` of the same file in one run.

usage: python3 tests/peer/torch_time.py models/alexnet.yaml ... [--batch-size 128] [--precision fp32 tf32] [--compile]
                                        [--layouts contiguous channels_last] [--twiddle build/release/apps/twiddle]

Needs PyTorch, PyYAML and a GPU. A step is forward, loss, backward and a fused SGD update, on one random batch that lies on the
GPU; cuDNN's benchmark mode is on. The median of 5 samples, in the layout that is faster. The network is made from the file by
torch_net.py. The memory is the most that was in use at once in one more step, as `twiddle time` tells it.
"""
import argparse
import os
import sys

import torch
from torch import nn

from torch_net import LAYOUTS, config_of, network


def median_ms(step, warm=5, samples=5, budget_ms=500):
    for _ in range(warm):
        step()
    start, stop = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def sample(steps):
        start.record()
        for _ in range(steps):
            step()
        stop.record()
        torch.cuda.synchronize()
        return start.elapsed_time(stop) / steps

    steps = max(1, min(40, int(budget_ms / samples / sample(1))))
    return sorted(sample(steps) for _ in range(samples))[samples // 2]


def time_of(config, precision, batch, compiled, memory_format):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = True
    torch.compiler.reset()  # all networks run the same Python, of which only so many compiled forms are kept
    net = network(config)
    classes = net.shape[0]
    for module in net.modules():
        if isinstance(module, nn.ReLU):
            module.inplace = True  # as PyTorch's own networks have it
    net = net.cuda().to(memory_format=memory_format)
    x = torch.randn(batch, *config["model"]["input"], device="cuda").to(memory_format=memory_format)
    labels = torch.randint(0, classes, (batch,), device="cuda")
    sgd = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9, weight_decay=5e-4, fused=True)
    call = torch.compile(net) if compiled else net

    def step():
        nn.functional.cross_entropy(call(x), labels).backward()
        sgd.step()
        sgd.zero_grad(set_to_none=True)

    ms = median_ms(step)
    torch.cuda.reset_peak_memory_stats()
    step()
    torch.cuda.synchronize()
    return ms, torch.cuda.max_memory_allocated()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--precision", nargs="+", choices=["fp32", "tf32"], default=["fp32"])
    parser.add_argument("--compile", action="store_true")
    parser.add_argument("--layouts", nargs="+", choices=LAYOUTS, default=list(LAYOUTS))
    parser.add_argument("--twiddle", default="build/release/apps/twiddle")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("torch_time.py needs a GPU")
    for path in arguments.models:
        config = config_of(arguments.twiddle, path)
        for precision in arguments.precision:
            (ms, peak), layout = min((time_of(config, precision, arguments.batch_size, arguments.compile, LAYOUTS[layout]), layout)
                                     for layout in arguments.layouts)
            how = "compiled" if arguments.compile else "eager"
            print(f"{os.path.basename(path):24s} {precision} {how:8s} {layout:13s} batch {arguments.batch_size} {ms:9.3f} ms "
                  f"{peak / 2**30:6.2f} GiB at the peak", flush=True)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
