"""Holds logits, loss, every gradient and the losses of some steps of networks in YAML files against PyTorch's.

usage: python3 tests/peer/torch_steps.py models/resnet18.yaml ... [--set model.input=[3,64,64]] [--device cpu|cuda]
                                         [--batch 4] [--steps 20] [--rate 1e-4] [--engine rule]

The network in PyTorch is made from the same file (torch_net.py), with random weights; dropout and drop_path are off. Everything
is computed in float64 as well: gradients must be as near to it as PyTorch's float32 are, at most three times as far or within
1e-5 (relative L2), and the losses of all steps within 1e-3 of PyTorch's, or as near to float64's as PyTorch's float32 are, at most
twice as far: networks of many batch norms part by more than 1e-3 in 20 steps by rounding alone, PyTorch in one layout from PyTorch
in another. Where rounding decides a ReLU or a maximum otherwise, in one program or the other, gradients move by 1e-3 or more. Such
a choice is one of some weights and images, and an error one of all; so a file that misses a bound is tried with another seed, three
times at most. torch_numerics.py, which is for chains of layers, separates these choices from errors. Exit code 1 where a file
misses a bound each time.
"""
import argparse
import copy
import os
import subprocess
import sys
import tempfile

import torch
from safetensors.torch import load_file, save_file
from torch import nn

from torch_net import config_of, initialize, named_tensors, network

TENSOR_BOUND = 1e-5  # relative L2
LOSS_BOUND = 1e-3    # relative, each step


def without_dropping(entries):
    for entry in entries:
        kind, options = next(iter(entry.items()))
        if kind in ("dropout", "drop_path"):
            options["rate"] = 0
        for path in options.get("paths", [options.get("layers", []), options.get("shortcut", [])]):
            without_dropping(path)


def start(net, config):
    """As the file says, but norms and scales neither 0 nor 1, so that the gradients of all layers count."""
    initialize(net, config)
    for _, kind, module in net.named:
        if kind in ("batch_norm", "layer_norm", "scale"):
            nn.init.uniform_(module.weight, 0.5, 1.5)
            if hasattr(module, "bias"):
                nn.init.uniform_(module.bias, -0.1, 0.1)


def pass_of(net, images, labels):
    """Logits, loss and gradients by our names, in float64 on the host."""
    net.zero_grad(set_to_none=True)
    logits = net(images)
    loss = nn.functional.cross_entropy(logits, labels)
    loss.backward()
    results = {"logits": logits, "loss": loss.reshape(1)}
    results.update({f"grad.{name}": value.grad for name, value in named_tensors(net, buffers=False).items()})
    results = {name: value.detach().double().cpu() for name, value in results.items()}
    net.zero_grad(set_to_none=True)
    return results


def optimizer_of(net, config, rate):
    """What the file says; biases, norms and scales are not decayed, as in the program."""
    kind, options = next(iter(config["train"]["optimizer"].items()))
    decayed = [module.weight for _, layer, module in net.named if layer in ("conv2d", "linear")]
    others = [p for p in net.parameters() if not any(p is each for each in decayed)]
    groups = [{"params": decayed, "weight_decay": float(options["weight_decay"])}, {"params": others, "weight_decay": 0}]
    if kind == "sgd":
        return torch.optim.SGD(groups, lr=rate, momentum=float(options["momentum"]), nesterov=options["nesterov"])
    adam = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[kind]
    return adam(groups, lr=rate, betas=(float(options["beta1"]), float(options["beta2"])), eps=float(options["epsilon"]))


def losses_of(net, config, images, labels, steps, rate):
    """The loss before each step, of a copy of the network."""
    net = copy.deepcopy(net)
    optimizer, losses = optimizer_of(net, config, rate), []
    smoothing = float(config["train"].get("label_smoothing", 0))
    for _ in range(steps):
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(net(images), labels, label_smoothing=smoothing)
        losses.append(loss.item())
        loss.backward()
        optimizer.step()
    return losses


def worst_apart(losses, others):
    """Relative, of all steps; NaN where one is."""
    losses, others = torch.tensor(losses, dtype=torch.float64), torch.tensor(others, dtype=torch.float64)
    return float(((losses - others) / others).abs().max())


def losses_agree(net, config, images, labels, arguments, ours):
    """Compares ours with PyTorch's, in both layouts, and all with float64."""
    def run(changed, pictures):
        return losses_of(changed, config, pictures, labels, arguments.steps, arguments.rate)

    exact, plain = run(copy.deepcopy(net).double(), images.double()), run(net, images)
    last = {"memory_format": torch.channels_last}
    other = run(copy.deepcopy(net).to(**last), images.to(**last))
    apart, mine = worst_apart(ours, plain), worst_apart(ours, exact)
    theirs = [worst_apart(losses, exact) for losses in (plain, other)]
    print(f"\n{arguments.steps} steps at a rate of {arguments.rate:g}: loss {plain[0]:.4f} to {plain[-1]:.4f}. Worst relative differences:\n"
          f"ours to PyTorch's {apart:.1e} (bound {LOSS_BOUND:.0e}), PyTorch's in channels_last to it {worst_apart(other, plain):.1e};\n"
          f"to float64: ours {mine:.1e}, PyTorch's {theirs[0]:.1e}, in channels_last {theirs[1]:.1e}")
    return apart <= LOSS_BOUND or mine <= 2 * max(theirs)


def distances(results, exact):
    """Relative L2 to float64. A gradient that is nearly nothing, as of a bias before a batch norm, by the norm of all."""
    whole = sum(float(value.norm()) ** 2 for name, value in exact.items() if name.startswith("grad.")) ** 0.5
    return {name: float((results[name].double() - value).norm()) / max(float(value.norm()), 1e-3 * whole * name.startswith("grad."))
            for name, value in exact.items()}


def check(arguments, file, seed, folder):
    config = config_of(arguments.twiddle, file, arguments.set)
    without_dropping(config["model"]["layers"])
    torch.manual_seed(seed)
    net = network(config)
    start(net, config)
    images = torch.randn(arguments.batch, *config["model"]["input"])
    labels = torch.randint(net.shape[0], (arguments.batch,))
    paths = [os.path.join(folder, f"{name}.safetensors") for name in ("weights", "batch", "ours")]
    save_file({name: tensor.detach().clone() for name, tensor in named_tensors(net).items()}, paths[0])
    save_file({"images": images, "labels": labels.int()}, paths[1])
    command = [arguments.program, file, *paths, "--device", arguments.device, "--engine", arguments.engine,
               "--steps", str(arguments.steps), "--rate", str(arguments.rate)]
    for setting in arguments.set:
        command += ["--set", setting]
    subprocess.run(command, check=True)
    ours = load_file(paths[2])

    net, images, labels = net.to(arguments.device), images.to(arguments.device), labels.to(arguments.device)
    exact = pass_of(net.double(), images.double(), labels)
    net.float()  # the float32 values went through float64 unchanged
    mine, theirs = distances(ours, exact), distances(pass_of(net, images, labels), exact)
    print(f"## {file}, input {config['model']['input']}, batch {arguments.batch}, {arguments.device}, seed {seed}\n")
    print("| relative L2 to float64 | ours | PyTorch fp32 |\n| --- | ---: | ---: |")
    for name in ("logits", "loss"):
        print(f"| {name} | {mine[name]:.2e} | {theirs[name]:.2e} |")
    gradients = [name for name in exact if name.startswith("grad.")]
    worst = [max(gradients, key=each.get) for each in (mine, theirs)]
    print(f"| worst of {len(gradients)} gradients | {mine[worst[0]]:.2e} ({worst[0][5:]}) | {theirs[worst[1]]:.2e} ({worst[1][5:]}) |")
    bound = max(TENSOR_BOUND, 3 * theirs[worst[1]])
    ok = all(mine[name] <= bound for name in exact)  # false where one is NaN
    if arguments.steps:
        ok = losses_agree(net, config, images, labels, arguments, ours["losses"].tolist()) and ok
    print("ok\n" if ok else "MISSED\n", flush=True)
    return ok


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--set", action="append", default=[], help="of all files, as in the program")
    parser.add_argument("--twiddle", default="build/release/apps/twiddle")
    parser.add_argument("--program", default="build/release/tests/twiddle_numerics")
    parser.add_argument("--device", default="cpu", help="of both programs")
    parser.add_argument("--engine", default="rule", help="our convolutions'")
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--rate", type=float, default=1e-4)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="the next is tried where one misses")
    arguments = parser.parse_args()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    print(f"PyTorch {torch.__version__}\n")
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        for file in arguments.files:
            if not any(check(arguments, file, seed, folder) for seed in arguments.seeds):
                missed.append(file)
    if missed:
        sys.exit(f"bounds missed by: {', '.join(missed)}")


if __name__ == "__main__":
    main()
