/* Misuse returns a status code and a message, and has no effect. */
#include "expect.h"
#include <alphamf.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static int stop(double seconds, void *user) {
    *(double *)user = seconds;
    return 1;
}

static void count_starts(bool speaking, uint64_t sample, void *user) {
    ((uint64_t *)user)[0] += speaking;
    ((uint64_t *)user)[1] = sample;
}

/* Output in the memory of the input is that in other memory. */
static int in_place(const alphamf_settings *settings, uint32_t width) {
    static float same[16000], input[16000], output[16000];
    alphamf_live *live, *other;
    double loud = 0.0;
    EXPECT(alphamf_live_create(8000, width, settings, 16.0, &live) == ALPHAMF_OK);
    EXPECT(alphamf_live_create(8000, width, settings, 16.0, &other) == ALPHAMF_OK);
    for (int i = 0; i < 16000; i++) same[i] = input[i] = 0.1f * (float)(i * 7919 % 101 - 50) / 50.0f;
    for (size_t i = 0; i < 16000; i += 1600) {
        EXPECT(alphamf_live_process(live, same + i, same + i, 1600 / width) == ALPHAMF_OK);
        EXPECT(alphamf_live_process(other, input + i, output + i, 1600 / width) == ALPHAMF_OK);
    }
    for (int i = 0; i < 16000; i++) loud += fabsf(output[i]);
    EXPECT(loud > 0.1 && memcmp(same, output, sizeof same) == 0);
    alphamf_live_free(live);
    alphamf_live_free(other);
    return 0;
}

int main(void) {
    static float left[80000], right[80000];
    const float *channels[] = {left, right};
    float *places[] = {left, right};
    double seen = -1.0;
    alphamf_stream *stream = (alphamf_stream *)&seen;

    EXPECT(strlen(alphamf_version()) >= 5);
    EXPECT(alphamf_set(NULL, "mix", "1") == ALPHAMF_INPUT);
    EXPECT(alphamf_create(8000, 1, NULL, NULL) == ALPHAMF_INPUT);
    EXPECT(alphamf_create(1000, 1, NULL, &stream) == ALPHAMF_INPUT && stream == NULL);
    EXPECT(strstr(alphamf_error(), "1000 Hz"));
    EXPECT(alphamf_push(NULL, channels, 1) == ALPHAMF_INPUT);
    EXPECT(alphamf_finish(NULL) == ALPHAMF_INPUT && alphamf_pull(NULL, places, NULL, 1) == 0);
    EXPECT(alphamf_latency(NULL) == 0 && alphamf_available(NULL) == 0 && !*alphamf_statistics(NULL));
    alphamf_free(NULL);
    alphamf_settings_free(NULL);

    alphamf_settings *settings = alphamf_settings_new();
    EXPECT(alphamf_set(settings, "quality", NULL) == ALPHAMF_INPUT);
    EXPECT(alphamf_set(settings, "quality", "best") == ALPHAMF_SETTING);
    EXPECT(strstr(alphamf_error(), "`quality` is \"best\": expected normal or fast"));
    EXPECT(alphamf_set(settings, "model", "x") == ALPHAMF_SETTING && strstr(alphamf_error(), "option is model"));
    EXPECT(strstr(alphamf_error(), "impulses, threads, speech_track") && !strstr(alphamf_error(), "no_dither"));
    EXPECT(alphamf_set(settings, "quality", "fast") == ALPHAMF_OK);
    EXPECT(alphamf_set(settings, "no_neural", "true") == ALPHAMF_OK);
    EXPECT(alphamf_set(settings, "sampler", "hmc") == ALPHAMF_OK);
    EXPECT(alphamf_create(8000, 2, settings, &stream) == ALPHAMF_SETTING && strstr(alphamf_error(), "no effect"));
    EXPECT(alphamf_set(settings, "sampler", "null") == ALPHAMF_OK);
    EXPECT(alphamf_set_dictionary(settings, (const uint8_t *)"no", 2) == ALPHAMF_MODEL);
    EXPECT(alphamf_create(8000, 2, settings, &stream) == ALPHAMF_OK && stream);

    EXPECT(alphamf_push(stream, NULL, 1) == ALPHAMF_INPUT);
    EXPECT(alphamf_set_noise_profile(stream, channels, 8000) == ALPHAMF_SETTING); /* silence */
    right[7] = NAN;
    EXPECT(alphamf_push(stream, channels, 8) == ALPHAMF_INPUT && strstr(alphamf_error(), "sample 7 of channel 1"));
    right[7] = 0.25f;
    EXPECT(alphamf_push(stream, channels, 4000) == ALPHAMF_OK && alphamf_available(stream) == 0);
    EXPECT(alphamf_finish(stream) == ALPHAMF_OK && alphamf_available(stream) == 4000);
    EXPECT(alphamf_pull(stream, NULL, places, 1500) == 1500 && alphamf_available(stream) == 2500);
    EXPECT(alphamf_pull(stream, places, NULL, 80000) == 2500 && alphamf_pull(stream, places, NULL, 1) == 0);
    EXPECT(alphamf_push(stream, channels, 1) == ALPHAMF_INPUT && strstr(alphamf_error(), "has ended"));
    alphamf_free(stream);

    for (int i = 0; i < 80000; i++) left[i] = right[i] = 0.1f * (float)(i * 7919 % 101 - 50) / 50.0f;
    EXPECT(alphamf_create(8000, 2, settings, &stream) == ALPHAMF_OK);
    EXPECT(alphamf_set_noise_profile(stream, channels, 4000) == ALPHAMF_OK);
    EXPECT(alphamf_set_progress(stream, stop, &seen) == ALPHAMF_OK);
    EXPECT(alphamf_push(stream, channels, 80000) == ALPHAMF_CANCELLED && seen >= 0.0);
    alphamf_free(stream);

    EXPECT(alphamf_denoise(8000, 2, settings, channels, NULL, 4000) == ALPHAMF_INPUT);
    EXPECT(alphamf_denoise(8000, 2, settings, channels, places, 4000) == ALPHAMF_OK && left[100] == right[100]);

    /* A probability every 10 ms, and sections in order. */
    static float probability[300];
    alphamf_segment segments[100];
    EXPECT(alphamf_pull_probability(NULL, 0, probability, 1) == 0 && alphamf_pull_segments(NULL, 0, segments, 1) == 0);
    EXPECT(alphamf_create(8000, 1, settings, &stream) == ALPHAMF_OK);
    EXPECT(alphamf_push(stream, channels, 800) == ALPHAMF_OK && alphamf_finish(stream) == ALPHAMF_OK);
    EXPECT(alphamf_pull_probability(stream, 0, probability, 300) == 0); /* not recorded */
    alphamf_free(stream);
    EXPECT(alphamf_set(settings, "speech_track", "yes") == ALPHAMF_SETTING);
    EXPECT(alphamf_set(settings, "speech_track", "true") == ALPHAMF_OK);
    EXPECT(alphamf_create(8000, 1, settings, &stream) == ALPHAMF_OK);
    for (int i = 0; i < 16000; i++) left[i] *= i / 4000 % 2 ? 1.0f : 0.01f;
    EXPECT(alphamf_push(stream, channels, 16000) == ALPHAMF_OK && alphamf_finish(stream) == ALPHAMF_OK);
    EXPECT(alphamf_pull_probability(stream, 0, NULL, 1) == 0 && alphamf_pull_probability(stream, 1, probability, 1) == 0);
    EXPECT(alphamf_pull_probability(stream, 0, probability, 150) == 150);
    EXPECT(alphamf_pull_probability(stream, 0, probability + 150, 150) == 50);
    for (int i = 0; i < 200; i++) EXPECT(probability[i] >= 0.0f && probability[i] <= 1.0f);
    size_t count = alphamf_pull_segments(stream, 0, segments, 100);
    for (size_t i = 0; i < count; i++) {
        EXPECT(segments[i].start_seconds < segments[i].end_seconds && segments[i].end_seconds <= 2.0);
        EXPECT(i == 0 || segments[i - 1].end_seconds < segments[i].start_seconds);
    }
    EXPECT(alphamf_pull_segments(stream, 0, segments, 100) == 0);
    alphamf_free(stream);

    alphamf_live *live;
    EXPECT(alphamf_live_create(8000, 2, settings, 100.0, &live) == ALPHAMF_SETTING && !live);
    EXPECT(strstr(alphamf_error(), "latency is 100; expected 4 to 64"));
    EXPECT(alphamf_live_create(8000, 2, settings, 16.0, &live) == ALPHAMF_OK && alphamf_live_latency(live) == 128);
    EXPECT(alphamf_live_process(live, NULL, left, 10) == ALPHAMF_INPUT);
    EXPECT(alphamf_live_process(live, NULL, NULL, 0) == ALPHAMF_OK);
    EXPECT(alphamf_live_process(live, left, right, 4000) == ALPHAMF_OK);
    EXPECT(alphamf_live_reset(live) == ALPHAMF_OK);
    EXPECT(alphamf_live_set(live, 1.0f, -20.0f, 1.0f, true) == ALPHAMF_OK);
    EXPECT(alphamf_live_process(live, left, right, 4000) == ALPHAMF_OK);
    for (int i = 2000; i < 8000; i++) EXPECT(right[i] == left[i - 256]);
    EXPECT(alphamf_live_process(NULL, left, right, 1) == ALPHAMF_INPUT && alphamf_live_latency(NULL) == 0);
    EXPECT(alphamf_live_set_voice(NULL, 0.5f, 300.0f) == ALPHAMF_INPUT);
    EXPECT(alphamf_live_learn_noise(live, -1.0) == ALPHAMF_SETTING && strstr(alphamf_error(), "seconds is -1; expected 0 or more"));
    EXPECT(alphamf_live_learn_noise(live, NAN) == ALPHAMF_SETTING);
    EXPECT(alphamf_live_learn_noise(live, INFINITY) == ALPHAMF_OK && alphamf_live_learn_noise(live, 0.0) == ALPHAMF_OK);
    EXPECT(alphamf_live_on_voice(NULL, NULL, NULL) == ALPHAMF_INPUT);
    EXPECT(!alphamf_live_speaking(NULL) && alphamf_live_speech_probability(NULL) == 0.0f);
    /* A threshold of 0 is always reached: one start, at the first hop. */
    uint64_t starts[2] = {0, 0};
    EXPECT(alphamf_live_reset(live) == ALPHAMF_OK && alphamf_live_on_voice(live, count_starts, starts) == ALPHAMF_OK);
    EXPECT(alphamf_live_set_voice(live, 0.0f, 300.0f) == ALPHAMF_OK);
    EXPECT(alphamf_live_process(live, left, right, 4000) == ALPHAMF_OK);
    EXPECT(starts[0] == 1 && starts[1] == 64 && alphamf_live_speaking(live));
    EXPECT(alphamf_live_on_voice(live, NULL, NULL) == ALPHAMF_OK);

    EXPECT(in_place(settings, 1) == 0 && in_place(settings, 2) == 0);

    /* Controls that are not set stay: NAN keeps a number. */
    float exponent = 7.0f, floor = 7.0f, mix = 7.0f;
    bool bypass = true;
    EXPECT(alphamf_live_controls(NULL, &exponent, &floor, &mix, &bypass) == ALPHAMF_INPUT && floor == 7.0f);
    alphamf_live *gentle;
    EXPECT(alphamf_set(settings, "strength", "gentle") == ALPHAMF_OK && alphamf_set(settings, "mix", "0.75") == ALPHAMF_OK);
    EXPECT(alphamf_live_create(8000, 1, settings, 16.0, &gentle) == ALPHAMF_OK);
    for (int turn = 0; turn < 3; turn++) {
        EXPECT(alphamf_live_controls(gentle, &exponent, &floor, &mix, &bypass) == ALPHAMF_OK);
        EXPECT(exponent == 1.0f && floor == -12.0f && mix == 0.75f && bypass == (turn == 1));
        EXPECT(alphamf_live_set(gentle, NAN, NAN, NAN, turn == 0) == ALPHAMF_OK);
    }
    EXPECT(alphamf_live_set(gentle, 5.0f, NAN, NAN, false) == ALPHAMF_OK);
    EXPECT(alphamf_live_controls(gentle, &exponent, NULL, NULL, NULL) == ALPHAMF_OK && exponent == 2.0f);
    EXPECT(alphamf_live_set_voice(gentle, 0.0f, 300.0f) == ALPHAMF_OK);
    EXPECT(alphamf_live_set_voice(gentle, NAN, NAN) == ALPHAMF_OK);
    EXPECT(alphamf_live_process(gentle, left, right, 4000) == ALPHAMF_OK && alphamf_live_speaking(gentle));
    alphamf_live_free(gentle);

    /* While noise is learned, the denoised signal is at the floor, and there is no speech. */
    alphamf_meters meters = {1.0f, 1.0f, 1.0f, 1.0f};
    EXPECT(alphamf_live_meters(NULL, &meters) == ALPHAMF_INPUT && alphamf_live_meters(live, NULL) == ALPHAMF_INPUT);
    EXPECT(alphamf_live_learn_noise(NULL, 1.0) == ALPHAMF_INPUT);
    EXPECT(alphamf_live_set(live, 1.0f, -20.0f, 1.0f, false) == ALPHAMF_OK && alphamf_live_reset(live) == ALPHAMF_OK);
    EXPECT(alphamf_live_meters(live, &meters) == ALPHAMF_OK && meters.noise_dbfs < -119.0f && meters.gain_db == 0.0f);
    EXPECT(alphamf_live_learn_noise(live, INFINITY) == ALPHAMF_OK);
    EXPECT(alphamf_live_process(live, left, right, 8000) == ALPHAMF_OK && alphamf_live_meters(live, &meters) == ALPHAMF_OK);
    EXPECT(fabsf(meters.gain_db + 20.0f) < 0.1f && meters.speech_probability == 0.0f);
    EXPECT(meters.speech_dbfs < meters.noise_dbfs - 10.0f && meters.noise_dbfs < -10.0f);
    EXPECT(alphamf_live_learn_noise(live, 0.0) == ALPHAMF_OK);
    EXPECT(alphamf_live_process(live, left, right, 8000) == ALPHAMF_OK && alphamf_live_meters(live, &meters) == ALPHAMF_OK);
    EXPECT(meters.speech_probability == alphamf_live_speech_probability(live));
    alphamf_live_free(live);
    alphamf_live_free(NULL);
    alphamf_settings_free(settings);
    return 0;
}
