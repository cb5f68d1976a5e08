#!/usr/bin/env python3
"""Makes the IDX files of this folder, and one picture, from optdigits' CSV (64 pixels 0..16, then the label, a row a digit).

usage: convert.py digits.csv.gz OUTPUT_FOLDER     (Python's standard library only; the same bytes on every run)
"""
import csv
import gzip
import pathlib
import struct
import sys
import zlib

TEST_ROWS = 297  # the last ones; the first 1,500 are for training


def write_idx(path, magic, sizes, values):
    header = struct.pack(f">{1 + len(sizes)}I", magic, *sizes)
    with open(path, "wb") as file:
        with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=file, mtime=0) as packed:
            packed.write(header + bytes(values))


def write_png(path, width, height, values):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = b"".join(b"\0" + bytes(values[y * width : (y + 1) * width]) for y in range(height))  # 0: no filter
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)  # 8 bits, grey
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with gzip.open(sys.argv[1], "rt", newline="") as file:
        rows = [[int(field) for field in row] for row in csv.reader(file)]
    if not all(len(row) == 65 and max(row[:64]) <= 16 and row[64] <= 9 for row in rows):
        sys.exit(f"{sys.argv[1]}: expected rows of 64 pixels from 0 to 16 and a label from 0 to 9")
    folder = pathlib.Path(sys.argv[2])
    for name, part in (("train", rows[:-TEST_ROWS]), ("test", rows[-TEST_ROWS:])):
        pixels = [(value * 255 + 8) // 16 for row in part for value in row[:64]]
        write_idx(folder / f"{name}-images.idx.gz", 0x803, (len(part), 8, 8), pixels)
        write_idx(folder / f"{name}-labels.idx.gz", 0x801, (len(part),), [row[64] for row in part])
        if name == "test":
            write_png(folder / "picture.png", 8, 8, pixels[:64])


main()
