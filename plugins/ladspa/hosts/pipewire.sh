#!/usr/bin/env bash
# Runs the PipeWire configuration of ../README.md without devices: plugins/ladspa/hosts/pipewire.sh
#
# A microphone without hardware plays the demo; what the filter chain gives a program that records is compared with
# `denoise --live`. Needs a built plugin and program (TARGET, target/debug by default), PipeWire and WirePlumber, and a Python
# with numpy (PYTHON). Exits with 77 if one of them is not installed.
set -euo pipefail
# WirePlumber ends without a bus.
if [ -z "${OWN_BUS:-}" ]; then
    command -v dbus-run-session >/dev/null || { echo 'SKIPPED: dbus-run-session is not installed' >&2; exit 77; }
    OWN_BUS=1 exec dbus-run-session -- "$0" "$@"
fi
cd "$(dirname "$0")/../../.."

target=$(realpath "${TARGET:-target/debug}")
python=${PYTHON:-python3}
for tool in pipewire wireplumber pw-play pw-record pw-link pw-cli; do
    command -v "$tool" >/dev/null || { echo "SKIPPED: $tool is not installed" >&2; exit 77; }
done
"$python" -c 'import numpy' 2>/dev/null || { echo 'SKIPPED: no Python with numpy' >&2; exit 77; }
# `cargo build` and `cargo test` put the plugin into different folders.
if ! { [ -x "$target/denoise" ] && [ -n "$(find "$target" -maxdepth 2 -name libalphamf_ladspa.so)" ]; }; then
    echo "$target has no plugin or no program: cargo build -p alphamf-ladspa && cargo build -p alphamf-cli" >&2
    exit 1
fi

scratch=$(mktemp -d)
jobs=()
finish() {
    [ "${#jobs[@]}" -eq 0 ] || kill "${jobs[@]}" 2>/dev/null || true
    wait || true
    rm -rf "$scratch"
}
trap finish EXIT

# Nothing of the user's own session is read or reached.
export HOME=$scratch XDG_RUNTIME_DIR=$scratch XDG_CONFIG_HOME=$scratch/config XDG_STATE_HOME=$scratch/state
export PIPEWIRE_RUNTIME_DIR=$scratch LADSPA_PATH=$target:$target/deps
unset PIPEWIRE_REMOTE DISPLAY
configuration=$XDG_CONFIG_HOME/pipewire/pipewire.conf.d
mkdir -p "$configuration"
# The text of the documentation, as it is: the first block after its heading.
# shellcheck disable=SC2016 # the quotes are those of Markdown
sed -n '/^## Virtual microphone: PipeWire/,/^## /p' plugins/ladspa/README.md |
    sed -n '/^```text$/,/^```$/p' | sed '/^```/d' >"$configuration/alphamf.conf"
grep libpipewire-module-filter-chain "$configuration/alphamf.conf" >/dev/null ||
    { echo 'the documentation has no configuration for PipeWire' >&2; exit 1; }
cat >"$configuration/microphone.conf" <<'EOF'
# Periods of 0.17 s: a busy machine must not lose one.
context.properties = {
  default.clock.rate = 48000
  default.clock.quantum = 8192
  default.clock.min-quantum = 8192
  default.clock.max-quantum = 8192
}
context.objects = [
  { factory = adapter
    args = {
      factory.name = support.null-audio-sink
      node.name = microphone
      node.description = "Microphone"
      media.class = Audio/Source/Virtual
      audio.position = [ MONO ]
    }
  }
]
EOF

# The demo, at the rate of the graph.
"$python" - audio/demo-noisy.wav "$scratch/noisy.wav" <<'EOF'
import sys
import wave
import numpy as np

with wave.open(sys.argv[1]) as file:
    samples, rate = np.frombuffer(file.readframes(file.getnframes()), "<i2"), file.getframerate()
spectrum = np.fft.rfft(samples)
longer = np.zeros(len(samples) * 48000 // rate // 2 + 1, complex)
longer[: len(spectrum)] = spectrum
sound = np.fft.irfft(longer, len(samples) * 48000 // rate) * 48000 / rate
with wave.open(sys.argv[2], "wb") as file:
    file.setparams((1, 2, 48000, 0, "NONE", ""))
    file.writeframes(np.round(sound).clip(-32768, 32767).astype("<i2").tobytes())
EOF
"$target/denoise" -q --live --format f32 "$scratch/noisy.wav" "$scratch/expected.wav"

# Waits until a command succeeds.
await() {
    local what=$1
    shift
    for _ in {1..150}; do
        if "$@" >/dev/null 2>&1; then return; fi
        sleep 0.2
    done
    echo "$what did not come within 30 s" >&2
    cat "$scratch"/*.log >&2
    exit 1
}
has_port() { pw-link "$1" | grep -Fx "$2"; }
is_linked() { pw-link -l | grep -A 3 -Fx "$1" | grep -F "$2"; }

pipewire >"$scratch/pipewire.log" 2>&1 &
jobs+=($!)
await 'PipeWire' pw-cli info 0
wireplumber >"$scratch/wireplumber.log" 2>&1 &
jobs+=($!)
await 'the microphone' has_port --input microphone:input_MONO
await 'the denoised microphone' has_port --output alphamf:capture_MONO
await 'the link from the microphone to the filter chain' is_linked microphone:capture_MONO capture.alphamf:input_MONO

pw-record --target alphamf --rate 48000 --channels 1 --format f32 "$scratch/heard.wav" >"$scratch/record.log" 2>&1 &
recorder=$!
jobs+=("$recorder")
await 'the recording' is_linked alphamf:capture_MONO pw-record
pw-play --target 0 "$scratch/noisy.wav" >"$scratch/play.log" 2>&1 &
player=$!
jobs+=("$player")
await 'the player' has_port --output pw-play:output_MONO
pw-link pw-play:output_MONO microphone:input_MONO
wait "$player"
sleep 1
kill -INT "$recorder"
wait "$recorder" || true
jobs=("${jobs[@]:0:2}")
"$python" plugins/ladspa/hosts/compare.py "$scratch/noisy.wav" "$scratch/expected.wav" "$scratch/heard.wav"
