"""What the engine says where a GPU cannot be used as asked. Usage: check_faults.py ENGINE DEVICE LOGS.
The machine is made to look so for one process: devices hidden, code for this architecture ignored, a driver of before,
libraries covered (in a mount namespace, as root), memory taken (with torch). Prints rows of check_all.sh's table; exits 1
on a failure."""
import json, os, subprocess, sys, tempfile, time
from pathlib import Path

engine, device, logs = sys.argv[1], sys.argv[2], Path(sys.argv[3])
failed = False
small = ("bench", "--shape", "0.8b", "--device", device, "--steps", "1", "--warmup", "0", "--profile-steps", "0",
         "--budget", "512", "--optimizer", "bf16sr")


def row(name, good, text):
    global failed
    failed |= not good
    print(f"{'ok   ' if good else 'FAIL '} {name:<34} {text}", flush=True)


def answer(*call, before=(), **environment):
    done = subprocess.run([*before, engine, *call], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **environment}, stdin=subprocess.DEVNULL)
    with open(logs / "faults.log", "a") as log:
        log.write(f"{environment} {' '.join(call)}: {done.returncode}\n{done.stdout[-3000:]}{done.stderr}\n")
    lines = [line for line in (done.stdout + "\n" + done.stderr).split("\n") if line.startswith("{")]
    return done.returncode, json.loads(lines[-1]) if lines else {}


def refused(name, code, *call, says="", **how):
    status, told = answer(*call, **how)
    error = told.get("error", told if told.get("event") == "error" else {})
    words = f"{error.get('message', '')} {error.get('hint', '')}"
    row(name, status == 1 and error.get("code") == code and bool(error.get("hint")) and says in words, words[:170] or f"exit {status}")


refused("no GPU", "no_cuda", *small, CUDA_VISIBLE_DEVICES="")
status, told = answer("hello", CUDA_VISIBLE_DEVICES="")
devices = [d["name"] if isinstance(d, dict) and "name" in d else str(d) for d in told.get("devices", [])]
row("no GPU: the CPU stays", status == 0 and any(k["device"] == "cpu" for k in told.get("kernels", [])), f"{devices}"[:150])
refused("a GPU that is not there", "no_cuda", *(a if a != device else "cuda:7" for a in small), says="cuda:0")
refused("no code for the architecture", "unsupported_architecture", *small, CUDA_FORCE_PTX_JIT="1")

folder = Path(tempfile.mkdtemp())
(folder / "old.c").write_text("""
#include <string.h>
int cuInit(unsigned f) { return 0; }
int cuDriverGetVersion(int* v) { *v = 11040; return 0; }
int cuGetProcAddress(const char* s, void** f, int v, unsigned long long g) {
  *f = !strcmp(s, "cuInit") ? (void*)cuInit : !strcmp(s, "cuDriverGetVersion") ? (void*)cuDriverGetVersion : 0;
  return *f ? 0 : 500;
}
int cuGetProcAddress_v2(const char* s, void** f, int v, unsigned long long g, int* q) { return cuGetProcAddress(s, f, v, g); }
""")
built = subprocess.run(["gcc", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", folder / "old.c"]).returncode == 0
if built:
    refused("an old driver", "no_cuda", *small, LD_LIBRARY_PATH=str(folder))

libraries = [str(p) for top in ("/usr", "/opt") for p in Path(top).rglob("lib*.so*")
             if p.name.startswith(("libcublasLt.so", "libcupti.so", "libnvidia-ml.so", "libnccl.so"))]
cover = "for f in " + " ".join(libraries) + '; do mount --bind /dev/null "$f" || exit 99; done; exec "$@"'
hidden = ("unshare", "-m", "sh", "-c", cover, "sh")
if subprocess.run([*hidden, "true"], capture_output=True).returncode == 0:
    status, told = answer("hello", before=hidden)
    absent = [name for name, library in told.get("libraries", {}).items() if not library.get("found")]
    row("libraries missing: hello", status == 0 and {"cublasLt", "cupti", "nvml"} <= set(absent), f"absent: {absent}")
    refused("no cuBLASLt", "slow_kernel", *small, before=hidden)
    status, told = answer(*small, "--accept-slow", before=hidden)
    row("no cuBLASLt, --accept-slow", status == 0 and told.get("msPerStep", {}).get("median", 0) > 0,
        f"own products: {told.get('msPerStep', {}).get('median', 0):.0f} ms a step")
    process = subprocess.run([*hidden, engine, "monitor"], capture_output=True, text=True, timeout=20, stdin=subprocess.DEVNULL)
    told = json.loads((process.stdout.strip().split("\n") or ["{}"])[0] or "{}")
    row("no NVML: monitor", process.returncode == 0 and told.get("gpus") == [] and bool(told.get("reason")), str(told.get("reason")))
    status, told = answer(*("5" if a == "0" and small[i - 1] == "--profile-steps" else a for i, a in enumerate(small)),
                          "--profile", "cupti", "--accept-slow", before=hidden)
    row("no CUPTI: events instead", status == 0 and str(told.get("profileSource", "")).startswith("events"), str(told.get("profileSource")))
else:
    print("skip  libraries missing                  no mount namespace here")

refused("more than the GPU has", "out_of_memory", "bench", "--shape", "9b", "--device", device, "--optimizer", "master32",
        "--policy", "P0", "--budget", "32768", "--steps", "1", "--profile-steps", "0", says="GiB")
try:
    import torch
    free = torch.cuda.mem_get_info()[0]
    taken = torch.empty(free - 6 * 2**30, dtype=torch.uint8, device="cuda")
    refused("a GPU that others fill", "out_of_memory", "bench", "--shape", "0.8b", "--device", device, "--optimizer", "bf16sr",
            "--policy", "P0", "--steps", "1", "--profile-steps", "0", says="free")
    del taken
except ImportError:
    print("skip  a GPU that others fill              no torch here")
sys.exit(failed)
