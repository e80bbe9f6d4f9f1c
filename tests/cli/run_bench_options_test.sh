#!/usr/bin/env bash
# `./run bench` refuses what it does not know before it installs or builds anything, and says what it expects.
#   run_bench_options_test.sh RUN
set -uo pipefail
run=$1 failures=0

refuses() { # what the message has to contain, arguments
  local wanted=$1 message status
  shift
  message=$("$run" bench "$@" 2>&1 >/dev/null)
  status=$?
  if ((status != 1)) || [[ $message != *"$wanted"* || $message != *"expected names of benchmarks, or --quick"* ]]; then
    printf '"bench %s" ended with status %d and "%s"; expected 1 and "%s"\n' "$*" "$status" "$message" "$wanted"
    failures=1
  fi
}

refuses 'unknown option "--fast"' --fast
refuses 'unknown option "-q"' thread_pool -q
refuses '--quick runs a fixed selection' --quick thread_pool
refuses 'only --quick prints JSON' --json
refuses 'only --quick prints JSON' thread_pool --json
exit "$failures"
