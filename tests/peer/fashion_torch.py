"""Trains models/fashion.yaml in PyTorch by the same recipe, to compare with `twiddle train models/fashion.yaml --seed N`.

usage: python3 tests/peer/fashion_torch.py [--seeds 1 2 3] [--device cpu | cuda] [--threads 2] [--set KEY=VALUE]
                                           [--twiddle build/release/apps/twiddle]

The network, the rates and the steps of augmentation come from the file (torch_net.py); what it says of the rest is checked below.
Prints the top-1 of the validation images after each epoch. On a GPU all images lie there, and all arithmetic is fp32.
"""
import argparse
import gzip
import math
import time

import numpy
import torch
from torch import nn

from torch_net import config_of, initialize, network

PAD, SIDE = 1, 28


def pixels(path):
    with gzip.open(path) as file:
        return torch.tensor(numpy.frombuffer(file.read(), numpy.uint8, offset=16).reshape(-1, 1, SIDE, SIDE))


def labels(path):
    with gzip.open(path) as file:
        return torch.tensor(numpy.frombuffer(file.read(), numpy.uint8, offset=8), dtype=torch.int64)


def augmented(images):
    """Each image mirrored or not, and cropped at random after padding with black."""
    mirrored = torch.rand(len(images), 1, 1, 1) < 0.5
    images = torch.where(mirrored, images.flip(3), images)
    padded = nn.functional.pad(images, [PAD] * 4)
    tops, lefts = torch.randint(2 * PAD + 1, (2, len(images), 1, 1))
    rows, columns = tops + torch.arange(SIDE).view(1, -1, 1), lefts + torch.arange(SIDE).view(1, 1, -1)
    return padded[torch.arange(len(images)).view(-1, 1, 1), 0, rows, columns].unsqueeze(1)


def rate(train, epoch):
    """Linear from 0 in the warm-up, then a cosine down to 0."""
    warmup = float(train["schedule"]["cosine"]["warmup"])
    progress = (epoch - warmup) / (train["epochs"] - warmup)
    return float(train["learning_rate"]) * (0.01 + 0.99 * epoch / warmup if epoch < warmup else 0.5 * (1 + math.cos(math.pi * progress)))


def top1(net, images, targets, standard):
    net.eval()
    with torch.no_grad():
        right = sum(int((net(standard(x)).argmax(1) == y).sum()) for x, y in zip(images.split(500), targets.split(500)))
    net.train()
    return right / len(targets)


def train_once(config, seed):
    torch.manual_seed(seed)
    data, train = config["data"], config["train"]
    sgd = train["optimizer"]["sgd"]
    assert data["augment"] == [{"hflip": 0.5}, {"pad_crop": {"pad": PAD, "size": SIDE}}], data["augment"]
    mean, deviation = (float(numpy.ravel(data["normalize"][key])[0]) for key in ("mean", "std"))
    standard = lambda images: (images.float() / 255 - mean) / deviation
    sets = {name: (pixels(data[name]["images"]), labels(data[name]["labels"])) for name in ("train", "val")}
    net = network(config)
    initialize(net, config)
    decayed = [module.weight for _, kind, module in net.named if kind in ("conv2d", "linear")]
    others = [p for p in net.parameters() if not any(p is each for each in decayed)]
    optimizer = torch.optim.SGD([{"params": decayed, "weight_decay": float(sgd["weight_decay"])},
                                 {"params": others, "weight_decay": 0}],
                                lr=rate(train, 0), momentum=float(sgd["momentum"]), nesterov=sgd["nesterov"])
    images, targets = sets["train"]
    steps = math.ceil(len(images) / train["batch_size"])
    started = time.time()
    for epoch in range(train["epochs"]):
        for step, chosen in enumerate(torch.randperm(len(images)).split(train["batch_size"])):
            for group in optimizer.param_groups:
                group["lr"] = rate(train, epoch + step / steps)
            scores = net(standard(augmented(images[chosen])))
            loss = nn.functional.cross_entropy(scores, targets[chosen], label_smoothing=float(train["label_smoothing"]))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()
        print(f"seed {seed}, epoch {epoch + 1}: top-1 {100 * top1(net, *sets['val'], standard):.2f} %, "
              f"{time.time() - started:.0f} s", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--twiddle", default="build/release/apps/twiddle")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.set_default_device(arguments.device)  # of the images, the network and the random numbers
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    config = config_of(arguments.twiddle, "models/fashion.yaml", arguments.set)
    for seed in arguments.seeds:
        train_once(config, seed)


if __name__ == "__main__":
    main()
