"""NVTX's ranges without a viewer: two steps recorded by nvtx_recorder. Usage: check_nvtx.py ENGINE RECORDER DEVICE LOGS.
Layers in order and never left open, each operation inside one, by the profile's names. Prints rows of check_all.sh's
table; exits 1 on a failure."""
import json, os, re, subprocess, sys
from collections import Counter
from pathlib import Path

engine, recorder, device, logs = sys.argv[1], Path(sys.argv[2]).resolve(), sys.argv[3], Path(sys.argv[4])
failed = False


def record(name, *flags):
    """Of each range, in order of its end: its depth and the names from the outermost on."""
    log = logs / f"nvtx-{name}.txt"
    done = subprocess.run([engine, "bench", "--shape", "0.8b", "--device", device, "--budget", "512", "--steps", "2", "--warmup",
                           "0", "--optimizer", "bf16sr", "--policy", "P1", *flags], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "NVTX_INJECTION64_PATH": str(recorder), "NVTX_RECORD": str(log)})
    (logs / f"nvtx-{name}.log").write_text(done.stdout + done.stderr)
    report = json.loads(done.stdout.strip().split("\n")[-1])
    open_ranges, ranges, balanced = {}, [], True
    for line in log.read_text().splitlines():
        sign, thread, *words = line.split(" ", 2)
        stack = open_ranges.setdefault(thread, [])
        if sign == "+":
            stack.append(words[0])
        elif stack:
            ranges.append(tuple(stack))
            stack.pop()
        else:
            balanced = False
    return report, ranges, balanced and not any(open_ranges.values())


for name, flags in (("eager", ("--eager", "--profile-steps", "2")), ("graphs", ("--profile-steps", "0"))):
    try:
        report, ranges, balanced = record(name, *flags)
        phase = re.compile(r"(forward|recompute|backward|optimizer|host)( \d+)?")
        layers = Counter(r[0] for r in ranges if len(r) == 1 and phase.fullmatch(r[0]))
        operations = Counter(r[1] for r in ranges if len(r) == 2)
        alone = Counter(r[0] for r in ranges if len(r) == 1) - layers  # before the first step
        forward = [n for n in dict.fromkeys(r[0] for r in ranges) if n.startswith("forward ")]
        whole = forward == [f"forward {n}" for n in range(24)] and all(layers[f"backward {n}"] for n in range(24))
        missing = {o["op"] for o in report["ops"]} - set(operations) if name == "eager" else set()  # else the host's rows
        good = balanced and whole and max(map(len, ranges)) == 2 and len(operations) > 15 and not missing
        text = (f"{sum(operations.values())} of {len(operations)} operations in {sum(layers.values())} of "
                f"{sorted({phase.fullmatch(n)[1] for n in layers})}, layers 0 to {len(forward) - 1}; outside: {dict(alone)}"
                + ("" if balanced else "; not balanced") + (f"; without a range: {missing}" if missing else ""))
    except Exception as e:
        good, text = False, f"{type(e).__name__}: {e}"
    failed |= not good
    print(f"{'ok   ' if good else 'FAIL '} {'NVTX ranges, ' + name:<34} {text[:220]}", flush=True)
sys.exit(failed)
