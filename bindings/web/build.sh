#!/usr/bin/env bash
# Builds the npm package in this folder, native/, and the page in target/page: bindings/web/build.sh
#
# Twice: with vectors of 128 bits, which every browser since 2023 has, and without. If wasm-opt (binaryen, 116 or newer) is in
# PATH or in node_modules, it makes both a little smaller.
set -euo pipefail
cd "$(dirname "$0")"

command -v cargo >/dev/null || { echo "a Rust toolchain (cargo) is needed: https://rustup.rs" >&2; exit 1; }
export PATH=$PWD/node_modules/.bin:$PATH
profile=${PROFILE:-release}
target=wasm32-unknown-unknown
output=${CARGO_TARGET_DIR:-../../target}
mkdir -p "$output"
output=$(cd "$output" && pwd)

# The standard library: that of rustup; or Debian's sources of it (rust-web-src), which are compiled along.
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

# What runs once a recording is made small. Of what is stripped here, wasm-bindgen would miss parts: it strips the rest.
small=(--config 'profile.release.codegen-units=1' --config 'profile.release.strip="none"')
for package in serde serde_core serde_json safetensors hashbrown tracing-core wasm-bindgen js-sys; do
    small+=(--config "profile.release.package.$package.opt-level=\"s\"")
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
# Older ones, Debian 12's 108 too, write modules that break when they start: they mix up the two tables.
wasm_opt_version() {
    local version
    version=$(wasm-opt --version 2>/dev/null) || true
    [[ $version =~ version\ ([0-9]+) ]] && echo "${BASH_REMATCH[1]}" || echo 0
}
build '-C target-feature=+simd128' web
build '' web-plain
# One file of JavaScript serves both.
cmp "$output/web/native/alphamf_web.js" "$output/web-plain/native/alphamf_web.js"
rm -rf native "$output/page"
mkdir -p native "$output/page"
cp "$output/web/native/alphamf_web.js" native
# What browsers of today load is packed. The plain module is for those that may not be able to unpack it.
gzip -9 --no-name --stdout "$output/web/native/alphamf_web_bg.wasm" >native/alphamf_web_bg.wasm.gz
cp "$output/web-plain/native/alphamf_web_bg.wasm" native/alphamf_web_plain_bg.wasm
cp -r index.js live.js text.js worker.js worklet.js native page/* "$output/page"
printf '%s, of which a browser loads one of the modules: ' "$output/page"
du -sh --apparent-size --exclude='*_plain_bg.wasm' "$output/page" | cut -f 1
