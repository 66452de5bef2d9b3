#!/usr/bin/env bash
# Packs a folder, to be unpacked by root with other files there: packaging/archive.sh FOLDER makes FOLDER.tar.gz
#
# Folders are left out of the list, so those that exist keep their owners and modes. Files can be read by all, whatever the
# umask of the builder.
set -euo pipefail

[ "$#" -eq 1 ] || { echo "usage: $0 FOLDER" >&2; exit 2; }
name=$(basename "$1")
cd "$(dirname "$1")"
find "$name" ! -type d | sort |
    tar --no-recursion --owner=0 --group=0 --mode='u=rwX,go=rX' -czf "$name.tar.gz" --files-from=-
