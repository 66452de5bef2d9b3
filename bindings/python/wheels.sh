#!/usr/bin/env bash
# Wheels for Linux, every Python from 3.9 on: bindings/python/wheels.sh [TARGET...]
#
# Targets are x86_64-unknown-linux-gnu and aarch64-unknown-linux-gnu if none is given; wheels go to target/wheels. zig
# links them against the glibc of manylinux2014. Tools come from PyPI, into a folder of their own.
set -euo pipefail
cd "$(dirname "$0")"

targets=("$@")
[ "$#" -gt 0 ] || targets=(x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu)
output=${CARGO_TARGET_DIR:-../../target}
mkdir -p "$output"
output=$(cd "$output" && pwd)
export CARGO_TARGET_DIR=$output
tools=$output/wheel-tools
for target in "${targets[@]}"; do
    [ -d "$(rustc --print target-libdir --target "$target")" ] || rustup target add "$target"
done
[ -x "$tools/bin/maturin" ] || python3 -m venv "$tools"
"$tools/bin/pip" install --quiet 'maturin[zig]>=1.9,<2'
for target in "${targets[@]}"; do
    ../../packaging/licences.sh alphamf-python licences "$target"
    PATH=$tools/bin:$PATH maturin build --release --locked --zig --compatibility manylinux2014 \
        --target "$target" --out "$output/wheels"
done
