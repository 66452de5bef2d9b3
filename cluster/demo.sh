#!/usr/bin/env bash
# Four processes train a dictionary, one is killed, the same command resumes, and the file equals that of one process, byte
# for byte. Then three processes share a folder and a corpus, compared with the program `denoise`. Runs from a fresh
# clone; on Debian, as root, it installs missing packages. With BUILT=FOLDER, runs denoise-mpi and denoise of that folder.
set -euo pipefail
built=${BUILT:+$(realpath "$BUILT")}
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
if [ -z "$built" ]; then
    "${CARGO:-cargo}" build --locked --release --package alphamf-cluster --features alphamf-cluster/mpi \
        --package alphamf-cli --bin denoise-mpi --bin denoise
    built=$(realpath --canonicalize-missing "${CARGO_TARGET_DIR:-../target}")/release
fi
program=$built/denoise-mpi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/speech"
# Enough recordings for every process: copies of the repository's, and one that is invalid.
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
train_on() {
    local count=$1
    shift
    start "$count" train "$scratch/speech" --rank 20 --iterations "${SWEEPS:-300}" --checkpoint 5 "$@"
}
# Exit code 3: an invalid recording was skipped.
learned() { "$@" || [ $? = 3 ]; }

echo '== one process =='
learned train_on 1 -o "$scratch/alone.safetensors"

echo '== four processes, one of which is killed =='
train_on 4 -o "$scratch/together.safetensors" &
running=$!
until compgen -G "$scratch/together.safetensors.checkpoint/sweep-*/complete" >/dev/null; do
    kill -0 "$running" 2>/dev/null || { echo 'training ended before its first checkpoint' >&2; exit 1; }
    sleep 0.05
done
# A process of this run, found by the output on its command line.
pgrep --full "^$program train .*-o $scratch/together" | tail -n 1 | xargs kill -KILL
if wait "$running"; then echo 'the run survived the loss of a process' >&2; exit 1; fi
test ! -e "$scratch/together.safetensors"

echo '== the same command again =='
learned train_on 4 -o "$scratch/together.safetensors" 2>&1 | tee "$scratch/second.txt"
grep -q 'resuming after' "$scratch/second.txt"
test "$(grep -c 'skipped:' "$scratch/second.txt")" = 1
cmp "$scratch/alone.safetensors" "$scratch/together.safetensors"
test ! -e "$scratch/together.safetensors.checkpoint"
echo 'identical bytes'
cp "$scratch/speech/1-demo-clean.wav" "$scratch/before.wav"
if train_on 1 -o "$scratch/speech/1-demo-clean.wav" --force 2>"$scratch/refused.txt"; then
    echo 'a recording was replaced by the dictionary' >&2
    exit 1
fi
grep -q 'same file' "$scratch/refused.txt"
cmp "$scratch/before.wav" "$scratch/speech/1-demo-clean.wav"

# The exit codes are those of `denoise train`: a missing folder, an output that exists, a setting out of range.
fails_with() {
    local code=0
    start 2 train "${@:2}" 2>/dev/null || code=$?
    test "$code" = "$1" || { echo "exit code $code, not $1: ${*:2}" >&2; exit 1; }
}
fails_with 3 "$scratch/nowhere" -o "$scratch/new.safetensors"
fails_with 4 "$scratch/speech" -o "$scratch/alone.safetensors"
fails_with 2 "$scratch/speech" -o "$scratch/new.safetensors" --rank 0

echo '== a folder =='
fast=(--quality fast)
learned "$built/denoise" "$scratch/speech" -o "$scratch/speech-alone" "${fast[@]}" --quiet
learned start 3 denoise --parts 8 "$scratch/speech" -o "$scratch/speech-together" "${fast[@]}" --stats "$scratch/stats.json"
diff -r --exclude .alphamf-results.jsonl "$scratch/speech-alone" "$scratch/speech-together"
test "$(grep -c '"input"' "$scratch/stats.json")" = "$(find "$scratch/speech" -type f | wc -l)"
# The same command again, in other parts, keeps the figures of what it skips.
cp "$scratch/stats.json" "$scratch/stats-before.json"
learned start 3 denoise --parts 4 "$scratch/speech" -o "$scratch/speech-together" "${fast[@]}" --stats "$scratch/stats.json"
grep -q '"outcome": "skipped"' "$scratch/stats.json"
cmp <(grep -v '"outcome"' "$scratch/stats-before.json") <(grep -v '"outcome"' "$scratch/stats.json")

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
# A wrong option leaves nothing behind.
if start 2 eval --parts 8 "${corpus[@]}" --resume "$scratch/wrong.jsonl" --strength none 2>"$scratch/refused.txt"; then exit 1; fi
grep -q "invalid value 'none'" "$scratch/refused.txt"
if compgen -G "$scratch/wrong.jsonl*" >/dev/null; then echo 'a refused run left files behind' >&2; exit 1; fi
without_times() { cut -d , --complement -f 5 "$1"; }
cmp <(without_times "$scratch/scores.csv") <(without_times "$scratch/scores-together.csv")
echo 'identical scores'
