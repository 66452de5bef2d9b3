#!/usr/bin/env bash
# Cross-builds for Windows on Linux: packaging/windows.sh [--demo]
#
# Makes target/x86_64-pc-windows-gnu/release/ denoise.exe, alphamf_c.dll with its import library, and alphamf_clap.dll. With
# --demo, runs denoise.exe on the demo in wine, and compares its output with that of the Linux program if that is built
# (DENOISE). PROFILE is release by default. Exits with 77 if the target or a tool cannot be had.
set -euo pipefail
cd "$(dirname "$0")/.."

windows=x86_64-pc-windows-gnu
profile=${PROFILE:-release}
skip() {
    printf 'SKIPPED: %s\n' "$*" >&2
    exit 77
}
demo=false
case ${1:-} in
'') ;;
--demo) demo=true ;;
*) printf '%s: expected --demo or nothing\n' "$1" >&2; exit 2 ;;
esac

command -v x86_64-w64-mingw32-gcc >/dev/null || skip 'no linker: apt install gcc-mingw-w64-x86-64'
# rustup has it for its own toolchains, Debian (libstd-rust-dev-windows) for the compiler of the same release of Debian.
[ -d "$(rustc --print target-libdir --target $windows)" ] || rustup target add $windows 2>/dev/null ||
    skip "no standard library for $windows: rustup target add $windows, or with Debian's rustc, apt install libstd-rust-dev-windows"
build() { cargo build --locked --profile "$profile" --target $windows "$@"; }
build --package alphamf-cli --package alphamf-c --bin denoise --lib
# Apart from those: features of one call are united, and rayon's threads would outlive the plugin that a host unloads.
build --package alphamf-clap --lib
built=${CARGO_TARGET_DIR:-target}/$windows/${profile/#dev/debug}
ls -l "$built"/{denoise.exe,alphamf_c.dll,alphamf_clap.dll}
# What a host looks for in the libraries.
exports() { x86_64-w64-mingw32-objdump -p "$1" | grep -E "\b$2\b" >/dev/null; }
exports "$built/alphamf_c.dll" alphamf_live_create || { echo 'alphamf_c.dll does not export its functions' >&2; exit 1; }
exports "$built/alphamf_clap.dll" clap_entry || { echo 'alphamf_clap.dll does not export clap_entry' >&2; exit 1; }
! grep -q rayon-core "$built/alphamf_clap.dll" || { echo 'alphamf_clap.dll has threads of its own (rayon)' >&2; exit 1; }
$demo || exit 0

wine=$(command -v wine64 || command -v wine || echo /usr/lib/wine/wine64)
[ -x "$wine" ] || skip 'the libraries and denoise.exe are built; no wine to run the demo: apt install wine64'
scratch=$(mktemp -d)
trap 'WINEPREFIX=$scratch/wine "$(dirname "$wine")/wineserver" -k 2>/dev/null || true; rm -rf "$scratch"' EXIT
export WINEPREFIX=$scratch/wine WINEDEBUG=-all WINEDLLOVERRIDES='mscoree,mshtml='
# Rust's standard library takes its random numbers from bcryptprimitives.dll, which wine has since version 9 only.
cp "$built/denoise.exe" "$scratch/"
cat >"$scratch/random.c" <<'C'
#include <windows.h>
BOOLEAN NTAPI SystemFunction036(PVOID, ULONG);
__declspec(dllexport) BOOL WINAPI ProcessPrng(PBYTE data, SIZE_T size) { return SystemFunction036(data, size); }
C
case $("$wine" --version) in
wine-[1-8].*) x86_64-w64-mingw32-gcc -shared -o "$scratch/bcryptprimitives.dll" "$scratch/random.c" -ladvapi32 ;;
esac
"$wine" "$scratch/denoise.exe" --quiet audio/demo-noisy.wav "$scratch/voice.wav"
test "$(wc -c <"$scratch/voice.wav")" -eq "$(wc -c <audio/demo-noisy.wav)"
if [ -n "${DENOISE:-}" ]; then
    "$DENOISE" --quiet audio/demo-noisy.wav "$scratch/expected.wav"
    cmp "$scratch/voice.wav" "$scratch/expected.wav"
    echo 'in wine, denoise.exe writes what the program of this system writes, byte for byte'
fi
