"""What the engine says of a GPU without training on it. Usage: check_machine.py ENGINE DEVICE LOGS.
Prints rows of check_all.sh's table; exits 1 on a failure."""
import json, os, subprocess, sys, time
from pathlib import Path

engine, device, logs = sys.argv[1], sys.argv[2], Path(sys.argv[3])
index = int(device.removeprefix("cuda:"))
failed = False


def row(name, good, text):
    global failed
    failed |= not good
    print(f"{'ok   ' if good else 'FAIL '} {name:<34} {text}", flush=True)


def answer(*call):
    done = subprocess.run([engine, *call], capture_output=True, text=True, timeout=120)
    with open(logs / "machine.log", "a") as log:
        log.write(f"{' '.join(call)}\n{done.stdout}{done.stderr}\n")
    return json.loads(done.stdout.strip().split("\n")[-1])


hello = answer("hello")
gpu = next((g for g in hello["gpus"] if g["index"] == index), {})
mine = [k for k in hello["kernels"] if k["device"] == device]
tiers = {t: sum(k["tier"] == t for k in mine) for t in sorted({k["tier"] for k in mine})}
row("hello: the GPU", all(gpu.get(k) for k in ("name", "driver", "cudaDriver", "computeCapability", "memoryBytes")),
    f"{gpu.get('name')}, {gpu.get('computeCapability')}, driver {gpu.get('driver')}, CUDA {gpu.get('cudaDriver')}, "
    f"PCIe {gpu.get('pcieGeneration')}x{gpu.get('pcieWidth')} of {gpu.get('pcieMaxGeneration')}x{gpu.get('pcieMaxWidth')}, "
    f"NVLinks {gpu.get('nvlinks')} x {gpu.get('nvlinkBytesPerSecond', 0) / 1e9:.0f} GB/s")
row("hello: its kernels", bool(mine) and not any(k["slow"] for k in mine), f"{len(mine)}: {tiers}")

test = answer("verify", "--numerics", "--roof", "--device", device)
roof = test.get("roof", {})
row("self-test in the published sizes", test.get("ok") is True, test.get("numerics", {}).get("message", str(test.get("error"))))
row("roof", roof.get("flopsPerSecond", 0) > 1e13 and roof.get("bytesPerSecond", 0) > 1e11,
    f"{roof.get('flopsPerSecond', 0) / 1e12:.0f} TFLOP/s, {roof.get('bytesPerSecond', 0) / 1e12:.2f} TB/s")


def nanoseconds_on_cpu(pid):
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks)


monitor = subprocess.Popen([engine, "monitor"], stdin=subprocess.PIPE, stdout=open(logs / "monitor.jsonl", "w"))
time.sleep(2)
begin, spent = time.monotonic(), nanoseconds_on_cpu(monitor.pid)
time.sleep(8)
seconds, spent = time.monotonic() - begin, nanoseconds_on_cpu(monitor.pid) - spent
monitor.stdin.close()
ended = monitor.wait(5) == 0
events = [json.loads(line) for line in open(logs / "monitor.jsonl")]
times = [e["atMs"] for e in events]
gaps = sorted(b - a for a, b in zip(times, times[1:]))
last = next((g for g in events[-1]["gpus"] if g["index"] == index), {})
row("telemetry ten times a second", ended and len(events) >= 90 and gaps[len(gaps) // 2] <= 110,
    f"{len(events)} events, gaps {gaps[0]} to {gaps[-1]} ms, {spent / 1e7 / seconds:.2f} % of a core")
row("telemetry under 0.5 % of a core", spent / 1e7 / seconds < 0.5, ", ".join(f"{k} {v}" for k, v in last.items()))
sys.exit(failed)
