"""Times training steps of our models' files in PyTorch, to stand beside `twiddle time` of the same file in one run.

usage: python3 tests/peer/torch_time.py models/alexnet.yaml ... [--batch-size 128] [--precision fp32 tf32] [--compile]

Needs PyTorch, PyYAML and a GPU. A step is forward, loss, backward and a fused SGD update, on one random batch that lies on the
GPU; cuDNN's benchmark mode is on. The median of 5 samples. Layers that the files of images use: conv2d, relu, max_pool,
flatten, dropout, linear and repeat.
"""
import argparse
import os
import sys

import torch
import yaml
from torch import nn


def layers_of(entries):
    """(kind, options) of each layer, repeated ones written out."""
    for entry in entries:
        kind, options = (entry, {}) if isinstance(entry, str) else next(iter(entry.items()))
        if kind == "repeat":
            for _ in range(options["times"]):
                yield from layers_of(options["layers"])
        else:
            yield kind, options or {}


def model_of(path):
    """The file's model, over that of the file it is based on."""
    with open(path) as file:
        config = yaml.safe_load(file)
    below = model_of(os.path.join(os.path.dirname(path), config["base"])) if "base" in config else {}
    return {**below, **config.get("model", {})}


def network(model):
    modules, shape = [], list(model["input"])
    for kind, options in layers_of(model["layers"]):
        if kind == "conv2d":
            module = nn.Conv2d(shape[0], options["filters"], options["kernel"], options.get("stride", 1), options.get("pad", 0),
                               groups=options.get("groups", 1), bias=options.get("bias", True))
        elif kind == "relu":
            module = nn.ReLU(True)
        elif kind == "max_pool":
            module = nn.MaxPool2d(options["kernel"], options.get("stride", options["kernel"]), options.get("pad", 0))
        elif kind == "flatten":
            module = nn.Flatten()
        elif kind == "dropout":
            module = nn.Dropout(options.get("rate", 0.5))
        elif kind == "linear":
            module = nn.Linear(shape[0], options["outputs"])
        else:
            sys.exit(f"torch_time.py knows no layer '{kind}'")
        with torch.no_grad():
            shape = list(module.eval()(torch.zeros(1, *shape)).shape[1:])
        modules.append(module.train())
    return nn.Sequential(*modules), model["input"], shape[0]


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


def time_of(path, precision, batch, compiled):
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = True
    net, image, classes = network(model_of(path))
    net = net.cuda()
    x, labels = torch.randn(batch, *image, device="cuda"), torch.randint(0, classes, (batch,), device="cuda")
    sgd = torch.optim.SGD(net.parameters(), lr=1e-4, momentum=0.9, weight_decay=5e-4, fused=True)
    call = torch.compile(net) if compiled else net

    def step():
        nn.functional.cross_entropy(call(x), labels).backward()
        sgd.step()
        sgd.zero_grad(set_to_none=True)

    return median_ms(step)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("models", nargs="+")
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--precision", nargs="+", choices=["fp32", "tf32"], default=["fp32"])
    parser.add_argument("--compile", action="store_true")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        sys.exit("torch_time.py needs a GPU")
    for path in arguments.models:
        for precision in arguments.precision:
            ms = time_of(path, precision, arguments.batch_size, arguments.compile)
            how = "compiled" if arguments.compile else "eager"
            print(f"{os.path.basename(path):24s} {precision} {how:8s} batch {arguments.batch_size} {ms:9.3f} ms", flush=True)
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
