#!/usr/bin/env bash
# Installs zsh, fish and groff where root runs this on Debian or Ubuntu; elsewhere the tests skip shells that are missing.
set -euo pipefail
missing=()
for tool in zsh fish groff; do command -v "$tool" >/dev/null || missing+=("$tool"); done
[ ${#missing[@]} = 0 ] && exit
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
else
  echo "not installed, their tests are skipped: ${missing[*]}" >&2
fi
