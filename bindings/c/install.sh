#!/usr/bin/env bash
# Builds the C library and installs it: bindings/c/install.sh [PREFIX] (/usr/local), below DESTDIR if that is set. With
# BUILT=FOLDER, installs the libraries in that folder instead.
set -euo pipefail
built=${BUILT:+$(realpath "$BUILT")}
cd "$(dirname "$0")"

prefix=${1:-/usr/local}
[[ $prefix = /* ]] || { echo "$prefix: expected a path from the root" >&2; exit 2; }
command -v cargo >/dev/null || { echo "a Rust toolchain (cargo) is needed: https://rustup.rs" >&2; exit 1; }
if [ -z "$built" ]; then
    profile=${PROFILE:-release}
    cargo build --locked --profile "$profile" --package alphamf-c
    built=${CARGO_TARGET_DIR:-../../target}/${profile/dev/debug}
fi
to=${DESTDIR:-}$prefix
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' ../../Cargo.toml | head -n 1)
# The name that programs look for when they start, as in build.rs.
case $version in
0.*) interface=$(cut -d . -f 1-2 <<<"$version") ;;
*) interface=${version%%.*} ;;
esac
soname=libalphamf_c.so.$interface
install -d "$to/include" "$to/lib/pkgconfig"
install -m 644 include/alphamf.h "$to/include/"
install -m 644 "$built/libalphamf_c.a" "$to/lib/"
install -m 755 "$built/libalphamf_c.so" "$to/lib/libalphamf_c.so.$version"
ln -sf "libalphamf_c.so.$version" "$to/lib/$soname"
ln -sf "$soname" "$to/lib/libalphamf_c.so"
{
    printf 'prefix=%s\n' "$prefix"
    sed "s/@version@/$version/" alphamf.pc.in
} >"$to/lib/pkgconfig/alphamf.pc"
../../packaging/licences.sh alphamf-c "$to/share/doc/alphamf"
echo "installed in $to: cc program.c \$(pkg-config --cflags --libs alphamf)"
