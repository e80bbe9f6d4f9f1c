#!/usr/bin/env bash
# What takes too long for the continuous integration: every test under the sanitizers, types compared by the linker,
# every system call, long fuzzing. Called by `./run check`.
#
#   ./run check [stage ...]       odr address thread faults fuzz; all of them where none is named
#   CARNOT_FUZZ_SECONDS=600       time of each fuzz target
#
# It goes on where it stopped: build-check/passed lists what passed on this state of the sources, build-check/logs says
# what was printed. The last result stands in bench/results/check.md.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

STAGES=(odr address thread faults fuzz)
STATE=build-check
FUZZ_SECONDS=${CARNOT_FUZZ_SECONDS:-600}
JOBS=${CARNOT_JOBS:-1}

say() { printf 'check: %s\n' "$*"; }
fail() {
  printf 'check: %s\n' "$*" >&2
  exit 1
}

# What names the sources: the commit, and the changes on top of it where there are any.
sources() {
  local changes
  changes=$(git diff HEAD -- . ':!bench/results/check.md' | sha256sum | cut -c1-12)
  [[ -n $(git diff HEAD -- . ':!bench/results/check.md') ]] || changes=
  echo "$(git rev-parse --short=12 HEAD)${changes:++$changes}"
}

# A line per case that passed: stage, case, seconds, how much of what it was.
open_state() {
  mkdir -p "$STATE/logs"
  local now before=
  now=$(sources)
  [[ ! -f $STATE/sources ]] || before=$(<"$STATE/sources")
  [[ $now != "$before" ]] || return 0
  [[ -z $before ]] || say "the sources changed ($before, now $now): every case runs again."
  rm -f "$STATE/passed" "$STATE/faults"
  echo "$now" >"$STATE/sources"
}

passed() { [[ -f $STATE/passed ]] && cut -f 1,2 "$STATE/passed" | grep -qxF "$1	$2"; }

# What a log says about its size: fault cases, executions of a fuzz target, or tests.
amount() {
  local log=$1
  awk '/^[A-Za-z]+\.[A-Za-z]+: [0-9]+ cases/ { cases += $2 }
       /^Done [0-9]+ runs/ { runs = $2 }
       /\[  PASSED  \] [0-9]+ test/ { tests += $(NF - 1) }
       END {
         if (cases) print cases " cases"
         else if (runs) print runs " executions"
         else if (tests) print tests " tests"
       }' "$log"
}

failures=0

# run_case stage case command...
run_case() {
  local stage=$1 name=$2 log began
  shift 2
  if passed "$stage" "$name"; then return; fi
  log=$STATE/logs/$stage.$name.log
  began=$SECONDS
  if "$@" >"$log" 2>&1; then
    printf '%s\t%s\t%s\t%s\n' "$stage" "$name" "$((SECONDS - began))" "$(amount "$log")" >>"$STATE/passed"
    say "$stage $name: passed, $((SECONDS - began)) s"
  else
    failures=$((failures + 1))
    say "$stage $name: FAILED, see $log"
  fi
}

# build preset [target ...]
build() {
  local preset=$1
  shift
  cmake --preset "$preset" && cmake --build --preset "$preset" --parallel "$JOBS" ${1:+--target "$@"}
}

# run_tests stage preset folder: each test program is a case of its own.
run_tests() {
  local stage=$1 preset=$2 folder=$3 test tests
  run_case "$stage" build build "$preset"
  passed "$stage" build || return 0
  tests=$(ctest --test-dir "$folder" --show-only | sed -nE 's/^ *Test +#[0-9]+: (.+)$/\1/p')
  for test in $tests; do
    run_case "$stage" "$test" ctest --test-dir "$folder" --verbose --tests-regex "^$test\$" --timeout 7200
  done
}

stage_odr() { run_case odr build build odr; }
stage_address() { run_tests address sanitize build-sanitize; }
# LibTorch is not instrumented: the rooms without it that have threads.
stage_thread() {
  local room rooms=(base env kernel text tool)
  run_case thread build build tsan "${rooms[@]/%/_test}"
  passed thread build || return 0
  for room in "${rooms[@]}"; do run_case thread "$room" "build-tsan/${room}_test"; done
}

stage_faults() {
  run_case faults build build release faults_test
  passed faults build || return 0
  local test suite=
  while read -r test; do
    if [[ $test == *. ]]; then
      suite=$test
    else
      run_case faults "$suite$test" env CARNOT_FAULT_CASES=all CARNOT_FAULT_DONE="$STATE/faults" \
        build/faults_test "--gtest_filter=$suite$test"
    fi
  done < <(build/faults_test --gtest_list_tests | grep -v '^Running')
}

stage_fuzz() {
  run_case fuzz build build fuzz
  passed fuzz build || return 0
  local program name corpus
  for program in build-fuzz/*_fuzz; do
    name=$(basename "$program" _fuzz)
    corpus=$STATE/corpus/$name
    mkdir -p "$corpus"
    local seeds=()
    [[ ! -d tests/fuzz/corpus/$name ]] || seeds=("tests/fuzz/corpus/$name")
    run_case fuzz "$name" "$program" -max_total_time="$FUZZ_SECONDS" -artifact_prefix="$STATE/logs/fuzz.$name." \
      "$corpus" "${seeds[@]}"
  done
}

processor() { sed -nE 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1; }

compilers() {
  g++ --version | head -n 1
  if command -v clang++-19 >/dev/null; then clang++-19 --version | sed -n '1s/^/  /p'; fi
}

report() {
  {
    echo "# The last full check"
    echo
    echo "Written by \`./run check\` (tools/check.sh; what the stages are: docs/robustness.md)."
    echo
    echo "* Sources: $(<"$STATE/sources")"
    echo "* Date: $(date -u +%Y-%m-%d)"
    echo "* Processor: $(processor), $(nproc) cores"
    echo "* Compilers: $(compilers)"
    echo "* Failed in this call: $failures"
    echo
    echo "| stage | case | seconds | what passed |"
    echo "|---|---|---|---|"
    local stage
    for stage in "${STAGES[@]}"; do
      if grep -q "^$stage	" "$STATE/passed" 2>/dev/null; then
        awk -F '\t' -v stage="$stage" '$1 == stage { print "| " $1 " | " $2 " | " $3 " | " $4 " |" }' "$STATE/passed"
      else
        echo "| $stage | | | not run |"
      fi
    done
  } >bench/results/check.md
}

(($# > 0)) || set -- "${STAGES[@]}"
for stage in "$@"; do
  declare -F "stage_$stage" >/dev/null || fail "unknown stage \"$stage\"; expected: ${STAGES[*]}"
done
open_state
trap report EXIT
for stage in "$@"; do "stage_$stage"; done
((failures == 0)) || fail "$failures cases failed; the logs are in $STATE/logs."
say "everything passed; the result is in bench/results/check.md."
