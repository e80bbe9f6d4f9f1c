#!/usr/bin/env bash
# Checks that take too long for continuous integration: every test under the sanitizers, types compared by the linker,
# every system call, long fuzzing. Called by `./run check`.
#
#   ./run check [stage ...]       thread learning fuzz faults address; all of them by default
#   CARNOT_FUZZ_SECONDS=600       time for each fuzz target
#   CARNOT_JOBS=2                 compilers and cases at a time; ./run check sets it to what the machine can hold
#   CARNOT_FAULT_CASES=all        or how many of each fault test, chosen by CARNOT_FAULT_SEED
#
# A stage continues where it stopped: build-check/STAGE records what passed on this state of the sources, and its logs.
# The last result of each stage is in bench/results/check.md.
set -euo pipefail
cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.."

STAGES=(thread learning fuzz faults address) # the shorter ones first
STATE=build-check
REPORT=bench/results/check.md
FUZZ_SECONDS=${CARNOT_FUZZ_SECONDS:-600}
FAULT_CASES=${CARNOT_FAULT_CASES:-all}
JOBS=${CARNOT_JOBS:-1}

say() { printf 'check: %s\n' "$*"; }
fail() {
  printf 'check: %s\n' "$*" >&2
  exit 1
}

# The name of the sources: the last commit that changed more than the report, and later changes if there are any.
sources() {
  local changes
  changes=$(git diff HEAD -- . ":!$REPORT")
  echo "$(git log -1 --abbrev=12 --format=%h -- . ":!$REPORT")${changes:++$(sha256sum <<<"$changes" | cut -c1-12)}"
}

# Files of a stage in build-check/STAGE: `about` (sources, date, how much was asked for), `results` (a line per case: name,
# passed or FAILED, seconds, amount), a log per case.
open_stage() {
  local stage=$1 wanted=$2 now before=
  mkdir -p "$STATE/$stage"
  now=$(sources)
  [[ ! -f $STATE/$stage/about ]] || before=$(head -n 1 "$STATE/$stage/about")
  if [[ -n $before && $before != "$now" ]]; then
    say "$stage: the sources changed ($before, now $now): every case runs again."
    rm -f "$STATE/$stage"/{results,*.log,done}
  fi
  printf '%s\n' "$now" "$(date -u +%Y-%m-%d)" "$wanted" >"$STATE/$stage/about"
}

result_of() { awk -F '\t' -v name="$2" '$1 == name { print $2 }' "$STATE/$1/results" 2>/dev/null || true; }
passed() { [[ $(result_of "$1" "$2") == passed ]]; }

# The amount that a log reports: fault cases, executions of a fuzz target, or tests.
amount() {
  awk '/^[A-Za-z]+\.[A-Za-z]+: [0-9]+ cases/ { all += $2; tried += $4 + $6 }
       /^Done [0-9]+ runs/ { runs = $2; seconds = $5 }
       /\[  PASSED  \] [0-9]+ test/ { for (i = 1; i < NF; ++i) if ($i == "PASSED") tests += $(i + 2) }
       END {
         if (all) print (tried == all ? "all" : tried " of") " " all " cases"
         else if (runs) print runs " executions in " seconds " s"
         else if (tests) print tests " tests"
       }' "$1"
}

# run_case stage case command...
run_case() {
  local stage=$1 name=$2 log=$STATE/$1/$2.log began=$SECONDS result=passed
  shift 2
  if passed "$stage" "$name"; then return; fi
  "$@" >"$log" 2>&1 || result=FAILED
  local seconds=$((SECONDS - began)) results=$STATE/$stage/results
  touch "$results"
  {
    flock 9
    awk -F '\t' -v name="$name" '$1 != name' "$results" >"$results.new"
    printf '%s\t%s\t%s\t%s\n' "$name" "$result" "$seconds" "$(amount "$log")" >>"$results.new"
    mv "$results.new" "$results"
  } 9>"$STATE/$stage/lock"
  if [[ $result == passed ]]; then
    say "$stage $name: passed, $seconds s"
  else
    say "$stage $name: FAILED, see $log"
  fi
}

# The same in the background, JOBS cases at a time. `wait` afterwards.
start_case() {
  while (($(jobs -rp | wc -l) >= JOBS)); do wait -n; done
  run_case "$@" &
}

failures() {
  local stage
  for stage in "$@"; do awk -F '\t' '$2 == "FAILED"' "$STATE/$stage/results"; done | wc -l
}

# build preset [target ...]
build() {
  local preset=$1
  shift
  cmake --preset "$preset" && cmake --build --preset "$preset" --parallel "$JOBS" ${1:+--target "$@"}
}

# Two types of the same name are a linker error. Each test program is its own case.
stage_address() {
  open_stage address ""
  run_case address build build sanitize
  passed address build || return 0
  local test tests
  tests=$(ctest --test-dir build-sanitize --show-only | sed -nE 's/^ *Test +#[0-9]+: (.+)$/\1/p')
  for test in $tests; do
    start_case address "$test" ctest --test-dir build-sanitize --verbose --tests-regex "^$test\$" --timeout 7200
  done
  wait
}

# LibTorch is not instrumented: the rooms without it that have threads.
stage_thread() {
  open_stage thread ""
  local room room_options rooms=(base env worlds http kernel subprocess sandbox text tools retrieval agent_harness)
  run_case thread build build tsan "${rooms[@]/%/_test}"
  passed thread build || return 0
  # A test requests more memory than can exist.
  local options="allocator_may_return_null=1 suppressions=$PWD/tests/thread_sanitizer.supp"
  for room in "${rooms[@]}"; do
    # It soon loses the stacks of hnswlib's graphs in `retrieval`, which the suppressions need.
    [[ $room != retrieval ]] || room_options=" detect_deadlocks=0"
    start_case thread "$room" env TSAN_OPTIONS="$options${room_options:-}" "build-tsan/${room}_test"
    room_options=
  done
  wait
}

# Continuous integration trains with the first of the seeds.
stage_learning() {
  open_stage learning ""
  run_case learning build build ci learning_test
  passed learning build || return 0
  run_case learning seeds build/learning_test
}

stage_faults() {
  local wanted="every case"
  [[ $FAULT_CASES == all ]] || wanted="up to $FAULT_CASES cases of each test, seed ${CARNOT_FAULT_SEED:-0}"
  # A larger sample than before: earlier passes covered fewer cases, which `done` lists.
  if [[ -f $STATE/faults/about && $(sed -n 3p "$STATE/faults/about") != "$wanted" ]]; then
    rm -f "$STATE/faults/results"
  fi
  open_stage faults "$wanted"
  run_case faults build build ci faults_test process_environment_test tool_use_test agent_harness_test \
    group_program_test
  passed faults build || return 0
  run_case faults environments env CARNOT_FAULT_CASES="$FAULT_CASES" build/process_environment_test
  run_case faults tools env CARNOT_FAULT_CASES="$FAULT_CASES" build/tool_use_test --gtest_filter='*ManyFaults*'
  run_case faults agents env CARNOT_FAULT_CASES="$FAULT_CASES" build/agent_harness_test --gtest_filter='AgentFaults.*'
  run_case faults ranks env CARNOT_FAULT_CASES="$FAULT_CASES" build/group_program_test --gtest_filter='*AreKilled*'
  run_case faults hosts env CARNOT_FAULT_CASES="$FAULT_CASES" ctest --test-dir build --verbose --tests-regex '^hosts$'
  local test suite=
  while read -r test; do
    if [[ $test == *. ]]; then
      suite=$test
    else
      start_case faults "$suite$test" env CARNOT_FAULT_CASES="$FAULT_CASES" CARNOT_FAULT_DONE="$STATE/faults/done" \
        build/faults_test "--gtest_filter=$suite$test"
    fi
  done < <(build/faults_test --gtest_list_tests | grep -v '^Running')
  wait
}

stage_fuzz() {
  # Longer than before: starts from the corpus that was found before.
  if [[ -f $STATE/fuzz/about && $(sed -n 3p "$STATE/fuzz/about") != "$FUZZ_SECONDS s each" ]]; then
    rm -f "$STATE/fuzz/results"
  fi
  open_stage fuzz "$FUZZ_SECONDS s each"
  run_case fuzz build build fuzz
  passed fuzz build || return 0
  local program name corpus
  for program in build-fuzz/*_fuzz; do
    name=$(basename "$program" _fuzz)
    corpus=$STATE/corpus/$name
    mkdir -p "$corpus"
    local seeds=()
    [[ ! -d tests/fuzz/corpus/$name ]] || seeds=("tests/fuzz/corpus/$name")
    start_case fuzz "$name" "$program" -max_total_time="$FUZZ_SECONDS" -artifact_prefix="$STATE/fuzz/$name." \
      "$corpus" "${seeds[@]}"
  done
  wait
}

processor() { sed -nE 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1; }

compilers() {
  g++ --version | head -n 1
  if command -v clang++-19 >/dev/null; then clang++-19 --version | sed -n '1s/^/and /p'; fi
}

# The report's current text about a stage, which a stage that did not run keeps.
section_of() { awk -v title="## $1" '$0 ~ /^## / { inside = $0 == title; next } inside' "$REPORT" 2>/dev/null || true; }

report_stage() {
  local stage=$1 earlier
  printf '\n## %s\n\n' "$stage"
  if [[ ! -s $STATE/$stage/results ]]; then
    earlier=$(section_of "$stage" | sed '1{/^$/d}')
    echo "${earlier:-Not run.}"
    return
  fi
  local about
  mapfile -t about <"$STATE/$stage/about"
  printf 'Sources %s, %s%s. %s, %s cores.\n\n' "${about[0]}" "${about[1]}" "${about[2]:+, ${about[2]}}" "$(processor)" \
    "$(nproc)"
  echo "| case | | seconds | |"
  echo "|---|---|---|---|"
  awk -F '\t' '{ print "| " $1 " | " $2 " | " $3 " | " $4 " |" }' "$STATE/$stage/results"
}

report() {
  {
    echo "# The last full check"
    echo
    echo "Written by \`./run check\` (tools/check.sh; what the stages are: docs/robustness.md)."
    echo
    echo "Compilers: $(compilers | paste -sd ' ')."
    local stage
    for stage in "${STAGES[@]}"; do report_stage "$stage"; done
  } >"$REPORT.new"
  mv "$REPORT.new" "$REPORT"
}

(($# > 0)) || set -- "${STAGES[@]}"
for stage in "$@"; do
  declare -F "stage_$stage" >/dev/null || fail "unknown stage \"$stage\"; expected: ${STAGES[*]}"
done
trap report EXIT
trap 'trap "" TERM; kill -TERM 0; wait; exit 130' INT # background processes do not get Ctrl-C
for stage in "$@"; do "stage_$stage"; done
failed=$(failures "$@")
((failed == 0)) || fail "$failed cases failed; their logs are in $STATE."
say "everything passed; the result is in $REPORT."
