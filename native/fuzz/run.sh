#!/bin/sh
# Fuzzes each target for the given number of seconds (default 60) under the sanitizers, starting from the
# kept corpus. New inputs stay in the build folder; a crash leaves its input there and ends the run.
#
#   native/fuzz/run.sh [seconds] [target ...]
#   KEEP=1 native/fuzz/run.sh 300     # then adds what reaches new code to the kept corpus: choose, and name it
set -eu

cd "$(dirname "$0")/../.."
seconds=${1:-60}
[ $# -gt 0 ] && shift
targets=${*:-csv frames example jpeg stored}

compiler=
for candidate in clang++ clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14; do
  if command -v "$candidate" >/dev/null 2>&1; then
    compiler=$candidate
    break
  fi
done
if [ -z "$compiler" ]; then
  echo "no clang++ found; on Debian: apt-get install clang-16 libclang-rt-16-dev llvm-16" >&2
  exit 3
fi

build=build-fuzz
mkdir -p "$build"
for target in $targets; do
  echo "== $target: building with $compiler"
  "$compiler" -std=c++20 -O1 -g -Wall -Wextra -Inative \
    -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
    native/fuzz/driver.cc "native/fuzz/$target.cc" native/core/*/*.cc native/os/*.cc -o "$build/fuzz_$target"

  corpus=native/fuzz/corpus/$target
  mkdir -p "$build/$target" "$corpus"
  echo "== $target: $seconds s"
  "$build/fuzz_$target" -max_total_time="$seconds" -max_len=2048 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 \
    -verbosity=0 -artifact_prefix="$build/$target-" "$build/$target" "$corpus"

  if [ "${KEEP:-0}" = 1 ]; then
    "$build/fuzz_$target" -merge=1 -max_len=256 -verbosity=0 "$corpus" "$build/$target"
  fi
done
