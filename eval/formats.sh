#!/bin/sh
# Denoises half a second of sound in every input format, sample rate and number of channels that ffmpeg can make,
# and prints a table: ok, the error, or - for what the format does not have.
#   eval/formats.sh [DENOISE]
set -u
denoise=${1:-target/release/denoise}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
rates='8000 16000 44100 48000 96000 192000'
failures=0
count=0

probe() {
    ffprobe -v error -select_streams a:0 -show_entries stream="$2" -of csv=p=0 "$1" | cut -d, -f1
}

printf '| format | channels |'
for rate in $rates; do printf ' %s Hz |' "$rate"; done
printf '\n|---|---|'
for rate in $rates; do printf -- '---|'; done
echo
while read -r name options; do
    for channels in 1 2 6; do
        printf '| %s | %s |' "$name" "$channels"
        for rate in $rates; do
            input="$work/in.$name"
            rm -f "$input" "$work/out.wav"
            # shellcheck disable=SC2086
            if ! ffmpeg -nostdin -v quiet -y -f lavfi -i "anoisesrc=r=$rate:d=0.5:a=0.1:seed=1" -ac "$channels" \
                $options "$input" || [ "$(probe "$input" sample_rate)" != "$rate" ]; then
                printf ' - |'
                continue
            fi
            count=$((count + 1))
            if error=$("$denoise" --force --quality fast "$input" "$work/out.wav" 2>&1 </dev/null) &&
                [ "$(probe "$work/out.wav" sample_rate)" = "$rate" ] &&
                [ "$(probe "$work/out.wav" channels)" = "$channels" ]; then
                printf ' ok |'
            else
                failures=$((failures + 1))
                printf ' **%s** |' "$(echo "$error" | tail -1)"
            fi
        done
        echo
    done
done <<'FORMATS'
u8.wav -c:a pcm_u8
s16.wav -c:a pcm_s16le
s24.wav -c:a pcm_s24le
s32.wav -c:a pcm_s32le
f32.wav -c:a pcm_f32le
f64.wav -c:a pcm_f64le
alaw.wav -c:a pcm_alaw
mulaw.wav -c:a pcm_mulaw
rf64.wav -rf64 always
s16.flac -sample_fmt s16
s24.flac -sample_fmt s32 -bits_per_raw_sample 24
s8.aiff -c:a pcm_s8
s16.aiff -c:a pcm_s16be
s24.aiff -c:a pcm_s24be
s32.aiff -c:a pcm_s32be
alac.m4a -c:a alac -sample_fmt s16p
vorbis.ogg -c:a libvorbis -q:a 4
cbr.mp3 -c:a libmp3lame -b:a 96k
vbr.mp3 -c:a libmp3lame -q:a 4
aac.m4a -c:a aac -b:a 96k
fast.m4a -c:a aac -b:a 96k -movflags +faststart
aac.aac -c:a aac -b:a 96k -f adts
FORMATS
echo
echo "$count files, $failures failures"
[ "$failures" = 0 ]
