"""Packs at their extremes, trained on a GPU and on the CPU. Usage: check_packs.py ENGINE DEVICE MODEL_FOLDER LOGS.
One pack a step in bins of 8,192; losses agree with the CPU's in fp32, and the weights of two runs, of another
recomputation and without graphs are the same bytes. Prints rows of check_all.sh's table; exits 1 on a failure."""
import hashlib, json, random, shutil, subprocess, sys, tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from cache_files import write_cache, write_plan

engine, device, model, logs = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
BUDGET = 8192
draw = random.Random(11)


def filled(lengths_of):
    """Lengths by turns until the next one no longer fits."""
    lengths, left = [], BUDGET
    while left > 0:
        lengths.append(min(left, lengths_of()))
        left -= lengths[-1]
    return lengths


packs = {
    "8,190 examples of one token and one of two": [1] * 4000 + [2] + [1] * 4190,
    "one of 8,191 and one of one": [8191, 1],
    "one of 8,192": [8192],
    "4,096 of two": [2] * 4096,
    "1 to 300 by chance": filled(lambda: draw.randint(1, 300)),
    "1 to 8,192 by chance": filled(lambda: int(8192 ** draw.random())),
    "63, 64, 65 in turns": filled(lambda: draw.choice([63, 64, 65])),
    "one of three tokens alone": [3],
    "half a bin": [1025, 2047, 777],
}
work = Path(tempfile.mkdtemp())
vocabulary = json.loads((model / "config.json").read_text())["vocab_size"]
examples = [[draw.randrange(vocabulary) for _ in range(n)] for lengths in packs.values() for n in lengths]
write_cache(work / "cache", examples)
write_plan(work / "plan.safetensors", [len(e) for e in examples], [len(lengths) for lengths in packs.values()])


def train(out, where, precision, recompute="auto"):
    recipe = {"steps": len(packs), "device": where, "seed": 3, "packing": {"budget": BUDGET}, "precision": precision,
              "recompute": recompute, "optimizer": {"mode": "master32", "lr": 1e-4}, "acceptSlow": False,
              "schedule": {"kind": "constant", "warmupSteps": 0}}
    (work / f"{out}.json").write_text(json.dumps(recipe))
    call = [engine, "train", "--recipe", work / f"{out}.json", "--cache", work / "cache", "--plan",
            work / "plan.safetensors", "--model", model, "--out", work / out, "--device", where]
    done = subprocess.run([str(c) for c in call], capture_output=True, text=True, timeout=240, stdin=subprocess.DEVNULL)
    (logs / f"packs-{out}.log").write_text(done.stdout + done.stderr)
    events = [json.loads(line) for line in done.stdout.splitlines()]
    weights = sorted((work / out).glob("checkpoint-*/**/*.safetensors")) if (work / out).exists() else []
    hashes = [hashlib.sha256(path.read_bytes()).hexdigest() for path in weights]
    return [e["loss"] for e in events if e["event"] == "step"], hashes, done.stderr[-200:]


with ThreadPoolExecutor() as pool:
    on_cpu = pool.submit(train, "cpu", "cpu", "fp32")
    first, again, full = [train(name, device, "auto", policy)
                          for name, policy in (("first", "P0"), ("again", "P0"), ("full", "full"))]
    expected = on_cpu.result()
failed = False


def row(name, good, text):
    global failed
    failed |= not good
    print(f"{'ok   ' if good else 'FAIL '} {name:<34} {text}", flush=True)


whole = len(first[0]) == len(expected[0]) == len(packs)
row("packs: all trained", whole, f"{len(first[0])} of {len(packs)} on {device}, {len(expected[0])} on the CPU {'' if whole else first[2] + expected[2]}")
for name, got, want in zip(packs, first[0], expected[0]):
    # A single token's loss differs by the rounding of its logits, the mean of many by less.
    tokens = sum(n - 1 for n in packs[name])
    row("pack: " + name, abs(got - want) < 0.1 / tokens ** 0.5 + 1e-3, f"loss {got:.5f}, on the CPU {want:.5f}")
row("packs: two runs, policy full", bool(first[1]) and first[1] == again[1] == full[1], f"{len(first[1])} files, the same bytes")
shutil.rmtree(work, ignore_errors=True)
sys.exit(failed)
