"""Real runs of `tessera-engine train` on a GPU, from a fixture's model and a cache made here. Usage:
check_run.py ENGINE DEVICE MODEL_FOLDER LOGS. Prints rows of check_all.sh's table; exits 1 on a failure."""
import filecmp, json, os, random, shutil, struct, subprocess, sys, tempfile
from pathlib import Path
from cache_files import i32, i64, safetensors, write_cache, write_plan
from engine_run import EngineRun

engine, device, model, logs = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
failed = False
STEPS, EXAMPLES = 12, 24


def row(name, good, text):
    global failed
    failed |= not good
    print(f"{'ok   ' if good else 'FAIL '} {name:<34} {text}", flush=True)


work = Path(tempfile.mkdtemp())
config = json.loads((model / "config.json").read_text())
draw = random.Random(7)
lengths = [draw.choice([1, 5, 63, 64, 65, 129, 200]) + 2 for _ in range(EXAMPLES)]
ids = [[draw.randrange(config["vocab_size"]) for _ in range(n)] for n in lengths]
write_cache(work / "cache", ids)
write_plan(work / "plan.safetensors", lengths, [2] * (EXAMPLES // 2))


class Run(EngineRun):
    def __init__(self, out, recipe, resume=None, folder=model):
        (work / f"{out}.json").write_text(json.dumps(recipe))
        call = [engine, "train", "--recipe", work / f"{out}.json", "--cache", work / "cache", "--plan",
                work / "plan.safetensors", "--model", folder, "--out", work / out, "--device", device]
        if resume:
            call += ["--resume", resume]
        super().__init__(call, logs / f"train-{out}.log", 120)

    def losses(self):
        return {e["step"]: e["loss"] for e in self.events if e["event"] == "step"}


def recipe(mode, **more):
    return {"steps": STEPS, "device": device, "seed": 3, "packing": {"budget": 512}, "gradAccumulation": 2,
            "optimizer": {"mode": mode, "lr": 2e-3, "weightDecay": 0.1}, "acceptSlow": False,
            "schedule": {"kind": "cosine", "warmupSteps": 2}, "checkpoint": {"everySteps": 4, "keep": 9}, **more}


def answer(*call):
    """The engine's one JSON value."""
    done = subprocess.run([str(c) for c in (engine, *call)], capture_output=True, text=True, timeout=120)
    with open(logs / "answers.log", "a") as log:
        log.write(f"{' '.join(map(str, call))}\n{done.stdout}{done.stderr}\n")
    return json.loads(done.stdout.strip().split("\n")[-1])


def checkpoints(out):
    return sorted((p for p in (work / out).iterdir() if p.is_dir()), key=lambda p: int("".join(filter(str.isdigit, p.name))))


def same_files(a, b):
    names = sorted(p.name for p in a.iterdir() if p.suffix == ".safetensors")
    different = [n for n in names if not filecmp.cmp(a / n, b / n, shallow=False)]
    return bool(names) and not different, f"{len(names)} files" + (f", different: {different}" if different else "")


for mode in ("master32", "bf16sr"):
    whole = Run(f"whole-{mode}", recipe(mode))
    whole.until()
    losses = whole.losses()
    fell = len(losses) == STEPS and losses[STEPS] < losses[1]
    row(f"train, {mode}", fell and whole.process.returncode == 0,
        f"{len(losses)} steps, loss {losses.get(1, 0):.4f} to {losses.get(STEPS, 0):.4f}")
    halves = Run(f"halves-{mode}", recipe(mode))
    halves.until("step")
    halves.command("pause")
    paused = halves.until("paused")
    halves.command("checkpoint")
    halves.until("checkpoint")
    halves.command("resume")
    resumed = halves.until("resumed")
    halves.command("stop")
    halves.until()
    done = halves.events[-1]
    row(f"pause, checkpoint, stop, {mode}", bool(paused and resumed) and done["event"] == "done" and done["reason"] == "stopped",
        f"paused after step {paused['step'] if paused else '?'}, stopped after {done.get('step')}")
    rest = Run(f"halves-{mode}", recipe(mode), resume=checkpoints(f"halves-{mode}")[-1])
    rest.until()
    good, text = same_files(checkpoints(f"whole-{mode}")[-1], checkpoints(f"halves-{mode}")[-1])
    row(f"resumed = never stopped, {mode}", good, text)

# What is asked before a run: its memory and steps, what its steps cost, and that packed examples are apart.
(work / "asked.json").write_text(json.dumps(recipe("bf16sr")))
asked = ("train", "--recipe", work / "asked.json", "--cache", work / "cache", "--model", model, "--out", work / "asked",
         "--device", device, "--plan")
told = answer(*asked, work / "plan.safetensors", "--forecast")
row("forecast", told.get("steps") == STEPS and told["memory"]["total"] > 2**29,
    f"{told.get('steps')} steps, {told.get('memory', {}).get('total', 0) / 2**20:.0f} MiB, {told.get('recompute')} {told.get('error', '')}")
told = answer(*asked, work / "plan.safetensors", "--measure", "2", "--passes", "2")
times = [s["milliseconds"] for s in told.get("steps", [])]
row("steps timed for a forecast", len(times) > 1 and min(times) > 0 and told["fixedShapes"] and not (work / "asked").exists(),
    f"{len(times)} steps, {min(times, default=0):.2f} to {max(times, default=0):.2f} ms {told.get('error', '')}")
proof = ("verify", "--isolation", "--numerics", "--model", model, "--cache", work / "cache", "--plan",
         work / "plan.safetensors", "--device", device)
# Twelve examples that share few tokens: what one adds to an embedding row must not regroup what others add.
few = [[draw.choice(range(8)) for _ in range(n)] for n in lengths[:12]]
flat = [t for example in few for t in example]
(work / "few").mkdir()
safetensors(work / "few" / "shard-00000.safetensors",
            {"input_ids": i32(flat), "supervised": ("U8", [len(flat)], b"\1" * len(flat)),
             "offsets": i64([sum(lengths[:n]) for n in range(13)])})
safetensors(work / "few.safetensors",
            {"example": i32(list(range(12))), "start": i64([0] * 12), "length": i32(lengths[:12]),
             "bin_offsets": i64([0, 12])})
few_proof = [work / "few" if c == work / "cache" else work / "few.safetensors" if c == work / "plan.safetensors" else c
             for c in proof if c != "--numerics"]
for precision in ("bf16", "fp32"):
    told = answer(*few_proof, "--precision", precision)
    row(f"isolation with shared tokens, {precision}", told.get("ok") is True,
        told["isolation"]["message"] if "isolation" in told else str(told.get("error")))
told = answer(*proof, "--precision", "bf16")
row("isolation and numerics", told.get("ok") is True, f"{told['isolation']['message']}; {told['numerics']['message']}"
    if "isolation" in told else str(told.get("error")))
told = answer(*proof, "--precision", "bf16", "--leak")
row("a lost boundary is found", told.get("isolation", {}).get("ok") is False and told["numerics"]["ok"],
    told.get("isolation", {}).get("message", str(told.get("error"))))
told = answer(*proof, "--precision", "fp32")
row("isolation and numerics, fp32", told.get("ok") is True, f"{told['isolation']['message']}; {told['numerics']['message']}"
    if "isolation" in told else str(told.get("error")))

# Plans that were damaged are refused by name before anything is launched.
for what, damage in (("falling boundaries", {"bin_offsets": i64([0, 4, 2, *range(6, EXAMPLES + 1, 2)])}),
                     ("an example that is not there", {"example": i32([EXAMPLES, *range(1, EXAMPLES)])}),
                     ("a piece past its example", {"length": i32([lengths[0] + 1, *lengths[1:]])}),
                     ("a bin past the budget", {"bin_offsets": i64([0, EXAMPLES])})):
    safetensors(work / "damaged.safetensors",
                {"example": i32(list(range(EXAMPLES))), "start": i64([0] * EXAMPLES), "length": i32(lengths),
                 "bin_offsets": i64(list(range(0, EXAMPLES + 1, 2))), **damage})
    told = answer(*asked, work / "damaged.safetensors", "--measure", "1")
    row(f"plan with {what}", told.get("error", {}).get("code") == "invalid_plan",
        told.get("error", {}).get("message", "not refused").replace(str(work) + "/", "")[:120])

# Gradients in bf16 learn as gradients in fp32 do: the losses differ no more than by a few times what stochastic
# rounding by itself makes of two seeds.
def curve(gradients, seed):
    run = Run(f"gradients-{gradients}-{seed}",
              recipe("bf16sr", gradAccumulation=1, steps=3 * STEPS, seed=seed,
                     optimizer={"mode": "bf16sr", "lr": 2e-3, "weightDecay": 0.1, "gradients": gradients}))
    run.until()
    told = next((e.get("numbers", {}).get("optimizer.gradients") for e in run.events if e["event"] == "progress"), None)
    return list(run.losses().values()), told


def apart(a, b):
    return sum(abs(x - y) for x, y in zip(a, b)) / max(1, len(a))


wide, other, narrow = curve("fp32", 3), curve("fp32", 4), curve("bf16", 3)
noise, difference = apart(wide[0], other[0]), apart(narrow[0], wide[0])
row("gradients bf16 = fp32 within noise",
    len(narrow[0]) == 3 * STEPS and (wide[1], narrow[1]) == ("fp32", "bf16") and 0 < difference < 3 * noise,
    f"{len(narrow[0])} steps, loss {narrow[0][0]:.4f} to {narrow[0][-1]:.4f} and {wide[0][-1]:.4f}: {difference:.5f} apart, "
    f"two seeds {noise:.5f}")

# A weight that is NaN from the start: nothing changes, the layer is named.
broken = work / "broken"
shutil.copytree(model, broken)
raw = bytearray((broken / "model.safetensors").read_bytes())
size = struct.unpack("<Q", raw[:8])[0]
info = json.loads(raw[8:8 + size])["model.layers.1.mlp.down_proj.weight"]
at = 8 + size + info["data_offsets"][0]
raw[at:at + 2] = b"\xc0\x7f" if info["dtype"] == "BF16" else raw[at:at + 2]
(broken / "model.safetensors").write_bytes(raw)
nan = Run("nan", recipe("master32"), folder=broken)
nan.until()
error = next((e for e in nan.events if e["event"] == "error"), {"message": "no error", "code": ""})
row("NaN in a weight: refused, layer named", error["code"] == "non_finite" and "layer 1" in error["message"],
    error["message"][:110])
kept = [p.name for p in (work / "nan").glob("**/*.safetensors")] if (work / "nan").exists() else []
row("weights that are NaN are not saved", not kept, f"{kept}")

# A rate that no model survives: the step that overflows is refused, the state before it is kept.
wild = recipe("master32")
wild["optimizer"]["lr"] = 1e30
wild["schedule"] = {"kind": "constant", "warmupSteps": 0}
wild["checkpoint"] = {"everySteps": 0, "keep": 9}
lost = Run("lost", wild)
lost.until()
error = next((e for e in lost.events if e["event"] == "error"), {"message": "no error", "code": ""})
kept = [p.name for p in checkpoints("lost")] if (work / "lost").exists() else []
row("an overflow: refused, state before kept", error["code"] == "non_finite" and bool(kept), f"{error['message'][:110]} {kept}")

# What was saved, loaded by transformers on this GPU.
try:
    import torch
    from transformers import AutoModelForCausalLM
    saved = checkpoints("whole-master32")[-1]
    folder = saved if (saved / "config.json").exists() else saved / "model"
    net = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).to("cuda").eval()
    total = count = 0.0
    with torch.no_grad():
        for example in ids:
            tokens = torch.tensor([example], device="cuda")
            nll = torch.nn.functional.cross_entropy(net(tokens).logits[0, :-1].float(), tokens[0, 1:], reduction="sum")
            total, count = total + nll.item(), count + len(example) - 1
    again = Run("again", recipe("master32", steps=1, gradAccumulation=EXAMPLES // 2), folder=folder)
    again.until()
    ours, theirs = again.losses()[1], total / count
    row("loaded by transformers", abs(ours - theirs) < 5e-3, f"loss {theirs:.5f}, the engine's {ours:.5f}")
except Exception as problem:  # absent or too old for this architecture: said, not hidden
    missing = isinstance(problem, (ImportError, KeyError, ValueError))
    if missing:
        print(f"skip  {'loaded by transformers':<34} {type(problem).__name__}: {str(problem)[:110]}")
    else:
        row("loaded by transformers", False, f"{type(problem).__name__}: {str(problem)[:110]}")
shutil.rmtree(work, ignore_errors=True)
sys.exit(failed)
