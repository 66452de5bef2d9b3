#!/usr/bin/env bash
# Builds the npm package in this folder, native/, and the page in target/page: bindings/web/build.sh
set -euo pipefail
cd "$(dirname "$0")"

command -v cargo >/dev/null || { echo "a Rust toolchain (cargo) is needed: https://rustup.rs" >&2; exit 1; }
profile=${PROFILE:-release}
target=wasm32-unknown-unknown
output=${CARGO_TARGET_DIR:-../../target}
mkdir -p "$output"
output=$(cd "$output" && pwd)
if ! [ -d "$(rustc --print target-libdir --target $target)" ]; then
    rustup target add $target || {
        echo "the standard library of $target is needed: rustup target add $target" >&2
        exit 1
    }
fi
# Every browser since 2023 has vectors of 128 bits. What is stripped here, wasm-bindgen would miss: it strips the rest.
RUSTFLAGS='-C target-feature=+simd128' CARGO_PROFILE_RELEASE_STRIP=none \
    cargo build --locked --profile "$profile" --package alphamf-web --target $target --target-dir "$output"
cargo run --locked --quiet --manifest-path bindgen/Cargo.toml --target-dir "$output/bindgen" -- \
    "$output/$target/${profile/dev/debug}/alphamf_web.wasm" native
rm -rf "$output/page"
mkdir -p "$output/page"
cp -r index.js worker.js native page/* "$output/page"
printf '%s: ' "$output/page"
du -sh --apparent-size "$output/page" | cut -f 1
