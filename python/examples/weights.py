"""Weights both ways: a checkpoint of Twiddle's in PyTorch, trained on there with Twiddle's convolutions, and back.

usage: twiddle train models/digits.yaml
       python weights.py runs/digits-001/best.safetensors back.safetensors [--steps 100]
       twiddle eval back.safetensors models/digits.yaml
"""

import argparse
import gzip
import pathlib
from collections import OrderedDict

import torch
import torch.nn.functional as F
from safetensors.torch import load_file, save_file
from torch import nn

import twiddle_torch

digits = pathlib.Path(__file__).parent.parent.parent / "data" / "digits"


def network():
    """models/digits.yaml, with its layers' names."""
    return nn.Sequential(OrderedDict(
        conv1=nn.Conv2d(1, 32, 3, padding=1), relu1=nn.ReLU(),
        conv2=nn.Conv2d(32, 32, 3, padding=1), relu2=nn.ReLU(), pool1=nn.MaxPool2d(2),
        conv3=nn.Conv2d(32, 64, 3, padding=1), relu3=nn.ReLU(),
        flatten1=nn.Flatten(), dropout1=nn.Dropout(0.5), fc1=nn.Linear(1024, 10),
    ))


def read(kind):
    images, labels = (gzip.decompress((digits / f"{kind}-{what}.idx.gz").read_bytes()) for what in ("images", "labels"))
    pixels = torch.frombuffer(bytearray(images[16:]), dtype=torch.uint8).view(-1, 1, 8, 8) / 255
    return (pixels - 0.305) / 0.376, torch.frombuffer(bytearray(labels[8:]), dtype=torch.uint8).long()


def right(net, images, labels):
    net.eval()
    with torch.no_grad():
        return 100 * (net(images).argmax(1) == labels).float().mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkpoint")
    parser.add_argument("back")
    parser.add_argument("--steps", type=int, default=100)
    a = parser.parse_args()
    net = network()
    net.load_state_dict(load_file(a.checkpoint))
    twiddle_torch.convert(net, min_kernel=1)
    images, labels = read("train")
    test = read("test")
    print(f"as Twiddle trained it: {right(net, *test):.2f} % of {len(test[1])} test images")
    net.train()
    optimizer = torch.optim.SGD(net.parameters(), 0.005, momentum=0.9)
    for _ in range(a.steps):
        batch = torch.randint(len(labels), (64,))
        optimizer.zero_grad()
        F.cross_entropy(net(images[batch]), labels[batch]).backward()
        optimizer.step()
    print(f"{a.steps} steps later: {right(net, *test):.2f} %")
    save_file(net.state_dict(), a.back)


if __name__ == "__main__":
    main()
