#!/usr/bin/env bash
# Compiles the core and the Python module for other machines with zig from PyPI, warnings being errors, and with --run
# builds the C++ tests of one target and runs them under qemu.
#
#   native/cross.sh [target ...]              # without: all of them
#   native/cross.sh --run aarch64-linux-musl
#
# Sources are compiled, not linked: there is no Python of other systems here.
# What --run links is static, so that qemu needs no system of the target: zig can do that with musl, not with glibc.
set -euo pipefail
cd "$(dirname "$0")/.."

targets="aarch64-linux-gnu.2.28 x86_64-linux-musl aarch64-macos x86_64-macos x86_64-windows-gnu"
build=$PWD/build-cross
tools=$PWD/.venv/bin
[ -x .venv-zig/bin/python ] || python3 -m venv .venv-zig
.venv-zig/bin/python -c 'import ziglang' 2>/dev/null ||
  .venv-zig/bin/python -m pip install --quiet --disable-pip-version-check ziglang==0.17.0
zig=("$PWD/.venv-zig/bin/python" -m ziglang)

# Python's headers with the sizes of another system: pyconfig.h is the only one that is made for one system.
make_headers() {
  local folder=$build/python-$1
  mkdir -p "$folder"
  cp -r "$("$tools/python" -c 'import sysconfig; print(sysconfig.get_path("include"))')/." "$folder"
  case $1 in
    *windows*)
      printf '%s\n' '#undef SIZEOF_LONG' '#define SIZEOF_LONG 4' '#undef SIZEOF_WCHAR_T' '#define SIZEOF_WCHAR_T 2' \
        '#undef SIZEOF_PID_T' '#define SIZEOF_PID_T 8' '#undef HAVE_PTHREAD_H' '#undef _POSIX_THREADS' \
        '#undef HAVE_SYS_SELECT_H' '#undef ALIGNOF_LONG' '#define ALIGNOF_LONG 4' '#define MS_WINDOWS 1' '#define MS_WIN64 1' '#define NT_THREADS 1' >>"$folder/pyconfig.h"
      ;;
  esac
  echo "$folder"
}

compile_target() {
  local target=$1 folder=$build/$1 include ours
  mkdir -p "$folder"
  include=$(make_headers "$target")
  ours=(-O1 -c -std=c++20 -Wall -Wextra -Werror -Inative -isystem "$include" -isystem "$("$tools/python" -m nanobind --include_dir)")
  export -f compile_one
  find native/core native/os native/engine native/bindings -name '*.cc' | sort |
    xargs -P "${JOBS:-2}" -I{} bash -c 'compile_one "$@"' _ {} "$folder" "${zig[@]}" c++ -target "$target" "${ours[@]}"
}

compile_one() {
  local source=$1 folder=$2
  shift 2
  "$@" -o "$folder/$(tr / - <<<"$source").o" "$source" || { echo "failed: $source" >&2; exit 255; }
}

run_tests() {
  local target=$1 folder=$build/tests-$1 tool
  mkdir -p "$folder"
  printf '#!/bin/sh\nexec "%s" -m ziglang c++ -target %s "$@"\n' "${zig[0]}" "$target" >"$folder/zig-c++"
  for tool in ar ranlib; do printf '#!/bin/sh\nexec "%s" -m ziglang %s "$@"\n' "${zig[0]}" "$tool" >"$folder/zig-$tool"; done
  chmod +x "$folder"/zig-*
  "$tools/cmake" -S . -B "$folder/build" -G Ninja -DCMAKE_MAKE_PROGRAM="$tools/ninja" -DCMAKE_BUILD_TYPE=Release -DTFRKIT_WERROR=ON \
    -DTFRKIT_NATIVE_TESTS=ON -DCMAKE_CXX_COMPILER="$folder/zig-c++" -DCMAKE_AR="$folder/zig-ar" -DCMAKE_RANLIB="$folder/zig-ranlib" \
    -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="${target%%-*}" -DCMAKE_EXE_LINKER_FLAGS=-static \
    -DCMAKE_CROSSCOMPILING_EMULATOR="$(command -v "qemu-${target%%-*}-static" || echo "qemu-${target%%-*}")" >"$folder/log" 2>&1 || { tail -n 20 "$folder/log"; exit 1; }
  "$tools/cmake" --build "$folder/build" --parallel "${JOBS:-2}" >>"$folder/log" 2>&1 || { grep -E 'error|warning' "$folder/log" | head -n 20; exit 1; }
  "$tools/ctest" --test-dir "$folder/build" --output-on-failure
}

if [ "${1:-}" = --run ]; then
  if ! command -v "qemu-${2%%-*}-static" >/dev/null && ! command -v "qemu-${2%%-*}" >/dev/null; then
    [ "$(id -u)" != 0 ] || apt-get install -y -q --no-install-recommends qemu-user-static >/dev/null
  fi
  run_tests "$2"
  exit
fi
for target in ${@:-$targets}; do
  compile_target "$target" && echo "$target: compiled" || { echo "$target: failed"; exit 1; }
done
