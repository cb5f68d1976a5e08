"""PyTorch's twin of a network that one of our YAML files describes: the same layers under the same names, for the scripts here.

The file is read by our own program (`train --print-config`), which writes every name, repeat and default out.
"""
import math
import subprocess

import torch
import yaml
from torch import nn

LAYOUTS = {"contiguous": torch.contiguous_format, "channels_last": torch.channels_last}
"""Those that are timed. Which one PyTorch is faster with depends on the network and the precision."""


def config_of(program, file, settings=()):
    """The config with every key as it is used."""
    command = [program, "train", file, "--print-config"]
    for setting in settings:
        command += ["--set", setting]
    return yaml.safe_load(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


class LayerNorm(nn.LayerNorm):
    """Over the channels of each pixel."""

    def forward(self, x):
        return super().forward(x) if x.dim() == 2 else super().forward(x.movedim(1, -1)).movedim(-1, 1)


class Scale(nn.Module):
    def __init__(self, channels, start):
        super().__init__()
        self.weight = nn.Parameter(torch.full((channels,), start))

    def forward(self, x):
        return x * self.weight.view(-1, *[1] * (x.dim() - 2))


class GlobalAvgPool(nn.Module):
    def forward(self, x):
        return x.mean((2, 3))


class DropPath(nn.Module):
    """In training drops whole images."""

    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        if not self.training or self.rate == 0:
            return x
        kept = torch.rand(x.shape[0], *[1] * (x.dim() - 1), device=x.device) >= self.rate
        return x * kept / (1 - self.rate)


class Joined(nn.Module):
    """What `residual` and `parallel` are: paths with the same input, and how their outputs are joined."""

    def __init__(self, join, paths):
        super().__init__()
        self.join, self.paths = join, nn.ModuleList(paths)

    def forward(self, x):
        outputs = [path(x) for path in self.paths]
        if self.join == "concat":
            return torch.cat(outputs, 1)
        total = outputs[0]
        for output in outputs[1:]:
            total = total + output if self.join == "add" else total * output
        return total


def pair(value):
    return tuple(value) if isinstance(value, list) else value


def pooling(options):
    return dict(kernel_size=pair(options["kernel"]), stride=pair(options["stride"]), padding=pair(options["pad"]),
                ceil_mode=options["rounding"] == "ceil")


def single_layer(kind, options, shape):
    """A layer that holds no paths, for inputs of a shape (without the batch)."""
    channels = shape[0]
    if kind == "conv2d":
        return nn.Conv2d(channels, options["filters"], pair(options["kernel"]), pair(options["stride"]), pair(options["pad"]),
                         pair(options["dilation"]), options["groups"], options["bias"])
    if kind == "linear":
        inputs = math.prod(shape)
        linear = nn.Linear(inputs, options["outputs"], options["bias"])
        return nn.Sequential(nn.Flatten(), linear) if len(shape) > 1 else linear
    if kind == "batch_norm":
        norm = nn.BatchNorm2d if len(shape) == 3 else nn.BatchNorm1d
        return norm(channels, float(options["epsilon"]), float(options["momentum"]))
    if kind == "layer_norm" and options["over"] == "channels":
        return LayerNorm(channels, float(options["epsilon"]))
    if kind == "scale":
        return Scale(channels, float(options["init"]))
    if kind == "max_pool":
        return nn.MaxPool2d(**pooling(options))
    if kind == "avg_pool":
        return nn.AvgPool2d(**pooling(options), count_include_pad=options["count_padding"])
    if kind == "gelu":
        return nn.GELU(options["approximate"])
    if kind == "dropout":
        return nn.Dropout(float(options["rate"]))
    if kind == "drop_path":
        return DropPath(float(options["rate"]))
    plain = {"relu": nn.ReLU, "tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "silu": nn.SiLU, "flatten": nn.Flatten,
             "global_avg_pool": GlobalAvgPool}
    if kind in plain:
        return plain[kind]()
    raise SystemExit(f"torch_net.py knows no layer '{kind}' with {options}")


class Row(nn.Module):
    """A list of layers. `named` has (name, kind, module) of all layers with tensors, those in paths too, in our order."""

    def __init__(self, entries, shape, prefix=""):
        super().__init__()
        self.named, modules = [], []
        for entry in entries:
            kind, options = next(iter(entry.items()))
            name = prefix + options["name"]
            if kind in ("residual", "parallel"):
                module = self.joined(kind, options, shape, name)
            else:
                module = single_layer(kind, options, shape)
                owner = module[1] if isinstance(module, nn.Sequential) else module
                if owner.state_dict():
                    self.named.append((name, kind, owner))
            with torch.no_grad():
                shape = list(module.eval()(torch.zeros(1, *shape)).shape[1:])
            modules.append(module.train())
        self.layers, self.shape = nn.ModuleList(modules), shape

    def joined(self, kind, options, shape, name):
        lists = options["paths"] if kind == "parallel" else [options["layers"], options.get("shortcut", [])]
        rows = [Row(entries, shape, name + ".") for entries in lists]
        for row in rows:
            self.named += row.named
        return Joined(options.get("join", "add"), rows)

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def network(config):
    return Row(config["model"]["layers"], list(config["model"]["input"]))


def named_tensors(net, buffers=True):
    """{our name: tensor} in our order."""
    tensors = {}
    for name, kind, module in net.named:
        norm = kind in ("batch_norm", "layer_norm", "scale")
        for own, tensor in [*module.named_parameters(), *(module.named_buffers() if buffers else [])]:
            if own != "num_batches_tracked":
                tensors[f"{name}.{'scale' if norm and own == 'weight' else own}"] = tensor
    return tensors


def initialize(net, config):
    """As our `init: he` and `{gaussian: DEVIATION}` do; biases start at 0."""
    def options_of(entries, prefix=""):
        for entry in entries:
            kind, options = next(iter(entry.items()))
            yield prefix + options["name"], options
            for path in options.get("paths", [options.get("layers", []), options.get("shortcut", [])]):
                yield from options_of(path, prefix + options["name"] + ".")

    options = dict(options_of(config["model"]["layers"]))
    for name, kind, module in net.named:
        if kind in ("conv2d", "linear"):
            init = options[name]["init"]
            deviation = math.sqrt(2 / module.weight[0].numel()) if init == "he" else float(init["gaussian"])
            nn.init.normal_(module.weight, std=deviation)
            if module.bias is not None:
                nn.init.zeros_(module.bias)
