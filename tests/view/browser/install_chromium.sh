#!/usr/bin/env bash
# Chromium and a font with Chinese characters, by the system's packages if they are missing and this is root.
set -euo pipefail

has_browser() { [ -n "${CHROMIUM:-}" ] || command -v chromium chromium-browser google-chrome >/dev/null; }
has_font() { command -v fc-list >/dev/null && [ -n "$(fc-list :lang=zh)" ]; }

if has_browser && has_font; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-wqy-microhei fontconfig >/dev/null
elif ! has_browser; then
    echo "view-test needs Chromium: install it (Debian: apt-get install chromium), or set CHROMIUM to its path" >&2
    exit 1
fi
