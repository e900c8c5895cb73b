#!/usr/bin/env bash
# Unpacks Pythons that this Debian does not offer, from the newest suite of its own mirror; nothing is installed.
#
#   release/debian_pythons.sh build/release/pythons 3.14 3.15     # build/release/pythons/usr/bin/python3.14 ...
#
# Each starts by the dynamic loader and with the libraries of its own suite, also in an environment made by its venv.
# Ends with 1 where they cannot be had: another system, no network.
set -euo pipefail

[ $# -ge 2 ] || { echo 'usage: release/debian_pythons.sh folder version ...' >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
shift
keys=/usr/share/keyrings/debian-archive-keyring.gpg
fail() { echo "release/debian_pythons.sh: $*" >&2; exit 1; }

command -v apt-get dpkg >/dev/null && [ -e $keys ] || fail 'works on Debian'
site=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | sed -n 1p)
[ -n "$site" ] || fail 'apt knows no mirror'
apt=$folder/apt
mkdir -p "$apt/state/lists/partial" "$apt/cache/archives/partial"
touch "$apt/state/status"  # as if nothing were installed: so all that a Python needs is fetched
echo "deb [signed-by=$keys] $site sid main" >"$apt/sources.list"
cat >"$apt/apt.conf" <<END
Dir::State "$apt/state";
Dir::State::status "$apt/state/status";
Dir::Cache "$apt/cache";
Dir::Etc::sourcelist "$apt/sources.list";
Dir::Etc::sourceparts "/dev/null";
Acquire::Languages "none";
APT::Install-Recommends "false";
APT::Sandbox::User "";
Debug::NoLocking "true";
END
export APT_CONFIG=$apt/apt.conf
apt-get update -qq >"$apt/log" 2>&1 || { tail -n 5 "$apt/log" >&2; fail 'the lists cannot be fetched'; }
apt-get install --yes -qq --download-only $(printf "python%s-venv " "$@") >>"$apt/log" 2>&1 || { tail -n 5 "$apt/log" >&2; fail "cannot be fetched: $*"; }
for package in "$apt"/cache/archives/*.deb; do dpkg -x "$package" "$folder"; done
rm -rf "$apt"

libraries=$(dirname "$(find "$folder/usr/lib" -name libc.so.6 -print -quit)")
loader=$(find "$libraries" -name 'ld-linux-*' -print -quit)
for version in "$@"; do
  program=$folder/usr/bin/python$version
  mv "$program" "$program.unpacked"
  # $0 is the name by which it was called: how Python finds the environment that it runs in.
  printf '#!/bin/sh\nexec "%s" --argv0 "$0" --library-path "%s" "%s" "$@"\n' "$loader" "$libraries" "$program.unpacked" >"$program"
  chmod +x "$program"
  # Where venv finds pip.
  grep -rlF /usr/share/python-wheels "$folder/usr/lib/python$version" --include='*.py' --include='*.json' |
    xargs sed -i "s#/usr/share/python-wheels#$folder/usr/share/python-wheels#"
  "$program" -c 'import sys; print(sys.version.split()[0], sys.executable)'
done
