#!/usr/bin/env bash
# Builds the npm package in this folder, native/, and the page in target/page:
#
#     bindings/web/build.sh [page]
#
# With `page`, only the page is assembled, from modules built before.
#
# Two modules: with 128-bit SIMD, which every browser since 2023 supports, and without. wasm-opt (binaryen, 116 or newer), if
# in PATH or node_modules, makes both slightly smaller.
set -euo pipefail
cd "$(dirname "$0")"

output=${CARGO_TARGET_DIR:-../../target}
mkdir -p "$output"
output=$(cd "$output" && pwd)

assemble() {
    rm -rf "$output/page"
    mkdir -p "$output/page"
    cp -r index.js live.js text.js worklet.js native licences page/* "$output/page"
    cp ../../audio/demo-noisy.wav "$output/page/example.wav"
    printf '%s, of which a browser loads, without the example: ' "$output/page"
    du -sh --apparent-size --exclude='*_plain_bg.wasm' --exclude=example.wav --exclude=licences "$output/page" | cut -f 1
}
if [ "${1:-}" = page ]; then
    assemble
    exit
fi

command -v cargo >/dev/null || { echo "a Rust toolchain (cargo) is needed: https://rustup.rs" >&2; exit 1; }
export PATH=$PWD/node_modules/.bin:$PATH
profile=${PROFILE:-release}
target=wasm32-unknown-unknown

# Standard library: from rustup, or compiled from Debian's sources (rust-web-src).
cargo=(cargo)
standard=()
sources() { [ -d "$(/usr/bin/rustc --print sysroot 2>/dev/null)/lib/rustlib/src/rust/library" ]; }
if ! { [ -d "$(rustc --print target-libdir --target $target)" ] || rustup target add $target; }; then
    if ! sources || ! command -v wasm-ld >/dev/null; then
        echo "the standard library of $target is needed: rustup target add $target," >&2
        echo "or with Debian: apt-get install rustc-web cargo-web rust-web-src lld" >&2
        exit 1
    fi
    cargo=(env RUSTC_BOOTSTRAP=1 RUSTC=/usr/bin/rustc CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER=wasm-ld /usr/bin/cargo)
    standard=("-Zbuild-std=std,panic_abort")
fi

# Code that runs once per recording is optimised for size. wasm-bindgen needs the symbols, and strips them itself.
small=(--config 'profile.release.codegen-units=1' --config 'profile.release.strip="none"')
for package in serde serde_core serde_json safetensors hashbrown tracing-core wasm-bindgen js-sys; do
    small+=(--config "profile.$profile.package.$package.opt-level=\"s\"")
done
build() {
    RUSTFLAGS=$1 "${cargo[@]}" build --locked "${standard[@]}" "${small[@]}" --profile "$profile" \
        --package alphamf-web --target $target --target-dir "$output/$2"
    cargo run --locked --quiet --manifest-path bindgen/Cargo.toml --target-dir "$output/bindgen" -- \
        "$output/$2/$target/${profile/dev/debug}/alphamf_web.wasm" "$output/$2/native"
    local module=$output/$2/native/alphamf_web_bg.wasm
    if [ "$profile" = release ] && [ "$(wasm_opt_version)" -ge 116 ]; then
        wasm-opt -O3 "$module" -o "$module.smaller"
        mv "$module.smaller" "$module"
    fi
}
# Older versions, such as 108 in Debian 12, write modules that fail at start: they confuse the two tables.
wasm_opt_version() {
    local version
    version=$(wasm-opt --version 2>/dev/null) || true
    [[ $version =~ version\ ([0-9]+) ]] && echo "${BASH_REMATCH[1]}" || echo 0
}
build '-C target-feature=+simd128' web
build '' web-plain
# Both modules share one JavaScript file.
cmp "$output/web/native/alphamf_web.js" "$output/web-plain/native/alphamf_web.js"
rm -rf native
mkdir -p native
# Without comments: index.d.ts is the documentation.
sed -e '/^ *\/\*\*.*\*\/$/d' -e '/^ *\/\*\*/,/\*\//d' "$output/web/native/alphamf_web.js" >native/alphamf_web.js
# Current browsers load the compressed module. The plain one is for browsers that may not be able to decompress it.
gzip -9 --no-name --stdout "$output/web/native/alphamf_web_bg.wasm" >native/alphamf_web_bg.wasm.gz
cp "$output/web-plain/native/alphamf_web_bg.wasm" native/alphamf_web_plain_bg.wasm
../../packaging/licences.sh alphamf-web licences "$target"
# The code of the audio thread in one file, which needs no other.
{
    cat text.js
    sed -E 's/^export (class|function) /\1 /; /^export \{.*\};$/d' native/alphamf_web.js
    sed '/^import /d' worklet.js
} >native/worklet.js
if grep -nE '^(import|export) ' native/worklet.js; then
    echo 'native/worklet.js is not in one file' >&2
    exit 1
fi
assemble
