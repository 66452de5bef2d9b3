#!/usr/bin/env bash
# Four ranks learn a dictionary, one is killed on the way, the same command goes on, and the file is, byte for byte, what
# one rank makes of it. Then a folder and a corpus that three ranks share, against the program
# `denoise`. From a fresh clone; on Debian, as root, what is missing is installed.
set -euo pipefail
cd "$(dirname "$0")"

missing=()
command -v mpirun >/dev/null || missing+=(openmpi-bin)
command -v mpicc >/dev/null || missing+=(libopenmpi-dev)
compgen -G '/usr/lib/llvm-*/lib/libclang*.so*' >/dev/null || missing+=(libclang-dev)
command -v cc >/dev/null || missing+=(gcc)
if [ "${#missing[@]}" -gt 0 ]; then
    if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
        echo "needed: ${missing[*]}" >&2
        exit 1
    fi
    apt-get update -qq
    apt-get install --yes --no-install-recommends -qq "${missing[@]}" >/dev/null
fi
profile=${PROFILE:-release}
"${CARGO:-cargo}" build --locked --profile "$profile" --package alphamf-cluster --features alphamf-cluster/mpi \
    --package alphamf-cli --bin denoise-mpi --bin denoise
built=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-../target}")/${profile/#dev/debug}
program=$built/denoise-mpi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/speech"
# A rank needs recordings: those of the repository under several names will do. One is none at all.
for copy in 1 2 3 4 5 6; do
    for recording in ../audio/*.wav; do cp "$recording" "$scratch/speech/$copy-${recording##*/}"; done
done
echo 'not audio' >"$scratch/speech/3-broken.wav"

start() {
    local count=$1
    shift
    local root=()
    if [ "$(id -u)" = 0 ]; then root=(--allow-run-as-root); fi
    mpirun "${root[@]}" --oversubscribe --mca mpi_yield_when_idle 1 -n "$count" "$program" "$@"
}
ranks() {
    local count=$1
    shift
    start "$count" train "$scratch/speech" --rank 20 --iterations "${SWEEPS:-300}" --checkpoint 5 "$@"
}
# Exit code 3 says that a recording was left out.
learned() { "$@" || [ $? = 3 ]; }

echo '== one rank =='
learned ranks 1 -o "$scratch/alone.safetensors"

echo '== four ranks, one of which is killed =='
ranks 4 -o "$scratch/together.safetensors" &
running=$!
until compgen -G "$scratch/together.safetensors.checkpoint/sweep-*/complete" >/dev/null; do
    kill -0 "$running" 2>/dev/null || { echo 'learning ended before its first checkpoint' >&2; exit 1; }
    sleep 0.05
done
# One of this run alone: its output is named on its command line.
pgrep --full "^$program train .*-o $scratch/together" | tail -n 1 | xargs kill -KILL
if wait "$running"; then echo 'the run survived the loss of a rank' >&2; exit 1; fi
test ! -e "$scratch/together.safetensors"

echo '== the same command again =='
learned ranks 4 -o "$scratch/together.safetensors" 2>&1 | tee "$scratch/second.txt"
grep -q 'going on from the state after' "$scratch/second.txt"
test "$(grep -c 'left out' "$scratch/second.txt")" = 1
cmp "$scratch/alone.safetensors" "$scratch/together.safetensors"
test ! -e "$scratch/together.safetensors.checkpoint"
echo 'the same bytes'

echo '== a folder =='
fast=(--quality fast)
learned "$built/denoise" "$scratch/speech" -o "$scratch/voices" "${fast[@]}" --quiet
learned start 3 denoise --parts 8 "$scratch/speech" -o "$scratch/voices-together" "${fast[@]}" --stats "$scratch/stats.json"
rm "$scratch"/voices*/.alphamf-results.jsonl
diff -r "$scratch/voices" "$scratch/voices-together"
test "$(grep -c '"input"' "$scratch/stats.json")" = "$(find "$scratch/speech" -type f | wc -l)"

echo '== a corpus =='
mkdir "$scratch/clean" "$scratch/noisy"
for copy in 1 2 3 4; do
    cp ../audio/demo-clean.wav "$scratch/clean/$copy.wav"
    cp ../audio/demo-noisy.wav "$scratch/noisy/$copy.wav"
done
corpus=(--clean "$scratch/clean" --noisy "$scratch/noisy" "${fast[@]}")
"$built/denoise" eval "${corpus[@]}" --csv "$scratch/scores.csv" --quiet
start 3 eval --parts 8 "${corpus[@]}" --resume "$scratch/run.jsonl" --csv "$scratch/scores-together.csv" --quiet
test "$(wc -l <"$scratch/run.jsonl")" = 5
without_times() { cut -d , --complement -f 5 "$1"; }
cmp <(without_times "$scratch/scores.csv") <(without_times "$scratch/scores-together.csv")
echo 'the same scores'
