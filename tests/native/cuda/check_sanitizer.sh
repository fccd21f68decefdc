#!/usr/bin/env bash
# compute-sanitizer's four tools on the Hopper kernels and on `verify` of a small model: two layers that the fast kernels
# serve, bf16, one training step. Prints rows of check_all.sh's table; exits 1 on a failure.
# Usage: check_sanitizer.sh BUILD_DIR DEVICE FOLDER_OF_SHAPES LOGS. SANITIZER_SECONDS: of each, 300 unless told.
#
# The model takes its products by the engine's own kernel (cuBLASLt is covered in a mount namespace, as root): racecheck
# reports races in the library's kernels, and when told to leave them out it dies of a hardware exception of its own.
# memcheck goes through the library's as well.
set -uo pipefail
build=$1 device=$2 shapes=$3 logs=$4
root=$(cd "$(dirname "$0")/../../.." && pwd)
failed=0
# Small, for racecheck takes about a second for a million multiplications; gdn_check's has sequences of five chunks.
model=$shapes/sanitized
if ! [ -e "$model/expected.json" ]; then
  OMP_NUM_THREADS=1 python3 "$root/scripts/makeGolden.py" "$model" --dtype BF16 --lengths 100 --config \
    '{"linear_key_head_dim":128,"linear_value_head_dim":128,"head_dim":256,"layer_types":["linear_attention","full_attention"],"hidden_size":64,"intermediate_size":64,"linear_num_key_heads":1,"linear_num_value_heads":1,"num_attention_heads":1,"num_key_value_heads":1,"vocab_size":128}' >"$logs/make-sanitized.log" 2>&1
  python3 - "$model/expected.json" <<'PYTHON'
import json, sys
expected = json.load(open(sys.argv[1]))
expected["adamw"]["losses"] = expected["adamw"]["losses"][:1]
json.dump(expected, open(sys.argv[1], "w"))
PYTHON
fi
verify=("$build/tessera-engine" verify --precision bf16 --accept-slow --fixture "$model" --device "$device")
libraries=$(find /usr /opt -name 'libcublasLt.so*' 2>/dev/null | paste -sd ' ')
covered=(unshare -m sh -c "for f in $libraries; do mount --bind /dev/null \$f || exit 99; done; exec \"\$@\"" sh)
"${covered[@]}" true 2>/dev/null || covered=()

cases=("memcheck library")
for tool in memcheck racecheck initcheck synccheck; do
  cases+=("$tool gdn_check" "$tool gdn_long" "$tool attention_check")
  [ ${#covered[@]} -gt 0 ] && cases+=("$tool model")
done
# Side by side: each is bound by one core.
for case in "${cases[@]}"; do
  read -r tool what <<<"$case"
  run=(compute-sanitizer --tool "$tool" --print-limit 100000)
  case $what in
    model) run=("${covered[@]}" "${run[@]}" "${verify[@]}") ;;
    library) run+=("${verify[@]}") ;;
    gdn_long) run+=("$build/gdn_check" --quick-long) ;;
    *) run+=("$build/$what" --quick-hopper) ;;
  esac
  (
    begin=$(date +%s)
    timeout -k 5 "${SANITIZER_SECONDS:-300}" "${run[@]}" >"$logs/$tool-$what.log" 2>&1
    echo "$? $(($(date +%s) - begin))" >"$logs/$tool-$what.code"
  ) &
done
wait
for case in "${cases[@]}"; do
  read -r tool what <<<"$case"
  read -r code seconds <"$logs/$tool-$what.code"
  log=$logs/$tool-$what.log
  grep -E 'Error:|Invalid|Uninitialized|Internal|=== +at ' "$log" >"$logs/findings"
  text="$(grep -o '[A-Z]* SUMMARY.*' "$log" | tail -1), exit $code after $seconds s"
  # The tool's exit status is the program's, or counts its own findings.
  if [ "$code" -eq 0 ] && grep -q SUMMARY "$log" && ! [ -s "$logs/findings" ] &&
    ! grep -q "didn't terminate\|[1-9][0-9]* failed" "$log"; then
    printf 'ok    %-34s %s\n' "$tool, $what" "$text"
  else
    printf 'FAIL  %-34s %s\n' "$tool, $what" "$text"
    cut -c1-200 "$logs/findings" | sort | uniq -c | sort -rn | head -5
    failed=1
  fi
done
if [ ${#covered[@]} -eq 0 ]; then
  printf 'skip  %-34s no mount namespace here: its products would be the library'"'"'s\n' "a whole model"
fi
exit $failed
