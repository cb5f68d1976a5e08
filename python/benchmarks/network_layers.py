"""All convolutions of a network, one by one and summed: milliseconds of forward and backward by PyTorch and by twiddle_torch,
and, where a file of `twiddle time MODEL.yaml --json FILE` is given, by Twiddle itself.

usage: python network_layers.py vgg19 alexnet [--precision fp32 tf32] [--engine rule] [--seconds 0.1]
                                [--twiddle-time vgg19:fp32:FILE ...]

The first layer has no gradient of its input, as in training. A bias and its gradient are in all three.
"""

import argparse
import functools
import json

import torch
import torch.nn.functional as F
from layer_times import time_of
from networks import networks
from torch import nn

import twiddle_torch


def convolutions(network):
    """Each layer, and the shape of its input."""
    make, batch, image = networks[network]
    found, net = [], make()
    for layer in net.modules():
        if isinstance(layer, nn.Conv2d):
            layer.register_forward_hook(lambda layer, inputs, output: found.append((layer, (batch, *inputs[0].shape[1:]))))
    with torch.no_grad():
        net(torch.zeros(1, *image))
    return found


def milliseconds(conv, layer, shape, needs_x, device, budget):
    x = torch.randn(shape, device=device, requires_grad=needs_x)
    weight, bias = (p.detach().to(device).requires_grad_() for p in (layer.weight, layer.bias))
    inputs = (x, weight, bias) if needs_x else (weight, bias)
    run = functools.partial(conv, x, weight, bias, layer.stride, layer.padding, layer.dilation, layer.groups)
    grad = torch.randn_like(run())
    return time_of(lambda: torch.autograd.grad(run(), inputs, grad), device, budget)


def of_twiddle_time(file):
    """Its convolutions in their order: all passes of a layer together."""
    with open(file) as text:
        rows = json.load(text)["layers"]
    layers = dict.fromkeys(row["layer"] for row in rows if row["layer"].startswith("conv"))
    return [sum(row["ms"] for row in rows if row["layer"] == layer) for layer in layers]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="+", choices=networks)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--precision", nargs="+", default=["fp32"], choices=["fp32", "tf32"])
    parser.add_argument("--engine", default=None)
    parser.add_argument("--seconds", type=float, default=0.1)
    parser.add_argument("--twiddle-time", nargs="*", default=[], metavar="NETWORK:PRECISION:FILE")
    a = parser.parse_args()
    files = {tuple(each.split(":", 2)[:2]): each.split(":", 2)[2] for each in a.twiddle_time}
    torch.backends.cudnn.benchmark = True
    name = torch.cuda.get_device_name() if a.device == "cuda" else "cpu"
    print(f"{name}, PyTorch {torch.__version__}, twiddle_torch {twiddle_torch.__version__}, engine {a.engine}")
    for network in a.networks:
        layers = convolutions(network)
        for precision in a.precision:
            torch.backends.cudnn.allow_tf32 = precision == "tf32"
            ours = functools.partial(twiddle_torch.conv2d, precision=precision, engine=a.engine)
            file = files.get((network, precision))
            theirs = of_twiddle_time(file) if file else [float("nan")] * len(layers)
            print(f"{network}, {precision}:{'PyTorch':>38s} {'twiddle_torch':>14s} {'twiddle time':>14s}")
            sums = [0.0, 0.0, 0.0]
            for index, (layer, shape) in enumerate(layers):
                times = [milliseconds(conv, layer, shape, index > 0, a.device, a.seconds) for conv in (F.conv2d, ours)]
                times.append(theirs[index])
                sums = [total + ms for total, ms in zip(sums, times)]
                what = f"{'x'.join(map(str, shape))} to {layer.out_channels}, {layer.kernel_size[0]}x{layer.kernel_size[1]}"
                print(f"  {what:40s} {times[0]:9.3f} {times[1]:14.3f} {times[2]:14.3f}", flush=True)
            print(f"  {'all':40s} {sums[0]:9.3f} {sums[1]:14.3f} {sums[2]:14.3f}")
            print(f"  {'times as fast as PyTorch':50s} {sums[0] / sums[1]:14.2f} {sums[0] / sums[2]:14.2f}", flush=True)


if __name__ == "__main__":
    main()
