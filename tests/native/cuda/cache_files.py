"""Caches and plans as the engine reads them, for the checks that train."""
import json, struct
from pathlib import Path


def safetensors(path, tensors):
    header, blobs, at = {}, [], 0
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + len(raw)]}
        at += len(raw)
        blobs.append(raw)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(blobs))


def i32(values):
    return ("I32", [len(values)], struct.pack(f"<{len(values)}i", *values))


def i64(values):
    return ("I64", [len(values)], struct.pack(f"<{len(values)}q", *values))


def write_cache(folder, examples):
    """examples: lists of token ids; every token but an example's first is learned."""
    folder.mkdir()
    supervised = bytes(b for example in examples for b in [0] + [1] * (len(example) - 1))
    offsets = [0]
    for example in examples:
        offsets.append(offsets[-1] + len(example))
    safetensors(folder / "shard-00000.safetensors",
                {"input_ids": i32([t for example in examples for t in example]),
                 "supervised": ("U8", [len(supervised)], supervised), "offsets": i64(offsets)})


def write_plan(path, lengths, bins):
    """bins: how many examples each bin takes, in their order, whole."""
    offsets = [0]
    for count in bins:
        offsets.append(offsets[-1] + count)
    safetensors(path, {"example": i32(list(range(len(lengths)))), "start": i64([0] * len(lengths)),
                       "length": i32(lengths), "bin_offsets": i64(offsets)})
