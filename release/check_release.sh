#!/usr/bin/env bash
# Everything a release needs, in a clean clone of the last commit: version, changelog, tests, docs, wheels, audits, SBOM,
# checksums and the text of the release in two languages. Results are in build/release/out. Nothing is published.
#
#   release/check_release.sh [folder]     # with the files of this folder, instead of wheels built here
#   SHORT=1 release/check_release.sh      # few tests
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
out=$root/build/release/out
dist=${1:+$(cd "$1" && pwd)}
clone=$root/build/release/clone
version=$(release/version.sh)
step() { echo; echo "==== $*"; }
fail() { echo "release-check: $*" >&2; exit 1; }

step "a clean clone"
[ -z "$(git status --porcelain)" ] || echo 'note: uncommitted changes are not part of what is checked'
rm -rf "$clone" "$out" && mkdir -p "$out"
git clone --quiet --no-local . "$clone"
# Environments are kept: they depend on pinned versions, not on this clone.
for name in tools-3.11 tools-3.12; do
  [ ! -e "build/release/$name" ] || { mkdir -p "$clone/build/release"; cp -a "build/release/$name" "$clone/build/release/"; }
done
export TFRKIT_PYTHONS=${TFRKIT_PYTHONS:-$root/build/release/pythons}
cd "$clone"

step "version $version"
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || fail "expected a version such as 1.2.3, got '$version'"
! git rev-parse -q --verify "refs/tags/v$version" >/dev/null || [ "$(git describe --tags --exact-match 2>/dev/null)" = "v$version" ] ||
  fail "v$version exists already; raise src/tfrkit/_version.py"

step 'wheels'
if [ -n "$dist" ]; then
  release/check_wheels.sh "$dist"
else
  release/check_wheels.sh
  dist=$clone/dist
fi
cp "$dist"/* "$out/"

step 'changelog'
bin=$clone/build/release/tools-3.12/bin
[ -n "$(ls changes/*.md 2>/dev/null)" ] || fail 'no notes in changes/: nothing to release'
"$bin/towncrier" build --draft --version "$version" >"$out/CHANGELOG-$version.md" 2>"$out/towncrier.log" || { cat "$out/towncrier.log"; fail 'towncrier'; }
rm "$out/towncrier.log"
wc -l "$out/CHANGELOG-$version.md" | sed 's/ .*/ lines of changes/'

step 'tests'
# Of the wheel that is released, not of another build of the same sources.
make .venv/.tools
rm -rf build/wheel
.venv/bin/python -m pip download --quiet --disable-pip-version-check --no-index --no-deps --only-binary :all: --find-links "$dist" \
  --dest build/wheel "tfrkit==$version"
touch build/wheel/.built
if [ -n "${SHORT:-}" ]; then
  make .venv/.installed
  .venv/bin/python -m pytest tests/architecture tests/docs/test_reference.py tests/docs/test_deprecations.py
else
  make lint test JOBS="${JOBS:-2}"
fi

step 'docs'
make site
[ -n "${SHORT:-}" ] || make docs-test JOBS="${JOBS:-2}"

step 'workflows'
make workflows-check

step 'SBOM'
"$clone/build/release/try-3.12/venv/bin/python" -m pip freeze --exclude tfrkit >"$out/requirements.txt" 2>/dev/null
"$bin/cyclonedx-py" requirements --pyproject pyproject.toml --output-reproducible --of JSON -o "$out/tfrkit-$version.cdx.json" "$out/requirements.txt" 2>/dev/null
rm "$out/requirements.txt"
grep -c '"type": "library"' "$out/tfrkit-$version.cdx.json" | sed 's/$/ components/'

step 'text of the release'
"$bin/python" release/text.py "$version" "$out"

step 'checksums'
(cd "$out" && sha256sum -- *.whl *.tar.gz *.json >SHA256SUMS && cat SHA256SUMS)
echo
echo "release-check: $version is ready - in build/release/out"
