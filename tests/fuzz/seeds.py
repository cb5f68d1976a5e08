#!/usr/bin/env python3
"""Writes small valid files of every kind, and some that are nearly so, for the fuzz targets to begin from.

usage: tests/fuzz/seeds.py FOLDER     (makes FOLDER/<target>/..., from the standard library alone)
"""
import gzip
import json
import pathlib
import re
import struct
import sys
import zlib

root = pathlib.Path(__file__).resolve().parent.parent.parent
out = pathlib.Path(sys.argv[1])


def put(target, name, data):
    folder = out / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def part(data):
    return struct.pack("<H", len(data)) + data


def safetensors(header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


def tensor(shape, begin, end, dtype="F32"):
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def png(width, height, depth, colour, row):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for _ in range(height)))
    palette = chunk(b"PLTE", bytes(range(48))) if colour == 3 else b""
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + palette + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def jpeg():
    text = (root / "tests/data/small_jpeg.h").read_text()
    return bytes.fromhex("".join(re.findall(r'"([0-9a-f]+)"', text)))


def exif(orientation):
    return b"Exif\0\0II*\0" + struct.pack("<IHHHIHHI", 8, 1, 0x0112, 3, 1, orientation, 0, 0)


def with_segment(image, code, data):
    return image[:2] + struct.pack(">BBH", 0xff, code, len(data) + 2) + data + image[2:]


def with_chunk(image, kind, data):
    return image[:33] + struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) + image[33:]


def flat_jpeg(components):
    """A JPEG of 8x8 pixels, each component the mean gray."""
    count, names = len(components), components
    frame = struct.pack(">BHHB", 8, 8, 8, count) + b"".join(bytes([name, 0x11, 0]) for name in names)
    scan = bytes([count]) + b"".join(bytes([name, 0]) for name in names) + bytes([0, 63, 0])
    image = with_segment(b"\xff\xd8", 0xda, scan) + bytes(count) + b"\xff\xd9"
    for code, data in ((0xc4, b"\x10\1" + bytes(16)), (0xc4, b"\0\1" + bytes(16)), (0xc0, frame), (0xdb, b"\0" + bytes([8] * 64))):
        image = with_segment(image, code, data)
    return image


def idx(sizes, values):
    return bytes([0, 0, 8, len(sizes)]) + b"".join(struct.pack(">I", size) for size in sizes) + values


put("safetensors_fuzz", "empty", safetensors({}))
put("safetensors_fuzz", "two", safetensors({
    "__metadata__": {"format": "pt", "format_version": "1", "classes": '["cat","dog"]'},
    "conv1.weight": tensor([2, 1, 1, 1], 0, 8), "steps": tensor([1], 8, 12, "I32")}, bytes(12)))
put("safetensors_fuzz", "torch", safetensors({
    "features.0.weight": tensor([2, 1, 1, 1], 0, 8), "features.1.num_batches_tracked": tensor([], 8, 16, "I64")}, bytes(16)))
put("safetensors_fuzz", "halves", safetensors({"a": tensor([3], 0, 6, "F16"), "b": tensor([1], 6, 8, "BF16")}, bytes(8)))
put("safetensors_fuzz", "pytorch", b"PK\3\4" + bytes(22) + b"\x10\0\0\0archive/data.pkl")
put("safetensors_fuzz", "numbers", safetensors(b'{"a":{"dtype":"F32","shape":[1e9,-1,0.5],"data_offsets":[0,4]}}', bytes(4)))

put("checkpoint_fuzz", "state", b"""run.step=7
run.epoch=1
run.batch=3
run.random_seed=1
run.random_position=20
run.best_top1=0.5
run.best_epoch=1
run.images=30
run.loss_sum=12.5
format_version=1
optimizer=sgd""")

for model in sorted((root / "models").glob("*.yaml")):
    put("config_fuzz", model.name, model.read_bytes())
put("config_fuzz", "small", b"""version: 1
model: {input: [3, 8, 8], layers: [conv2d: {filters: 2, kernel: 3}, relu, repeat: {times: 2, layers: [tanh]}, linear: {outputs: 2}]}
layers: [relu, conv2d: {name: a, filters: 2}, repeat: {times: 2, layers: [tanh: {name: t}]}]
data:
  train: {format: synthetic, images: 4, classes: 2, first: 1, count: 2}
  val: {format: image_folder, path: "${HOME}/cats", channels: 3}
  augment: [resize: [9, 9], random_crop: 8, pad_crop: {pad: 1, size: 8}, hflip: 0.5, random_resized_crop: {size: 8, scale: [0.1, 1]}]
  eval_augment: [center_crop]
  normalize: {mean: [0.5, 0.4, 0.3], std: 0.2}
  max_pixels: 1000
  orient: false
\0data.train.images=3""")

put("image_fuzz", "grey", png(5, 4, 8, 0, bytes(5)))
put("image_fuzz", "bits", png(16, 4, 1, 0, bytes(2)))
put("image_fuzz", "colour", png(3, 2, 8, 2, bytes(9)))
put("image_fuzz", "palette", png(4, 4, 4, 3, bytes(2)))
put("image_fuzz", "deep", png(2, 2, 16, 6, bytes(16)))
put("image_fuzz", "jpeg", jpeg())
put("image_fuzz", "turned_jpeg", with_segment(jpeg(), 0xe1, exif(6)))
put("image_fuzz", "turned_png", with_chunk(png(3, 2, 8, 2, bytes(9)), b"eXIf", exif(8)[6:]))
put("image_fuzz", "cmyk", flat_jpeg(b"\1\2\3\4"))
put("image_fuzz", "ycck", with_segment(flat_jpeg(b"\1\2\3\4"), 0xee, b"Adobe\0\x64\0\0\0\0\2"))
put("image_fuzz", "rgb", flat_jpeg(b"RGB"))
put("image_fuzz", "trailing", jpeg() + b"ftypmp4\xff\xda\0\1")
put("image_fuzz", "webp", b"RIFF\x20\0\0\0WEBPVP8 ")

pictures, labels = idx([2, 3, 3], bytes(18)), idx([2], b"\0\1")
put("dataset_fuzz", "idx", b"\0" + part(pictures) + labels)
put("dataset_fuzz", "gzipped", b"\0" + part(gzip.compress(pictures, mtime=0)) + gzip.compress(labels, mtime=0))
put("dataset_fuzz", "colour", b"\0" + part(idx([1, 3, 2, 2], bytes(12))) + idx([1], b"\5"))
put("dataset_fuzz", "cifar10", b"\1" + b"\3" + bytes(3072))
put("dataset_fuzz", "numbers", b"\2a.png 0\nb c.png 2\n")
put("dataset_fuzz", "cifar100", b"\1" + bytes(3074))
put("dataset_fuzz", "pointer", b"\2version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
put("dataset_fuzz", "names", "\2a.png Hund\r\nb.png Kätzchen\r\n".encode())

put("choice_cache_fuzz", "two", b"""# twiddle convolution choices 3: plan, milliseconds, key
fft:8x8\t1.5\tbatch 8\tforward\tfp32\ta key
onednn:winograd\t0.25\tbatch 16\tbackward_weight\tfp32\tanother
""")

best = {"epoch": 1, "metric": "loss", "images": 10, "undefined": 1, "loss": 0.5}
put("run_folder_fuzz", "labels", b"\0" + json.dumps(best | {
    "top1": 0.5, "top5": 1, "outside": [0, 0, 1], "confusion": [[0, 0, 5], [2, 1, 3]],
    "mistakes": [{"image": 7, "actual": 2, "predicted": 1, "probability": 0.75}]}).encode())
put("run_folder_fuzz", "several", b"\1" + json.dumps(best | {
    "map": 0.5, "labels": [[3, 0.5], [0, None], [1, 1]],
    "worst": [{"image": 3, "loss": 2.5, "labels": [0, 2], "probabilities": [0.1, 0.9, 0]}]}).encode())
put("run_folder_fuzz", "images", b"\2" + json.dumps(best | {"psnr": 20.5, "restored": [{"image": 0, "psnr": 19.5}]}).encode())
put("run_folder_fuzz", "metrics", b"""\3{"kind": "step", "epoch": 1, "step": 1, "batch": 1, "loss": 2.5, "learning_rate": 0.1}
{"kind": "step", "epoch": 1, "step": 3, "loss": 1.5, "learning_rate": 0.1, "images_per_second": 500.5, "data_wait": 0.1}
{"kind": "epoch", "epoch": 1, "epochs": 2, "step": 3, "train_loss": 2, "train_top1": 0.5, "val_loss": 1.5, "val_top1": 0.5,
{"kind": "epoch", "epoch": 1, "step": 3, "val_loss": 1.5, "best": true, "data_wait_by_rank": [0.1, 0.2], "time": "2026-11-22T22:08:36Z"}
""")
put("run_folder_fuzz", "environment", b'\4{"config_file": "/home/me/net.yaml", "twiddle": "1.0"}')
