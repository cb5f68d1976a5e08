"""Holds logits, loss, every gradient and the loss of some steps against PyTorch's, on the same weights and batch.

usage: python3 tests/peer/torch_numerics.py [--nets alexnet overfeat_fast vgg_a] [--device cpu|cuda] [--steps 20] [--rate 2e-6]
                                            [--program build/release/tests/twiddle_numerics]

The weights are written under PyTorch's own names (features.0.weight ...), so that the name map is tried as well. Exit code 1
where a difference is above its bound.

Every number is also computed in float64: where two float32 results differ, this shows which one is wrong. A net of ReLUs and
max pooling has kinks, though: among millions of sums some are so near to zero that rounding decides which way a ReLU
switches, or which of two values is the larger, and one such choice moves a gradient by far more than rounding errors do
(1e-3 and above). So float64 is computed with our choices, too. Where ours and PyTorch's float32 differ by more than the
bound, but ours is the float64 result for the same choices and some of them differ from float64's own, the cause is a kink
and no error. Where ours is within the bound of float64 and PyTorch's float32 is not, the error is PyTorch's.
"""
import argparse
import os
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from torch import nn

TENSOR_BOUND = 1e-5  # relative L2
LOSS_BOUND = 1e-3    # relative, each step
MOMENTUM, WEIGHT_DECAY = 0.9, 5e-4  # as in models/alexnet.yaml


class Net(nn.Module):
    def __init__(self, features, classifier):
        super().__init__()
        self.features, self.classifier = nn.Sequential(*features), nn.Sequential(*classifier)

    def forward(self, x):
        return self.classifier(torch.flatten(self.features(x), 1))


def conv(inputs, outputs, kernel, stride=1, padding=0):
    return [nn.Conv2d(inputs, outputs, kernel, stride, padding), nn.ReLU()]


def alexnet():
    pool = nn.MaxPool2d(3, 2)
    features = [*conv(3, 64, 11, 4, 2), pool, *conv(64, 192, 5, 1, 2), pool, *conv(192, 384, 3, 1, 1), *conv(384, 256, 3, 1, 1),
                *conv(256, 256, 3, 1, 1), pool]
    classifier = [nn.Dropout(0), nn.Linear(256 * 6 * 6, 4096), nn.ReLU(), nn.Dropout(0), nn.Linear(4096, 4096), nn.ReLU(),
                  nn.Linear(4096, 1000)]
    return Net(features, classifier)


def overfeat_fast():
    pool = nn.MaxPool2d(2, 2)
    features = [*conv(3, 96, 11, 4), pool, *conv(96, 256, 5), pool, *conv(256, 512, 3, 1, 1), *conv(512, 1024, 3, 1, 1),
                *conv(1024, 1024, 3, 1, 1), pool]
    classifier = [nn.Dropout(0), nn.Linear(1024 * 6 * 6, 3072), nn.ReLU(), nn.Dropout(0), nn.Linear(3072, 4096), nn.ReLU(),
                  nn.Linear(4096, 1000)]
    return Net(features, classifier)


def vgg(plan):
    features, channels = [], 3
    for width in plan:
        features += [nn.MaxPool2d(2, 2)] if width == "pool" else conv(channels, width, 3, 1, 1)
        channels = channels if width == "pool" else width
    classifier = [nn.Linear(512 * 7 * 7, 4096), nn.ReLU(), nn.Dropout(0), nn.Linear(4096, 4096), nn.ReLU(), nn.Dropout(0),
                  nn.Linear(4096, 1000)]
    return Net(features, classifier)


def vgg_a():
    return vgg([64, "pool", 128, "pool", 256, 256, "pool", 512, 512, "pool", 512, 512, "pool"])


def vgg_e():
    return vgg([64] * 2 + ["pool"] + [128] * 2 + ["pool"] + [256] * 4 + ["pool"] + [512] * 4 + ["pool"] + [512] * 4 + ["pool"])


# Per net: how PyTorch makes it, the side of its images, our names of its fully connected layers.
NETS = {
    "alexnet": (alexnet, 224, ["fc6", "fc7", "fc8"]),
    "overfeat_fast": (overfeat_fast, 231, ["fc6", "fc7", "fc8"]),
    "vgg_a": (vgg_a, 224, ["fc1", "fc2", "fc3"]),
    "vgg_e": (vgg_e, 224, ["fc1", "fc2", "fc3"]),
}


def our_names(net, fully_connected):
    """Our name of each of PyTorch's parameters, in order; written out here, so that the program's own map is tested."""
    convolutions = [f"conv{i + 1}" for i, m in enumerate(m for m in net.features if isinstance(m, nn.Conv2d))]
    return [f"{layer}.{kind}" for layer in convolutions + fully_connected for kind in ("weight", "bias")]


def initialize(net, seed):
    """He's deviations, but small in the last layer: the loss starts near log(1000) and falls instead of leaping about."""
    torch.manual_seed(seed)
    for name, value in net.named_parameters():
        if name.endswith("weight"):
            nn.init.kaiming_normal_(value, nonlinearity="relu")
        else:
            nn.init.uniform_(value, -0.1, 0.1)
    nn.init.normal_(net.classifier[-1].weight, std=0.01)


class Switched:
    """The forward pass of a net where given outputs of its ReLUs decide what passes them, and what the max pooling after them."""

    def __init__(self, net, outputs):
        self.net, self.outputs, self.differing, self.total = net, outputs, 0, 0

    def __call__(self, x):
        outputs = iter(self.outputs)
        for module in [*self.net.features, nn.Flatten(), *self.net.classifier]:
            if isinstance(module, nn.ReLU):
                given = next(outputs).to(x.device)
                self.differing += int(((x > 0) != (given > 0)).sum())
                self.total += x.numel()
                x = x * (given > 0)
            elif isinstance(module, nn.MaxPool2d):
                own, chosen = (nn.functional.max_pool2d(y, module.kernel_size, module.stride, return_indices=True)[1]
                               for y in (x, given))
                x = x.flatten(2).gather(2, chosen.flatten(2)).view(chosen.shape)
                self.differing += int(((own != chosen) & (x > 0)).sum())  # where all are zero, no choice matters
                self.total += chosen.numel()
            else:
                x = module(x)
        return x


def pass_of(net, names, images, labels, forward=None):
    """Logits, loss and gradients by our names, on the host in float64."""
    net.zero_grad(set_to_none=True)
    logits = (forward or net)(images)
    loss = nn.functional.cross_entropy(logits, labels)
    loss.backward()
    results = {"logits": logits, "loss": loss.reshape(1)}
    results.update({f"grad.{name}": value.grad for name, value in zip(names, net.parameters())})
    results = {name: value.detach().double().cpu() for name, value in results.items()}
    net.zero_grad(set_to_none=True)
    return results


def losses_of(net, images, labels, steps, rate):
    """The loss before each step. Biases are not decayed, as in the program."""
    decayed = [p for name, p in net.named_parameters() if name.endswith("weight")]
    plain = [p for name, p in net.named_parameters() if name.endswith("bias")]
    optimizer = torch.optim.SGD([{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": plain, "weight_decay": 0}],
                                lr=rate, momentum=MOMENTUM)
    losses = []
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(net(images), labels)
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
    return losses


def distance(a, b):
    return float((a - b).norm() / b.norm())


def compare(ours, torch32, torch64, switched64, differing_choices):
    print("| tensor | ours : torch fp32 | ours : float64 | ours : float64 with our choices | torch fp32 : float64 |")
    print("| --- | ---: | ---: | ---: | ---: |")
    worst_to_torch = worst_switched = 0
    torchs_own = []  # where PyTorch's float32 is the one that is far from float64
    for name in torch32:
        mine = ours[name].double()
        to_torch, switched = distance(mine, torch32[name]), distance(mine, switched64[name])
        to_exact, torch_to_exact = distance(mine, torch64[name]), distance(torch32[name], torch64[name])
        if to_torch > TENSOR_BOUND and to_exact <= TENSOR_BOUND < torch_to_exact:
            torchs_own.append(name)
        else:
            worst_to_torch = max(worst_to_torch, to_torch)
        worst_switched = max(worst_switched, switched)
        print(f"| {name} | {to_torch:.2e} | {to_exact:.2e} | {switched:.2e} | {torch_to_exact:.2e} |")
    for name in torchs_own:
        print(f"{name}: ours is within the bound of float64, PyTorch's float32 is not")
    # Written so that a NaN fails.
    same, kink = worst_to_torch <= TENSOR_BOUND, worst_switched <= TENSOR_BOUND and differing_choices > 0
    verdict = "ok" if same else "ok except for kinks" if kink else "MISSED"
    print(f"worst relative L2 against PyTorch {worst_to_torch:.2e}, against float64 with our choices {worst_switched:.2e}, "
          f"bound {TENSOR_BOUND:.0e}: {verdict}\n")
    return same or kink


def compare_losses(ours, torch32):
    print("| step | ours | torch | relative difference |\n| ---: | ---: | ---: | ---: |")
    worst = 0
    for step, (mine, theirs) in enumerate(zip(ours, torch32, strict=True), 1):
        difference = abs(mine - theirs) / abs(theirs)
        worst = max(worst, difference)
        print(f"| {step} | {mine:.6f} | {theirs:.6f} | {difference:.1e} |")
    ok = worst <= LOSS_BOUND
    print(f"worst {worst:.1e}, bound {LOSS_BOUND:.0e}: {'ok' if ok else 'MISSED'}\n")
    return ok


def run_ours(arguments, net, folder):
    paths = [os.path.join(folder, f"{name}.safetensors") for name in ("weights", "batch", "ours")]
    command = [arguments.program, f"models/{net}.yaml", *paths, "--device", arguments.device, "--engine", arguments.engine,
               "--steps", str(arguments.steps), "--rate", str(arguments.rate)]
    subprocess.run(command, check=True)
    return load_file(paths[-1])


def check(arguments, name, folder):
    make, side, fully_connected = NETS[name]
    net = make()
    initialize(net, arguments.seed)
    images = torch.randn(arguments.batch, 3, side, side)
    labels = torch.randint(1000, (arguments.batch,))
    save_file(net.state_dict(), os.path.join(folder, "weights.safetensors"))
    save_file({"images": images, "labels": labels.int()}, os.path.join(folder, "batch.safetensors"))
    ours = run_ours(arguments, name, folder)

    names = our_names(net, fully_connected)
    expected = {"logits", "loss", *(["losses"] if arguments.steps else []), *(f"grad.{n}" for n in names)}
    switches = {f"switch.relu{i + 1}" for i, _ in enumerate(m for m in net.modules() if isinstance(m, nn.ReLU))}
    assert expected | switches == set(ours), f"{name}: other tensors than expected: {sorted(ours)}"
    net, images, labels = net.to(arguments.device), images.to(arguments.device), labels.to(arguments.device)
    torch64 = pass_of(net.double(), names, images.double(), labels)
    switched = Switched(net, [ours[f"switch.relu{i + 1}"] for i in range(len(switches))])
    switched64 = pass_of(net, names, images.double(), labels, switched)
    net.float()  # the float32 values went through float64 unchanged
    torch32 = pass_of(net, names, images, labels)
    print(f"## {name}, batch {arguments.batch}, {arguments.device}\n")
    print(f"{switched.differing} of {switched.total} choices of ReLUs and max pooling are others than in float64.\n")
    ok = compare(ours, torch32, torch64, switched64, switched.differing)
    if arguments.steps:
        del torch64, torch32, switched64
        ok = compare_losses(ours["losses"].tolist(), losses_of(net, images, labels, arguments.steps, arguments.rate)) and ok
    return ok


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nets", nargs="+", choices=NETS, default=["alexnet", "overfeat_fast", "vgg_a"])
    parser.add_argument("--program", default="build/release/tests/twiddle_numerics")
    parser.add_argument("--device", default="cpu", help="of both programs")
    parser.add_argument("--engine", default="rule", help="our convolutions'")
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--steps", type=int, default=0)
    parser.add_argument("--rate", type=float, default=2e-6)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    print(f"PyTorch {torch.__version__}, seed {arguments.seed}\n")
    missed = []
    for name in arguments.nets:
        with tempfile.TemporaryDirectory() as folder:
            if not check(arguments, name, folder):
                missed.append(name)
        sys.stdout.flush()
    if missed:
        sys.exit(f"bounds missed by: {', '.join(missed)}")


if __name__ == "__main__":
    main()
