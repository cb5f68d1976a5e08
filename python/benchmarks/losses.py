"""Losses of the same training by PyTorch in float64 as the reference, and in float32 and TF32, by PyTorch and after `convert`.

usage: python losses.py [NETWORK ...] [--device cuda] [--steps 200] [--precision fp32 tf32] [--engine rule] [--batch-size N]
                        [--seed N]

The networks are those of networks.py, of full width, with small images, so that 200 steps in float64 take a GPU a minute or so.
The weights and batches of all runs are the same: SGD with momentum 0.9 at a rate that leaves time before training magnifies
roundings to differences of any size. Prints the largest relative difference to the reference's loss up to a step, and the mean.
"""

import argparse
from typing import Callable, NamedTuple, Tuple

import torch
import torch.nn.functional as F
from networks import UNet, alexnet, convnext_t, replknet, replknet31b, vgg19
from torch import nn

import twiddle_torch


class Training(NamedTuple):
    make: Callable[[], nn.Module]
    batch: int
    image: Tuple[int, int, int]
    classes: int
    rate: float


trainings = {
    "replknet31b": Training(lambda: replknet31b(classes=10), 16, (3, 64, 64), 10, 1e-3),
    "convnext_t": Training(lambda: convnext_t(classes=10), 16, (3, 64, 64), 10, 1e-3),
    "vgg19": Training(lambda: vgg19(1, classes=10), 32, (3, 32, 32), 10, 1e-3),
    "alexnet": Training(lambda: alexnet(1, classes=10), 32, (3, 64, 64), 10, 1e-3),
    "unet": Training(UNet, 8, (1, 64, 64), 2, 1e-3),
    "replknet_small": Training(lambda: replknet((16, 32), (1, 1), (13, 13), classes=10), 32, (3, 32, 32), 10, 2e-2),
}


def network(training, seed):
    """Initializes as PyTorch does, but without norms as in He et al. 2015: a deep network would learn nothing in so few steps."""
    torch.manual_seed(seed)
    net = training.make()
    if not any(isinstance(layer, (nn.BatchNorm2d, nn.LayerNorm)) for layer in net.modules()):
        for layer in net.modules():
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                nn.init.kaiming_normal_(layer.weight)
                nn.init.zeros_(layer.bias)
    return net


def batches(training, steps, seed):
    """A coarse pattern for each class, under noise."""
    channels, *plane = training.image
    generator = torch.Generator().manual_seed(6 + seed)
    patterns = F.interpolate(torch.randn(training.classes, channels, 4, 4, generator=generator), size=plane)
    for _ in range(steps):
        labels = torch.randint(training.classes, (training.batch,), generator=generator)
        noise = torch.randn(training.batch, *training.image, generator=generator)
        yield (patterns[labels] + 2 * noise) / 5**0.5, labels


def losses(training, a, dtype, convert=None):
    net = network(training, a.seed).to(a.device, dtype)
    if convert is not None:
        twiddle_torch.convert(net, min_kernel=1, file=None, **convert)
    optimizer = torch.optim.SGD(net.parameters(), training.rate, momentum=0.9)
    found = []
    for images, labels in batches(training, a.steps, a.seed):
        loss = F.cross_entropy(net(images.to(a.device, dtype)), labels.to(a.device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found


def row(name, cells):
    print(f"| {name:24s} | " + " | ".join(f"{cell:>8s}" for cell in cells) + " |", flush=True)


def compare(name, training, a):
    marks = sorted({step for step in (1, 10, 50, 100, 200, 500) if step < a.steps} | {a.steps})
    right = losses(training, a, torch.float64)
    print(f"\n{name}: {training.batch} images of {'x'.join(map(str, training.image))}, rate {training.rate:g}\n")
    row("step", [*map(str, marks), "mean"])
    row("---", ["---:"] * (len(marks) + 1))
    row("loss in float64", [f"{right[step - 1]:.5f}" for step in marks] + [""])
    for precision in a.precision:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
        for who, convert in ("PyTorch", None), ("converted", dict(precision=precision, engine=a.engine)):
            run = losses(training, a, torch.float32, convert)
            apart = [abs(p - q) / q for p, q in zip(run, right)]
            row(f"{who}, {precision}", [f"{each:.1e}" for each in [*(max(apart[:step]) for step in marks), sum(apart) / len(apart)]])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="NETWORK", default=list(trainings), help=f"of {', '.join(trainings)}; all")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--precision", nargs="+", default=["fp32", "tf32"], choices=["fp32", "tf32"])
    parser.add_argument("--engine", default=None)
    parser.add_argument("--batch-size", type=int)
    parser.add_argument("--seed", type=int, default=1, help="of weights and batches")
    a = parser.parse_args()
    if unknown := set(a.networks) - set(trainings):
        parser.error(f"unknown networks: {', '.join(sorted(unknown))}; known are {', '.join(trainings)}")
    if a.steps < 1:
        parser.error("--steps: at least 1")
    for name in a.networks:
        training = trainings[name]
        compare(name, training._replace(batch=a.batch_size) if a.batch_size else training, a)


if __name__ == "__main__":
    main()
