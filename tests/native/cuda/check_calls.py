"""Calls that cannot work, or are stopped in between. Usage: check_calls.py ENGINE DEVICE MODEL_FOLDER LOGS (DEVICE cpu too).
Each ends within a minute with status 1 or 2, a code, words that name what is wrong, and a way out; what was saved before is
whole. Prints rows of check_all.sh's table; exits 1 on a failure."""
import filecmp, json, os, random, shutil, signal, struct, subprocess, sys, tempfile, time
from pathlib import Path
from cache_files import write_cache, write_plan

engine, device, model, logs = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
work = Path(tempfile.mkdtemp())
failed = False
draw = random.Random(5)
lengths = [draw.choice([5, 64, 130]) for _ in range(24)]
vocabulary = json.loads((model / "config.json").read_text())["vocab_size"]
write_cache(work / "cache", [[draw.randrange(vocabulary) for _ in range(n)] for n in lengths])
write_plan(work / "plan.safetensors", lengths, [3] * 8)
bench = ("bench", "--shape", "tiny" if device == "cpu" else "0.8b", "--device", device, "--steps", "1", "--warmup", "0",
         "--profile-steps", "0", "--optimizer", "master32" if device == "cpu" else "bf16sr")


def row(name, good, text):
    global failed
    failed |= not good
    print(f"{'ok   ' if good else 'FAIL '} {name:<34} {' '.join(str(text).replace(str(work) + '/', '').split())[:200]}", flush=True)


def recipe(name, **more):
    path = work / f"{name}.json"
    path.write_text(json.dumps({"steps": 40, "device": device, "seed": 3, "packing": {"budget": 512},
                                "optimizer": {"mode": "master32", "lr": 1e-3}, "schedule": {"kind": "constant", "warmupSteps": 0},
                                "checkpoint": {"everySteps": 0, "keep": 2}, **more}))
    return path


def training(out, recipe_path, folder=model, cache=None, *more):
    return ["train", "--recipe", recipe_path, "--cache", cache or work / "cache", "--plan", work / "plan.safetensors", "--model",
            folder, "--out", work / out, *more]


def answer(*call, given="", **environment):
    begin = time.monotonic()
    try:
        done = subprocess.run([engine, *map(str, call)], input=given, capture_output=True, text=True, timeout=60,
                              env={**os.environ, **environment})
    except subprocess.TimeoutExpired:
        return None, {"message": "still running after a minute"}, []
    with open(logs / "calls.log", "a") as log:
        log.write(f"{time.monotonic() - begin:.1f} s, {done.returncode}: {' '.join(map(str, call))}\n{done.stdout[-2000:]}{done.stderr}\n")
    lines = [json.loads(line) for line in (done.stdout + "\n" + done.stderr).splitlines() if line.startswith("{")]
    error = next((line.get("error", line if line.get("event") == "error" else None) for line in lines[::-1]
                  if "error" in line or line.get("event") == "error"), None)
    return done.returncode, error or {"message": done.stderr.strip()}, lines


def refused(name, *call, code=None, says=(), given="", **environment):
    """code None: the call itself is wrong, and the words say how."""
    status, error, _ = answer(*call, given=given, **environment)
    words = f"{error.get('code', '')}: {error.get('message', '')} {error.get('hint', '')}"
    good = status in (1, 2) and error.get("hint") and all(s in words for s in says) and (code is None or error.get("code") == code)
    row(name, good, f"exit {status}, {words}")


def changed(name, file, change):
    folder = work / name
    shutil.copytree(model, folder)
    change(folder / file)
    return folder


def tensors(path, change):
    """Rewrites a file's header, or its bytes, in place."""
    raw = bytearray(path.read_bytes())
    size = struct.unpack("<Q", raw[:8])[0]
    header = json.loads(raw[8:8 + size])
    raw = change(header, raw, 8 + size) or raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(raw[8 + size:]))


other = "cpu:1" if device == "cpu" else "cuda:99"
for name in (other, "gpu", "cuda:", "cuda:-1", "cuda:0x"):
    refused(f"device {name}", *(name if a == device else a for a in bench), says=(name.split(":")[0],))
refused("train, device of the recipe", *training("x", recipe("elsewhere", device=other)), says=(other,))
refused("--lengths a folder", *bench, "--lengths", model, says=("regular file",))
(work / "words.txt").write_text("12\n7 seven\n9\n")
refused("--lengths with a word", *bench, "--lengths", work / "words.txt", says=("seven",))
(work / "none.txt").write_text("")
refused("--lengths empty", *bench, "--lengths", work / "none.txt")
refused("--lengths not there", *bench, "--lengths", work / "absent.txt", says=("absent.txt",))
refused("--policy unknown", *bench, "--policy", "P7", says=("P7",))
refused("verify --policy unknown", "verify", "--fixture", model, "--device", device, "--policy", "P7", says=("P7",))
refused("recompute unknown", *training("x", recipe("policy", recompute="P7")), says=("P7",))
refused("optimizer unknown", *training("x", recipe("mode", optimizer={"mode": "lion", "lr": 1e-3})), says=("lion",))
refused("steps below one", *bench, "--steps", "0", says=("above 0",))
refused("a budget of nothing", *bench, "--budget", "0", says=("above 0",))
refused("a budget in words", *bench, "--budget", "many", says=("many",))
refused("--supervised past one", *bench, "--supervised", "1.5")
refused("verify, no fixture there", "verify", "--fixture", work, "--device", device)
refused("generate, id past the vocabulary", "generate", "--model", model, given=json.dumps({"ids": [1, vocabulary]}), says=(str(vocabulary),))
refused("generate, no ids", "generate", "--model", model, given='{"ids":[]}')
refused("generate, not JSON", "generate", "--model", model, given="hello")

# A budget that is no multiple of 64 is filled up.
if device != "cpu":
    status, error, lines = answer(*bench, "--budget", "8191")
    row("budget 8,191", status == 0 and lines[-1]["positionsPerStep"] == 8192, lines[-1].get("msPerStep") if lines else error)

refused("model: a shard cut off", *training("x", recipe("cut"), changed("cut", "model.safetensors", lambda p: p.write_bytes(
    p.read_bytes()[:-1000]))), says=("model.safetensors",))
refused("model: a tensor of another shape", *training("x", recipe("shape"), changed("shape", "model.safetensors", lambda p: tensors(
    p, lambda h, raw, at: h["model.norm.weight"].update(shape=[1, *h["model.norm.weight"]["shape"]])))), says=("model.norm.weight",))
refused("model: a tensor missing", *training("x", recipe("missing"), changed("missing", "model.safetensors", lambda p: tensors(
    p, lambda h, raw, at: h.pop("model.norm.weight") and None))), says=("model.norm.weight",))
(work / "index").mkdir()
shutil.copytree(model, work / "sharded")
(work / "sharded" / "model.safetensors").unlink()
(work / "sharded" / "model.safetensors.index.json").write_text(json.dumps({"weight_map": {"model.norm.weight": "model-9.safetensors"}}))
refused("model: a shard not there", *training("x", recipe("sharded"), work / "sharded"), says=("model-9.safetensors",))
if device != "cpu":
    odd = changed("odd", "config.json", lambda p: p.write_text(json.dumps({**json.loads(p.read_text()), "head_dim": 96})))
    refused("model: odd heads", *training("x", recipe("odd"), odd))
write_cache(work / "empty", [])
refused("cache: no examples", *training("x", recipe("empty"), model, work / "empty"))
(work / "nothing").mkdir()
refused("cache: an empty folder", *training("x", recipe("nothing"), model, work / "nothing"), says=("nothing",))
refused("recipe: not JSON", *training("x", model / "model.safetensors"))
refused("out: a file", *training("cut/config.json", recipe("file")), says=("config.json",))
refused("resume: no checkpoint", *training("x", recipe("resume"), model, None, "--resume", model))

small = work / "small"
small.mkdir()


def start(out, path, *more):
    return subprocess.Popen([engine, *map(str, training(out, path, model, None, *more))], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


# A full disk at the end of a run: it waits with what it has learnt, says so, and is ended by a stop; nothing half is left.
if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], capture_output=True).returncode == 0:
    full = start("small/out", recipe("full", steps=2))
    said = next((e["message"] for e in map(json.loads, full.stdout) if e["event"] == "paused"), "never paused")
    rest = full.communicate('{"command":"stop"}\n', timeout=30)[0]
    error = next((e for e in map(json.loads, rest.splitlines()) if e["event"] == "error"), {})
    row("a full disk", full.returncode == 1 and error.get("code") == "disk_full" and "waits" in said, f"exit {full.returncode}, {error.get('code')}: {said}")
    row("a full disk: nothing half", not list(small.glob("out/*")), [p.name for p in small.glob("out/*")])
    subprocess.run(["umount", small])
else:
    print("skip  a full disk                        no mount here")


def last(out):
    return sorted((work / out).glob("checkpoint-*"))[-1]


def same(a, b):
    names = [p.relative_to(a) for p in a.glob("**/*.safetensors")]
    return bool(names) and all(filecmp.cmp(a / n, b / n, shallow=False) for n in names)


# Killed in a step, after a checkpoint: going on from it ends where the run that lived ends; two at once do not mind each other.
saving = recipe("saving", checkpoint={"everySteps": 8, "keep": 9})
pair = [start("whole", saving), start("beside", saving)]
for process in pair:
    process.communicate()
row("two processes on one device", all(p.returncode == 0 for p in pair) and same(last("whole"), last("beside")), "the same bytes")
killed = start("killed", saving)
steps = 0
for line in killed.stdout:
    steps += '"event":"step"' in line.replace(" ", "")
    if steps == 19:
        break
killed.send_signal(signal.SIGKILL)
killed.wait()
kept = last("killed") if list((work / "killed").glob("checkpoint-*")) else work
status, error, _ = answer(*training("killed", saving, model, None, "--resume", kept))
row("killed in a step, resumed", status == 0 and same(last("whole"), last("killed")), f"from {kept.name}, {error.get('message') or 'the same bytes'}")
for name, number in (("SIGTERM", signal.SIGTERM), ("the parent gone", None)):
    ended = start(f"ended-{name[:3]}", saving, *(["--attached"] if number is None else []))
    for line in ended.stdout:
        if '"step"' in line:
            break
    ended.stdin.close() if number is None else ended.send_signal(number)
    begin = time.monotonic()
    try:
        ended.stdout.read()
        status = ended.wait(30)
    except subprocess.TimeoutExpired:
        ended.kill()
        status = "still running"
    row(f"{name}: ends", status != "still running", f"exit {status} after {time.monotonic() - begin:.1f} s")
if device != "cpu":
    try:
        import torch
        for mebibytes in (1500, 100):  # less than the run; less than a context
            taken = torch.empty(torch.cuda.mem_get_info()[0] - mebibytes * 2**20, dtype=torch.uint8, device="cuda")
            refused(f"{mebibytes} MiB free on the GPU", *bench, says=("memory",))
            del taken
            torch.cuda.empty_cache()
    except ImportError:
        print("skip  a GPU that is nearly full          no torch here")
monitor = subprocess.Popen([engine, "monitor"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
monitor.stdout.readline()
monitor.stdout.close()
time.sleep(0.5)
monitor.stdin.close()
row("monitor: nobody reads", monitor.wait(10) is not None, f"exit {monitor.returncode}")
shutil.rmtree(work, ignore_errors=True)
sys.exit(failed)
