#!/usr/bin/env bash
# Writes the licences of a package and of all libraries in it into a folder: packaging/licences.sh PACKAGE FOLDER [TARGET]
#
# MPL, MIT and BSD ask who passes on programs for the licence of every library, and for the place of its source.
set -euo pipefail

[ "$#" -ge 2 ] || { echo "usage: $0 PACKAGE FOLDER [TARGET]" >&2; exit 2; }
package=$1
mkdir -p "$2"
folder=$(cd "$2" && pwd)
target=${3:-$(rustc -vV | sed -n 's/^host: //p')}
cd -P "$(dirname "$0")/.."

cp LICENSE-MIT LICENSE-APACHE models/ATTRIBUTION.md "$folder/"

# Folders with the sources of all libraries, NAME-VERSION each.
sources=$(cargo metadata --locked --format-version 1 | grep -o '"manifest_path":"[^"]*"' | cut -d '"' -f 4 | xargs -d '\n' -n 1 dirname)

third_parties() {
    local name version licence source folder text
    local -a texts
    printf 'Besides its own code, this holds the standard library of Rust (MIT OR Apache-2.0), '
    [[ $target != *-musl ]] || printf 'musl (MIT), '
    printf 'and:\n'
    cargo tree --locked --package "$package" --edges normal --target "$target" --prefix none \
        --format '{p}|{l}|{r}' | sed 's/ (\*)$//; s/ (proc-macro)|/|/' | sort -u |
        while IFS='|' read -r name licence source; do
            [[ $name != *"($PWD"* ]] || continue # its own
            read -r name version _ <<<"$name"
            folder=$(grep -m 1 "/$name-${version#v}\$" <<<"$sources") || { echo "$name ${version}: no sources" >&2; exit 1; }
            printf '\n%s\n%s %s, %s\n%s\n' "$(printf '=%.0s' {1..80})" "$name" "$version" "$licence" "$source"
            # Where MIT is offered, it is taken.
            mapfile -t texts < <(find "$folder" -maxdepth 1 -iname '*licen[cs]e*mit*' | sort)
            [ "${#texts[@]}" -gt 0 ] || mapfile -t texts < <(find "$folder" -maxdepth 1 -type f \
                \( -iname '*licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' \) | sort)
            [ "${#texts[@]}" -gt 0 ] || printf '\nIts package has no text of its licence, %s.\n' "$licence"
            for text in "${texts[@]}"; do
                printf '\n'
                cat "$text"
            done
        done
}
third_parties >"$folder/THIRD-PARTY.txt"
