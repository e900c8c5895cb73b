#!/usr/bin/env bash
# Checks the files of a release: tags, sizes, contents, metadata, equal bytes when built twice, and that they install and
# work on every Python there is. Without an argument it builds them into dist/ first; with a folder it checks its files.
set -euo pipefail
cd "$(dirname "$0")/.."
. release/pythons.sh

work=$PWD/build/release
max_nbytes=$((3 << 20))
fail() { echo "wheel-check: $*" >&2; exit 1; }

if [ $# = 0 ]; then
  rm -rf dist "$work/again"
  release/wheels.sh dist
  echo '== built twice'
  release/wheels.sh "$work/again" >/dev/null
  for file in dist/*; do cmp "$file" "$work/again/$(basename "$file")" || fail "$file differs when built twice"; done
  echo "equal bytes: $(ls dist | wc -l) files"
  dist=dist
else
  dist=$1
  release/wheels.sh --tools
fi
bin=$work/tools-3.12/bin

echo '== audits'
for wheel in "$dist"/*.whl; do
  size=$(stat -c %s "$wheel")
  [ "$size" -le $max_nbytes ] || fail "$wheel has $size bytes, expected at most $max_nbytes"
  case $wheel in *manylinux*) "$bin/auditwheel" show "$wheel" | grep 'consistent with' >/dev/null || fail "auditwheel: $wheel" ;; esac  # -q would break the pipe
done
"$bin/abi3audit" --strict --assume-minimum-abi3 3.12 $(ls "$dist"/*abi3*.whl)
"$bin/check-wheel-contents" "$dist"/*.whl
"$bin/twine" check --strict "$dist"/*

# Installs a wheel for one Python: $1 its name, $2 its path. No compiler may be called.
try_python() {
  local home=$work/try-$1
  local -a sources=()
  [ "$1" != 3.15 ] || sources=(--no-binary pyyaml)  # no wheel for it yet; its sources need no compiler
  rm -rf "$home"
  "$2" -m venv "$home/venv"
  CC=/bin/false CXX=/bin/false "$home/venv/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: "${sources[@]}" \
    --find-links "$dist" "tfrkit==$(release/version.sh)" 2>&1 | { grep -v '^WARNING: Location' || true; }
  cp -r examples "$home"
  (cd "$home" && venv/bin/python examples/demo.py >demo.log 2>&1 && venv/bin/tfr --version && venv/bin/python -m tfrkit --version >/dev/null) ||
    { tail -n 20 "$home/demo.log"; fail "the demo failed on $1"; }
  [ -e "$home/venv/share/man/man1/tfr.1" ] || fail "no manual pages on $1"
  echo "$1: $("$home/venv/bin/python" -c 'import sys, tfrkit._core as core; print(sys.version.split()[0], core.__file__.rpartition("/")[2])')"
}

echo '== installed, demo'
versions=(3.11 3.12 3.13 3.14 3.15)
missing=()
for version in "${versions[@]}"; do [ -n "$(find_python "$version")" ] || missing+=("$version"); done
[ ${#missing[@]} = 0 ] || release/debian_pythons.sh "$unpacked" "${missing[@]}" || true
found=
for version in "${versions[@]}"; do
  python=$(find_python $version)
  if [ -n "$python" ]; then try_python "$version" "$python"; found+=" $version"; else echo "$version: no such Python here"; fi
done
[ -n "$found" ] || fail 'no Python to try'

# A pip of 2020, which the page "When installing or starting fails" quotes.
echo '== an old pip'
rm -rf "$work/old-pip"
"$(find_python 3.11)" -m venv "$work/old-pip"
"$work/old-pip/bin/python" -m pip install --quiet --disable-pip-version-check pip==20.2.4 2>&1 | { grep -v '^WARNING: Location' || true; }
said=$("$work/old-pip/bin/python" -m pip install --no-index --no-deps "$dist"/*cp311*manylinux*.whl 2>&1) && fail 'pip 20.2 installed a wheel that it cannot know'
grep -o 'is not a supported wheel on this platform' <<<"$said" || fail "pip 20.2 printed something else: $said"

echo '== the sdist alone'
rm -rf "$work/alone" && mkdir -p "$work/alone"
tar -xzf "$dist"/tfrkit-*.tar.gz -C "$work/alone" --strip-components=1
"$(find_python 3.12)" -m venv "$work/alone/venv"
(
  cd "$work/alone"
  venv/bin/python -m pip install --quiet --disable-pip-version-check . 'pytest>=8' 'pytest-timeout>=2.3' 'hypothesis>=6' pytest-xdist pyarrow 2>&1 | { grep -v '^WARNING: Location' || true; }
  venv/bin/python -m pytest -q -p no:cacheprovider ${SDIST_TESTS:-tests/unit/container tests/unit/codec tests/properties -m 'not resources'}
)
echo "wheel-check: all of it passed, on$found"
