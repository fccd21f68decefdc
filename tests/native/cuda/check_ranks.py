"""Runs of `tessera-engine train` over several ranks, compared with one rank that accumulates. Usage:
check_ranks.py ENGINE DEVICES MODEL_FOLDER LOGS [SHARDING]; DEVICES as in a recipe: cuda:0,1 or cpu:0,1; SHARDING is
optimizer, gradients, weights, or auto. Prints rows of check_all.sh's table; exits 1 on a failure."""
import json, os, random, signal, sys, tempfile, time
from pathlib import Path
from cache_files import write_cache, write_plan
from engine_run import EngineRun

engine, devices, model, logs = sys.argv[1], sys.argv[2], Path(sys.argv[3]), Path(sys.argv[4])
sharding = sys.argv[5] if len(sys.argv) > 5 else "auto"
kind, numbers = devices.split(":")
world = len(numbers.split(","))
single = "cpu" if kind == "cpu" else f"cuda:{numbers.split(',')[0]}"
on_cpu = kind == "cpu"
failed = False
STEPS = 8


def row(name, good, text):
    global failed
    failed |= not good
    print(f"{'ok   ' if good else 'FAIL '} {name:<40} {text}", flush=True)


work = Path(tempfile.mkdtemp())
config = json.loads((model / "config.json").read_text())
config = config.get("text_config", config)
draw = random.Random(7)
lengths = [draw.choice([1, 5, 63, 64, 65, 129, 200]) + 2 for _ in range(2 * world * STEPS)]
write_cache(work / "cache", [[draw.randrange(config["vocab_size"]) for _ in range(n)] for n in lengths])
write_plan(work / "plan.safetensors", lengths, [2] * (world * STEPS))
write_plan(work / "uneven.safetensors", lengths[:2 * world + 2], [2] * (world + 1))
(work / "samples.json").write_text(json.dumps({"prompts": [[1, 2, 3], [4]], "tokens": 6}))


class Run(EngineRun):
    def __init__(self, out, device, bins, resume=None, plan="plan.safetensors", samples=False, **more):
        accumulation = bins if device == single else bins // world
        recipe = {"steps": STEPS, "device": device, "seed": 3, "packing": {"budget": 512}, "gradAccumulation": accumulation,
                  "optimizer": {"mode": "master32", "lr": 2e-3, "weightDecay": 0.1}, "acceptSlow": False,
                  "schedule": {"kind": "cosine", "warmupSteps": 2}, "checkpoint": {"everySteps": 4, "keep": 9}, "sharding": sharding, **more}
        (work / f"{out}.json").write_text(json.dumps(recipe))
        call = [engine, "train", "--recipe", work / f"{out}.json", "--cache", work / "cache", "--plan", work / plan,
                "--model", model, "--out", work / out, "--eval-plan", work / "uneven.safetensors"]
        if resume: call += ["--resume", resume]
        if samples: call += ["--samples", work / "samples.json"]
        super().__init__(call, logs / f"ranks-{sharding}-{out}.log", 150)
        self.out = work / out

    def losses(self): return [e["loss"] for e in self.events if e["event"] == "step"]
    def norms(self): return [e["gradNorm"] for e in self.events if e["event"] == "step"]
    def evals(self): return [e["loss"] for e in self.events if e["event"] == "eval"]
    def answers(self): return [e["ids"] for e in self.events if e["event"] == "sample"]
    def last(self): return self.events[-1] if self.events else {}


def far(a, b): return max((abs(x - y) / abs(y) for x, y in zip(a, b)), default=9) if len(a) == len(b) else 9


def finished(*runs):
    """They share the devices meanwhile."""
    for run in runs: run.until()
    return runs


# bf16 rounds a sum of two products elsewhere than one product that adds to a sum.
tolerance = 1e-5 if on_cpu else 2e-2
one, many, again, uneven, odd, lone = finished(
    Run("one", single, world, samples=True), Run("many", devices, world, samples=True), Run("again", devices, world),
    Run("uneven", devices, world, plan="uneven.safetensors", steps=4, evaluate={"everySteps": 2}),
    Run("odd", devices, 2 * world, plan="uneven.safetensors", steps=4), Run("lone", single, 1))
row(f"{world} ranks like 1 that accumulates", len(one.losses()) == STEPS and far(many.losses(), one.losses()) < tolerance,
    f"losses within {far(many.losses(), one.losses()):.1e}, norms {far(many.norms(), one.norms()):.1e}, held out "
    f"{far(many.evals(), one.evals()):.1e}; {many.last().get('message', '')}")
end = f"checkpoint-{STEPS:08}"
same_files = all((many.out / end / name).read_bytes() == (again.out / end / name).read_bytes()
                 for name in ("model.safetensors", "optimizer.safetensors") if (many.out / end).exists())
row("two runs are identical", same_files and many.losses() == again.losses() and many.evals() == again.evals(),
    "losses, held-out losses, weights and optimizer state")
row("answers to prompts are those of one", len(many.answers()) == 4 and (many.answers() == one.answers() or not on_cpu),
    f"{many.answers()[-1:]} and {one.answers()[-1:]}")
hello = many.events[0]
way = next((k["forward"] for k in hello.get("kernels", []) if k["layerKind"] == "ranks"), "")
told = next((k["reason"] for k in hello.get("kernels", []) if k["layerKind"] == "ranks"), "")
zero = {"optimizer": "ZeRO-1", "gradients": "ZeRO-2", "weights": "ZeRO-3"}.get(sharding, "ZeRO-")
row("hello tells of the ranks", len(hello.get("ranks", [])) == world and way != "" and zero in told, f"{way}: {told}")
for run, what in ((uneven, "an uneven number of bins finishes"), (odd, "and where ranks have 2 and 1 of them")):
    row(what, run.process.returncode == 0 and len(run.losses()) == 4, f"{len(run.losses())} steps {run.last().get('message', '')}")

half = "checkpoint-00000004"
down, up, same, refused = finished(
    Run("down", single, world, resume=many.out / half, gradAccumulation=1),
    Run("up", devices, world, resume=one.out / half, gradAccumulation=world),
    Run("same", devices, world, resume=many.out / half),
    Run("refused", devices, world, resume=lone.out / half, gradAccumulation=1))
row(f"{world} ranks -> 1 goes on", far(down.losses(), many.losses()[4:]) < tolerance,
    f"within {far(down.losses(), many.losses()[4:]):.1e} {down.last().get('message', '')}")
row(f"1 -> {world} ranks goes on", far(up.losses(), one.losses()[4:]) < tolerance,
    f"within {far(up.losses(), one.losses()[4:]):.1e} {up.last().get('message', '')}")
row("resumed with as many: to the bit", same.losses() == many.losses()[4:], f"{len(same.losses())} steps")
other = {"weights": "optimizer"}.get(sharding, "weights")
accumulating, across = finished(
    Run("accumulating", devices, 2 * world, steps=4), Run("across", devices, world, resume=many.out / half, sharding=other))
alone = finished(Run("alone", single, 2 * world, steps=4))[0]
row("ranks that accumulate, too", len(alone.losses()) == 4 and far(accumulating.losses(), alone.losses()) < tolerance,
    f"losses within {far(accumulating.losses(), alone.losses()):.1e}, norms {far(accumulating.norms(), alone.norms()):.1e}")
row(f"goes on with sharding {other}, to the bit", across.losses() == many.losses()[4:],
    f"within {far(across.losses(), many.losses()[4:]):.1e} {across.last().get('message', '')}")
broken = finished(Run("nan", devices, 2 * world, steps=4, optimizer={"mode": "master32", "lr": 1e30}, schedule={"kind": "constant"}))[0]
row("a NaN ends all, and says where", broken.process.returncode == 1 and "first seen in" in broken.last().get("message", ""),
    broken.last().get("message", ""))
row("1 bin a step is not shared", refused.process.returncode == 1 and "cannot share" in refused.last().get("message", ""),
    refused.last().get("message", ""))

slow = Run("killed", devices, world, steps=100000, checkpoint={"everySteps": 20, "keep": 2})
pid = slow.until("hello")["ranks"][1]["pid"]
slow.until("checkpoint")
for command, answer in (("pause", "paused"), ("checkpoint", "checkpoint"), ("resume", "resumed")):
    slow.command(command)
    slow.until(answer)
slow.until("step")
begin = time.time()
os.kill(pid, signal.SIGKILL)
slow.until()
last = slow.last()
row("SIGKILL of a rank ends all", slow.process.returncode != 0 and last.get("rank") == 1 and time.time() - begin < 60, f"{time.time() - begin:.2f} s, exit {slow.process.returncode}: {last.get('message')}")
newest = sorted(slow.out.glob("checkpoint-*"))[-1]
resumed = Run("after", devices, world, resume=newest, steps=100000, checkpoint={"everySteps": 20, "keep": 2})
resumed.until("step")
resumed.command("stop")
resumed.until()
row("and the run goes on; a stop saves", resumed.process.returncode == 0 and resumed.last().get("reason") == "stopped", str(resumed.last()))
lead = Run("lead", devices, world, steps=100000)
others = [r["pid"] for r in lead.until("hello")["ranks"][1:]]
lead.until("step")
begin = time.time()
lead.process.kill()
lead.process.wait()



def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


while any(map(alive, others)) and time.time() - begin < 60: time.sleep(0.05)
row("SIGKILL of rank 0 ends the others", not any(map(alive, others)), f"{time.time() - begin:.2f} s")
lead.timer.cancel()
sys.exit(failed)
