# Sourced: find_python 3.12 prints the path of that interpreter, from the PATH, from pyenv, or from those that
# release/debian_pythons.sh has unpacked; nothing where there is none.
find_python() {
  local path
  path=$(command -v "python$1") && "$path" -c '' 2>/dev/null && { "$path" -c 'import sys; print(sys.executable)'; return; }
  if command -v pyenv >/dev/null; then
    path=$(pyenv versions --bare 2>/dev/null | grep -E "^$1\.[0-9]+$" | sort -V | tail -n 1)
    [ -z "$path" ] || { echo "$(pyenv prefix "$path")/bin/python"; return; }
  fi
  path=$unpacked/usr/bin/python$1
  [ ! -x "$path" ] || echo "$path"
}
unpacked=${TFRKIT_PYTHONS:-$PWD/build/release/pythons}
