#!/usr/bin/env bash
# nginx, by the system's packages if it is missing and this is root.
set -euo pipefail

if command -v nginx >/dev/null || [ -x /usr/sbin/nginx ]; then
    exit 0
fi
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nginx-light >/dev/null
else
    echo "remote-test needs nginx: install it (Debian: apt-get install nginx-light)" >&2
    exit 1
fi
