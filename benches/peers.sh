#!/usr/bin/env bash
# Times `denoise` against public denoisers on the same recording of a minute, in one run on one core:
# seconds per second of audio, whole process, median of three, and its ratio to that of `denoise`.
#
#   cargo build --release && benches/peers.sh [path to denoise]
#
# Needs sox. Peers that are on the PATH take part: nnnoiseless (RNNoise in Rust: `cargo install nnnoiseless`),
# rnnoise_demo and deep-filter. Those work at 48 kHz and are told so: at 16 kHz they are given the same minute at
# 48 kHz. On a machine that does other work the figures mean nothing.
set -euo pipefail
cd "$(dirname "$0")/.."
denoise=${1:-target/release/denoise}
seconds=60
folder=$(mktemp -d)
trap 'rm -r "$folder"' EXIT
export RAYON_NUM_THREADS=1 OMP_NUM_THREADS=1

for rate in 16000 48000; do
    sox audio/demo-noisy.wav -r "$rate" "$folder/speech.wav" repeat 9 trim 0 "$seconds"
    # Noise up to half of either rate.
    sox -R -r "$rate" -n -b 16 "$folder/noise.wav" synth "$seconds" whitenoise vol 0.003
    sox -R -m "$folder/speech.wav" "$folder/noise.wav" "$folder/$rate.wav"
done
sox "$folder/48000.wav" -t raw -e signed -b 16 "$folder/48000.raw"

# Microseconds of wall time that a command takes, the median of three runs.
median() {
    for _ in 1 2 3; do
        local start=${EPOCHREALTIME/./}
        "$@" >"$folder/log" 2>&1 || { cat "$folder/log" >&2; return 1; }
        echo $((${EPOCHREALTIME/./} - start))
    done | sort -n | sed -n 2p
}

# row NAME OURS COMMAND...: one line of the table; without OURS the ratio is left out.
row() {
    local name=$1 ours=$2 time
    shift 2
    time=$(median "$@")
    awk -v name="$name" -v time="$time" -v ours="${ours:-$time}" -v seconds="$seconds" \
        'BEGIN { printf "| %-38s | %.4f | %5.2f |\n", name, time / 1e6 / seconds, time / ours }'
    last=$time
}

echo "$(grep -m 1 'model name' /proc/cpuinfo 2>/dev/null | cut -d: -f2-), load $(cut -d' ' -f1 /proc/loadavg 2>/dev/null)"
for rate in 16000 48000; do
    input=$folder/$rate.wav
    printf '\n| %-38s | s per s | ratio |\n|---|---|---|\n' "$((rate / 1000)) kHz, one thread"
    row "denoise" "" "$denoise" --force --quiet --threads 1 "$input" "$folder/one.wav"
    ours=$last
    row "denoise --quality fast" "$ours" \
        "$denoise" --force --quiet --threads 1 --quality fast "$input" "$folder/fast.wav"
    row "denoise --threads 2" "$ours" "$denoise" --force --quiet --threads 2 "$input" "$folder/two.wav"
    cmp "$folder/one.wav" "$folder/two.wav"
    if command -v nnnoiseless >/dev/null; then
        row "nnnoiseless" "$ours" nnnoiseless "$folder/48000.wav" "$folder/peer.wav"
    fi
    if command -v rnnoise_demo >/dev/null; then
        row "rnnoise_demo" "$ours" rnnoise_demo "$folder/48000.raw" "$folder/peer.raw"
    fi
    if command -v deep-filter >/dev/null; then
        row "deep-filter" "$ours" deep-filter --output-dir "$folder/peer" "$folder/48000.wav"
    fi
    if [ -x /usr/bin/time ]; then
        /usr/bin/time -f 'peak memory of denoise, one thread: %M kB' \
            "$denoise" --force --quiet --threads 1 "$input" "$folder/one.wav"
    fi
done
