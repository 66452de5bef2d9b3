#!/usr/bin/env bash
# Static programs for Linux in packages that need no build: packaging/build.sh [TARGET...]
#
# Targets are those of musl, x86_64 and aarch64 if none is given. For each, target/packages/ gets a tar.gz and, where
# cargo-deb is installed, a Debian package; both hold the program, its alias, manual pages, completions and licences.
set -euo pipefail
cd "$(dirname "$0")/.."

fail() {
    printf 'packaging/build.sh: %s\n' "$*" >&2
    exit 1
}

targets=("$@")
[ "$#" -gt 0 ] || targets=(x86_64-unknown-linux-musl aarch64-unknown-linux-musl)
# The program itself prints its manual and completions, so one of those that are built has to run here.
native=$(uname -m)-unknown-linux-musl
[ "$(uname -s)" = Linux ] || fail 'this needs Linux, as the program that is built has to run'

command -v cargo >/dev/null || fail 'a Rust toolchain (cargo) is needed: https://rustup.rs'
missing=()
for target in "$native" "${targets[@]}"; do
    case $target in
    *-linux-musl) ;;
    *) fail "$target: expected a target of musl, such as x86_64-unknown-linux-musl" ;;
    esac
    [ -d "$(rustc --print target-libdir --target "$target")" ] || missing+=("$target")
done
[ "${#missing[@]}" -eq 0 ] || fail "no standard library for ${missing[*]}; get it with: rustup target add ${missing[*]}"

version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
output=${CARGO_TARGET_DIR:-target}
packages=$output/packages
mkdir -p "$packages"
# Cargo and cargo-deb must agree with this script on the place.
CARGO_TARGET_DIR=$(cd "$output" && pwd)
export CARGO_TARGET_DIR

build() {
    local target=$1 linker
    # Nothing is written in C: the linker that comes with Rust is enough for either processor.
    linker=CARGO_TARGET_$(tr 'a-z-' 'A-Z_' <<<"$target")_LINKER
    env "$linker=${!linker:-rust-lld}" cargo build --locked --release --package alphamf-cli --target "$target"
}

# Everything but the program, the same for every processor but for the libraries.
share() {
    local target=$1 share=$2 program=$CARGO_TARGET_DIR/$native/release/denoise command name
    rm -rf "$share"
    mkdir -p "$share"/{man/man1,bash-completion/completions,zsh/site-functions,fish/vendor_completions.d,doc/alphamf}
    "$program" man >"$share/man/man1/denoise.1"
    for command in train eval live join merge completions man; do
        "$program" man "$command" >"$share/man/man1/denoise-$command.1"
    done
    printf '.so man1/denoise.1\n' >"$share/man/man1/alphamf.1"
    gzip -9n "$share"/man/man1/*.1
    for name in denoise alphamf; do
        "$program" completions bash "$name" >"$share/bash-completion/completions/$name"
        "$program" completions zsh "$name" >"$share/zsh/site-functions/_$name"
        "$program" completions fish "$name" >"$share/fish/vendor_completions.d/$name.fish"
    done
    cp README.md "$share/doc/alphamf/"
    cp models/README.md "$share/doc/alphamf/MODELS.md"
    packaging/licences.sh alphamf-cli "$share/doc/alphamf" "$target"
}

archive() {
    local target=$1 built=$2
    local name=alphamf-$version-linux-${target%%-*}
    rm -rf "${packages:?}/$name"
    mkdir -p "$packages/$name/bin"
    cp "$built/denoise" "$packages/$name/bin/"
    ln -s denoise "$packages/$name/bin/alphamf"
    cp -R "$built/share" "$packages/$name/"
    packaging/archive.sh "$packages/$name"
    rm -rf "${packages:?}/$name"
    printf '%s\n' "$packages/$name.tar.gz"
}

build "$native"
for target in "${targets[@]}"; do
    [ "$target" = "$native" ] || build "$target"
    built=$CARGO_TARGET_DIR/$target/release
    share "$target" "$built/share"
    archive "$target" "$built"
    if command -v cargo-deb >/dev/null; then
        cargo deb --locked --no-build --package alphamf-cli --target "$target" --output "$packages/"
    else
        printf 'no Debian package for %s: cargo-deb is missing (cargo install --locked cargo-deb)\n' "$target" >&2
    fi
done
