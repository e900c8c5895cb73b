#!/bin/bash
# Builds the core, its tests and the Python module with every compiler and runs the tests, warnings being errors;
# ends with a table, and with 1 where one failed.
#
#   native/compilers.sh [name ...]     # such as g++-12 clang++-19 zig-aarch64-linux-gnu; without: all there are
#
# All there are: each g++ and clang that the distribution offers (installed here where root runs this on Debian or
# Ubuntu), others that are on the PATH, and zig from PyPI for machines that are not this one. A compiler that is
# offered and cannot be installed has failed.
set -uo pipefail

cd "$(dirname "$0")/.."
build=build-compilers
tools=$PWD/.venv/bin
zig_targets="aarch64-linux-gnu x86_64-linux-musl"
mkdir -p "$build"
rm -f "$build/results"

# As g++-12 and clang++-16, the oldest first.
list_offered() {
  apt-cache search --names-only '^(g\+\+|clang)-[0-9]+$' 2>/dev/null | cut -d' ' -f1 | sed 's/^clang-/clang++-/' | sort -V
}

list_installed() {
  compgen -c | grep -xE '(g|clang)\+\+(-[0-9]+)?' | sort -uV
}

install_offered() {
  local name
  [ "$(id -u)" = 0 ] || return
  for name in $(list_offered); do
    command -v "$name" >/dev/null && continue
    echo "== $name: installing"
    apt-get install -y -q --no-install-recommends "${name/clang++/clang}" >"$build/install-$name.log" 2>&1 || tail -n 5 "$build/install-$name.log"
  done
}

# Each once: g++ is often another name of g++-12.
list_compilers() {
  local name path known=" "
  for name in $({ list_offered; list_installed | grep -- -; list_installed | grep -v -- -; } | awk '!seen[$0]++'); do
    path=$(readlink -f "$(command -v "$name" || echo "/missing/$name")")
    [[ $known == *" $path "* ]] || echo "$name"
    known+="$path "
  done
  for name in $zig_targets; do echo "zig-$name"; done
}

make_zig() {
  [ -x .venv-zig/bin/python ] || python3 -m venv .venv-zig || return
  .venv-zig/bin/python -c 'import ziglang' 2>/dev/null ||
    .venv-zig/bin/python -m pip install --quiet --disable-pip-version-check ziglang==0.17.0 || return
  # CMake wants one program for the compiler and one for each tool.
  printf '#!/bin/sh\nexec "%s" -m ziglang c++ -target %s "$@"\n' "$PWD/.venv-zig/bin/python" "$1" >"$2/zig-c++"
  printf '#!/bin/sh\nexec "%s" -m ziglang ar "$@"\n' "$PWD/.venv-zig/bin/python" >"$2/zig-ar"
  printf '#!/bin/sh\nexec "%s" -m ziglang ranlib "$@"\n' "$PWD/.venv-zig/bin/python" >"$2/zig-ranlib"
  chmod +x "$2"/zig-*
}

# Configures and builds folder $1; what is made is in the other arguments.
compile() {
  local folder=$1
  shift
  "$tools/cmake" -S . -B "$folder" -G Ninja -DCMAKE_MAKE_PROGRAM="$tools/ninja" -DCMAKE_BUILD_TYPE=Release \
    -DTFRKIT_WERROR=ON "$@" && "$tools/cmake" --build "$folder" --parallel "${JOBS:-2}"
}

# The steps of one compiler, up to the first that fails. Prints what has been reached.
try_compiler() {
  local name=$1 folder=$build/$1 can_run=yes
  local -a setup
  mkdir -p "$folder"
  case $name in
    zig-*)
      make_zig "${name#zig-}" "$folder" || { echo "failed: zig cannot be installed"; return; }
      setup=(-DCMAKE_CXX_COMPILER="$PWD/$folder/zig-c++" -DCMAKE_AR="$PWD/$folder/zig-ar"
        -DCMAKE_RANLIB="$PWD/$folder/zig-ranlib" -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR="$(cut -d- -f2 <<<"$name")")
      [[ $name == zig-$(uname -m)-* ]] || can_run=no
      ;;
    *)
      command -v "$name" >/dev/null || { echo "failed: not installed"; return; }
      setup=(-DCMAKE_CXX_COMPILER="$(command -v "$name")")
      ;;
  esac
  compile "$folder/tests" -DTFRKIT_NATIVE_TESTS=ON "${setup[@]}" >"$folder/log" 2>&1 || { echo "failed: build"; return; }
  if [ $can_run = yes ]; then
    "$tools/ctest" --test-dir "$folder/tests" --output-on-failure >>"$folder/log" 2>&1 || { echo "failed: tests"; return; }
  fi
  if [[ $name == zig-* ]]; then
    echo "ok$([ $can_run = yes ] || echo " (compiled, not run)")"
    return
  fi
  compile "$folder/module" -DPython_EXECUTABLE="$tools/python" -Dnanobind_DIR="$("$tools/python" -m nanobind --cmake_dir)" \
    "${setup[@]}" >>"$folder/log" 2>&1 || { echo "failed: Python module"; return; }
  echo ok
}

if [ $# = 0 ]; then
  install_offered
  mapfile -t names < <(list_compilers)
else
  names=("$@")
fi
for name in "${names[@]}"; do
  echo "== $name"
  result=$(try_compiler "$name")
  echo "$name $result" >>"$build/results"
  [[ $result == ok* ]] || grep -E 'error|warning|FAILED|\*\*\*' "$build/$name/log" 2>/dev/null | head -n 20
done

echo
while read -r name result; do printf '%-24s %s\n' "$name" "$result"; done <"$build/results"
! grep -q ' failed' "$build/results"
