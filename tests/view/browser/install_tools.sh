#!/usr/bin/env bash
# Chromium, a font with Chinese characters, and npm for axe: by the system's packages if one is missing and this is root.
set -euo pipefail

has_browser() { [ -n "${CHROMIUM:-}" ] || command -v chromium chromium-browser google-chrome >/dev/null; }
has_font() { command -v fc-list >/dev/null && [ -n "$(fc-list :lang=zh)" ]; }
has_npm() { command -v npm >/dev/null; }

packages=()
has_browser || packages+=(chromium)
has_font || packages+=(fonts-wqy-microhei fontconfig)
has_npm || packages+=(npm)
if [ ${#packages[@]} = 0 ]; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null
fi
has_browser || { echo "view-test needs Chromium: apt-get install chromium, or set CHROMIUM to its path" >&2; exit 1; }
has_font || { echo "view-test needs a font with Chinese characters: apt-get install fonts-wqy-microhei fontconfig" >&2; exit 1; }
has_npm || { echo "view-test needs npm, for axe-core: apt-get install npm" >&2; exit 1; }
