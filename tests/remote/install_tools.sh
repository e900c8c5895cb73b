#!/usr/bin/env bash
# nginx, and npm for Azurite: by the system's packages if one is missing and this is root.
set -euo pipefail

has_nginx() { command -v nginx >/dev/null || [ -x /usr/sbin/nginx ]; }
has_npm() { command -v npm >/dev/null; }

packages=()
has_nginx || packages+=(nginx-light)
has_npm || packages+=(npm)
if [ ${#packages[@]} = 0 ]; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    # A package that starts its server may fail to, in a container; the tests start their own.
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${packages[@]}" >/dev/null || true
fi
has_nginx || { echo "remote-test needs nginx: apt-get install nginx-light" >&2; exit 1; }
has_npm || { echo "remote-test needs npm, for Azurite: apt-get install npm" >&2; exit 1; }
