#!/usr/bin/env bash
# Builds the sdist and the wheels of this machine's platform into a folder: one for CPython 3.11, and one for the stable
# ABI of 3.12, which all later versions take.
#
#   release/wheels.sh dist
#   release/wheels.sh --tools     # only the environments that it builds in
#
# Compiled by zig from PyPI against glibc 2.28, whatever the glibc here, with its C++ library linked in: so the wheels
# are manylinux_2_28 (its C++ library needs <cstdio> named, which nanobind forgets). Equal sources and commit give equal bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
. release/pythons.sh

work=$PWD/build/release
glibc=2.28
machine=$(uname -m)
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 1577836800)}
# A sandbox of our own, so that a wheel does not depend on what this shell has set.
unset CFLAGS CXXFLAGS LDFLAGS PIP_CONSTRAINT
# The environment of one Python: $1.
make_tools() {
  local tools=$work/tools-$1 python
  [ "$tools/.made" -nt release/build-requirements.txt ] && return
  python=$(find_python "$1")
  [ -n "$python" ] || { echo "release/wheels.sh: Python $1 is needed, and not on the PATH" >&2; exit 1; }
  mkdir -p "$work"
  "$python" -m venv "$tools"
  PIP_CONSTRAINT=tests/constraints.txt "$tools/bin/python" -m pip install --quiet --disable-pip-version-check \
    -r release/build-requirements.txt
  touch "$tools/.made"
}

make_compiler() {
  # CMake wants one program for the compiler and one for each tool.
  local tool
  printf '#!/bin/sh\nexec "%s" -m ziglang c++ -target %s-linux-gnu.%s "$@"\n' "$work/tools-3.12/bin/python" "$machine" "$glibc" >"$work/zig-c++"
  for tool in ar ranlib; do
    printf '#!/bin/sh\nexec "%s" -m ziglang %s "$@"\n' "$work/tools-3.12/bin/python" "$tool" >"$work/zig-$tool"
  done
  chmod +x "$work"/zig-*
}

for version in 3.12 3.11; do make_tools "$version"; done
[ "$1" != --tools ] || exit 0
out=$(mkdir -p "$1" && cd "$1" && pwd)
rm -rf "$work/raw" "$work/build"
mkdir -p "$work/raw"
make_compiler
"$work/tools-3.12/bin/python" -m build --sdist --no-isolation --outdir "$out" . >"$work/sdist.log" 2>&1 || { cat "$work/sdist.log"; exit 1; }
# Wheels come from the sdist, not from the checkout: what is not in it is not needed.
rm -rf "$work/source" && mkdir -p "$work/source"
tar -xzf "$out"/tfrkit-*.tar.gz -C "$work/source" --strip-components=1
for version in 3.12 3.11; do
  tools=$work/tools-$version
  PATH="$tools/bin:$PATH" "$tools/bin/python" -m pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps \
    -C build-dir="$work/build" -C cmake.define.CMAKE_CXX_COMPILER="$work/zig-c++" \
    -C cmake.define.CMAKE_AR="$work/zig-ar" -C cmake.define.CMAKE_RANLIB="$work/zig-ranlib" \
    -C cmake.define.CMAKE_CXX_FLAGS="-include cstdio -ffile-prefix-map=$work=." \
    --wheel-dir "$work/raw" "$work/source"
  rm -rf "$work/build"
done
for wheel in "$work"/raw/*.whl; do
  PATH="$work/tools-3.12/bin:$PATH" "$work/tools-3.12/bin/python" -m auditwheel -v repair --plat "manylinux_${glibc/./_}_$machine" --wheel-dir "$out" "$wheel" \
    >"$work/repair.log" 2>&1 || { cat "$work/repair.log"; exit 1; }
done
ls -l "$out" | awk 'NR > 1 { print $5, $9 }'
