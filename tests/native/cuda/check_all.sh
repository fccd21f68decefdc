#!/usr/bin/env bash
# Everything that only a GPU can check, in one command and one table. Usage: check_all.sh BUILD_DIR [DEVICE]
# Needs the build's programs and the fixtures; python3 with torch and transformers adds a row, so does compute-sanitizer.
# ONLY="a b" runs the groups named: machine operations cores model odd shapes identity run packs calls faults memory
# profile sanitizer. SHAPES: where the models of `shapes` are kept.
# LOGS: a folder for the full output.
#   machine     hello's GPUs and kernels, the self-test in the published sizes, the roof, telemetry at 10 Hz and its cost
#   operations  each operation against the CPU backend: packed lengths 1 2 3 4 5 63 64 65 127 129 4096 and empty
#               segments, gate extremes, logits past 2^31, 100 optimizer steps against fp64, unbiased rounding, refusals
#   cores       delta rule and attention alone: packed = alone, perturbation, two runs, every tier
#   model       verify on real-dims in fp32 and bf16, every policy, and in bf16 by the kernels of every GPU
#   odd         tiny by the reference kernels, and its refusal
#   shapes      verify on models made here: other groups of heads, fp16 and fp32 sources, heads of the reference kernels
#   identity    equal weights after the same steps: two runs, without graphs, every policy
#   run         train: pause, checkpoint, stop, resumed = never stopped, both optimizers; NaN refused; loaded by transformers
#   packs       a bin's extremes: 8,190 examples, one of 8,192, chance; losses as on the CPU, two runs and policies equal
#   calls       wrong calls and files: each refused in words; killed and resumed, a full disk, a GPU that is nearly full
#   faults      no GPU, old driver, no code for the architecture, missing libraries, too little memory: code and way out
#   memory      forecast against what the driver says this process took, 3 %, four shapes and policies
#   profile     by kernel (CUPTI) and by operation (events); NVTX's ranges
#   sanitizer   memcheck, racecheck, synccheck and initcheck of the Hopper kernels and of verify on a small model
set -uo pipefail
build=${1:?the build folder}
device=${2:-cuda:0}
root=$(cd "$(dirname "$0")/../../.." && pwd)
golden=$root/tests/fixtures/golden
engine=$build/tessera-engine
logs=${LOGS:-$(mktemp -d)}
failed=0
wants() { [ -z "${ONLY:-}" ] || [[ " $ONLY " == *" $1 "* ]]; }
row() { # name, exit status, text
  if [ "$2" -eq 0 ]; then printf 'ok    %-34s %s\n' "$1" "$3"; else printf 'FAIL  %-34s %s\n' "$1" "$3"; failed=1; fi
}
field() { python3 -c "
import json, sys
v = json.loads(sys.stdin.read().strip().split(chr(10))[-1])
print(eval(sys.argv[1]))" "$1" 2>&1 | tail -1; }
program() { # name, command…
  local name=$1
  shift
  "$@" >"$logs/$name.log" 2>&1
  row "$name" $? "$(grep -E 'checks? failed' "$logs/$name.log" | paste -sd ';' || tail -1 "$logs/$name.log")"
  grep '^FAIL' "$logs/$name.log" | head -20
}

if wants machine; then
  python3 "$root/tests/native/cuda/check_machine.py" "$engine" "$device" "$logs" || failed=1
fi

if wants operations; then program cuda_ops_check "$build/cuda_ops_check" --device "${device#cuda:}"; fi
if wants cores; then
  program gdn_check "$build/gdn_check"
  program attention_check "$build/attention_check"
fi

if wants model; then
  for policy in P1 full P2 P0; do
    "$engine" verify --fixture "$golden/real-dims" --device "$device" --policy $policy \
      >"$logs/verify-$policy.json" 2>"$logs/verify-$policy.log"
    row "verify real-dims, $policy" $? "$(field "'fp32: logits %.1e worst gradient %.1e; bf16: logits %.1e median %.1e worst %.1e (rounding alone %.1e %.1e %.1e) %s' % (v['logits']['relativeError'], v['gradients']['worst']['relativeError'], v['bf16']['logits']['relativeError'], v['bf16']['gradients']['median'], v['bf16']['gradients']['worst']['relativeError'], v['bf16']['yardstick']['logits']['relativeError'], v['bf16']['yardstick']['gradients']['median'], v['bf16']['yardstick']['gradients']['worst']['relativeError'], v['failures'])" <"$logs/verify-$policy.json")"
  done
fi

if wants model; then
  "$engine" verify --fixture "$golden/real-dims" --device "$device" --precision bf16 --kernels portable \
    >"$logs/verify-portable.json" 2>"$logs/verify-portable.log"
  row "verify real-dims, portable kernels" $? "$(field "'bf16: logits %.1e median %.1e worst %.1e %s' % (v['logits']['relativeError'], v['gradients']['median'], v['gradients']['worst']['relativeError'], v['failures'])" <"$logs/verify-portable.json")"
fi

if wants odd; then
  "$engine" verify --fixture "$golden/tiny" --device "$device" --accept-slow >"$logs/tiny.json" 2>"$logs/tiny.log"
  row "verify tiny, --accept-slow" $? "$(field "'fp32: worst gradient %.1e; bf16: median %.1e %s' % (v['gradients']['worst']['relativeError'], v['bf16']['gradients']['median'], v['failures'])" <"$logs/tiny.json")"
  "$engine" bench --shape tiny --device "$device" --steps 2 >"$logs/refused.json" 2>"$logs/refused.log"
  [ $? -ne 0 ] && grep -q 'the fast CUDA kernels serve' "$logs/refused.log"
  row "tiny without it is refused" $? "$(tail -1 "$logs/refused.log" | cut -c1-150)"
  "$engine" bench --shape tiny --device "$device" --steps 3 --accept-slow --profile-steps 0 >"$logs/slow.json" 2>"$logs/slow.log"
  row "bench tiny, --accept-slow" $? "$(field "'%.1f ms' % v['msPerStep']['median']" <"$logs/slow.json")"
fi

if wants shapes; then
  "$root/tests/native/cuda/check_shapes.sh" "$engine" "$device" "${SHAPES:-$logs/shapes}" "$logs" || failed=1
fi

if wants identity; then
  bench=("$engine" bench --shape 0.8b --device "$device" --optimizer bf16sr --clip 0 --compaction off
         --steps 4 --profile-steps 0 --hash)
  hash() { "${bench[@]}" "$@" 2>>"$logs/identity.log" | field "v['weightHash']"; }
  # The first run of all chooses the products' algorithms; the same file serves the others.
  first=$(hash --policy P1)
  for variant in "--policy P1" "--policy P1 --eager" "--policy full" "--policy P2" "--policy P0"; do
    # shellcheck disable=SC2086
    again=$(hash $variant)
    [[ "$again" =~ ^[0-9a-f]{8,}$ ]] && [ "$again" = "$first" ]
    row "same bits: $variant" $? "$again"
  done
fi

if wants run; then
  python3 "$root/tests/native/cuda/check_run.py" "$engine" "$device" "$golden/real-dims" "$logs" || failed=1
fi

if wants packs; then
  python3 "$root/tests/native/cuda/check_packs.py" "$engine" "$device" "$golden/real-dims" "$logs" || failed=1
fi
if wants calls; then
  python3 "$root/tests/native/cuda/check_calls.py" "$engine" "$device" "$golden/real-dims" "$logs" || failed=1
fi
if wants faults; then python3 "$root/tests/native/cuda/check_faults.py" "$engine" "$device" "$logs" || failed=1; fi

if wants memory; then
  for case in "0.8b P0 bf16sr" "0.8b full master32" "2b P1 bf16sr" "4b P2 bf16sr"; do
    read -r shape policy optimizer <<<"$case"
    "$engine" bench --shape "$shape" --device "$device" --optimizer "$optimizer" --policy "$policy" --steps 3 \
      --profile-steps 0 >"$logs/memory.json" 2>"$logs/memory.log"
    ratio="v['memory']['total'] / 2**30 / v['peakMemoryGiB'] - 1"
    told=$(field "'%.3f GiB, forecast %.3f: %+.2f %%' % (v['peakMemoryGiB'], v['memory']['total'] / 2**30, 100 * ($ratio))" <"$logs/memory.json")
    field "'within' if abs($ratio) < 0.03 else 'outside'" <"$logs/memory.json" | grep -q within
    row "memory, $case" $? "$told"
  done
fi

if wants profile; then
  for source in cupti events; do
    "$engine" bench --shape 0.8b --device "$device" --optimizer bf16sr --clip 0 --policy P0 --steps 5 --profile $source \
      --profile-steps 3 >"$logs/profile-$source.json" 2>"$logs/profile-$source.log"
    code=$?
    # The kernels of a step take no longer than the step; what they sum to says whether they are all there.
    told=$(field "v['profileSource'] + '; %.2f of %.2f ms a step; ' % (sum(o['totalMs'] for o in v['ops']) / 3, v['msPerStep']['median']) + ', '.join('%s %d, %.2f ms' % (o['op'], o['calls'] / 3, o['totalMs'] / 3) for o in v['ops'][:3])" <"$logs/profile-$source.json")
    [ $code -eq 0 ] && field "'whole' if v['profileSource'].startswith('$source') and 0.8 < sum(o['totalMs'] for o in v['ops']) / 3 / v['msPerStep']['median'] < 1.1 else 'part'" <"$logs/profile-$source.json" | grep -q whole
    row "profile by $source" $? "$told"
  done
  python3 "$root/tests/native/cuda/check_nvtx.py" "$engine" "$build/libnvtx_recorder.so" "$device" "$logs" || failed=1
fi

if wants sanitizer; then
  if command -v compute-sanitizer >/dev/null; then
    "$root/tests/native/cuda/check_sanitizer.sh" "$build" "$device" "${SHAPES:-$logs/shapes}" "$logs" || failed=1
  else
    echo "skip  compute-sanitizer                  not on this machine"
  fi
fi
exit $failed
