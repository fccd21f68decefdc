#!/usr/bin/env bash
# Everything that only a GPU can check, in one command and one table. Usage: check_all.sh BUILD_DIR [DEVICE]
#   operations     cuda_ops_check            each against the CPU backend, two runs, refusals
#   whole model    verify on real-dims       loss, logits, gradients, isolation, eight steps; every policy
#   determinism    bench --hash              equal weights after the same steps: two runs, without graphs, every policy
set -uo pipefail
build=${1:?the build folder}
device=${2:-cuda:0}
fixture=$(cd "$(dirname "$0")/../../.." && pwd)/tests/fixtures/golden/real-dims
failed=0
row() { # name, exit status, text
  if [ "$2" -eq 0 ]; then printf 'ok    %-28s %s\n' "$1" "$3"; else printf 'FAIL  %-28s %s\n' "$1" "$3"; failed=1; fi
}

table=$("$build/cuda_ops_check" --device "${device#cuda:}" 2>&1)
row cuda_ops_check $? "$(tail -1 <<<"$table")"
grep '^FAIL' <<<"$table"

for policy in full P1 P2 P0; do
  report=$("$build/tessera-engine" verify --fixture "$fixture" --device "$device" --policy $policy 2>/dev/null)
  row "verify, $policy" $? "$(grep -o '"gradients":{[^}]*}' <<<"$report")"
done

bench=("$build/tessera-engine" bench --shape 0.8b --device "$device" --optimizer bf16sr --clip 0 --compaction off
       --steps 4 --profile-steps 0 --hash)
hash() { "${bench[@]}" "$@" 2>/dev/null | grep -o '"weightHash":"[0-9a-f]*"'; }
first=$(hash --policy P1)
for variant in "--policy P1" "--policy P1 --eager" "--policy full" "--policy P2" "--policy P0"; do
  # shellcheck disable=SC2086
  again=$(hash $variant)
  [ -n "$again" ] && [ "$again" = "$first" ]
  row "same bits: $variant" $? "$again"
done
exit $failed
