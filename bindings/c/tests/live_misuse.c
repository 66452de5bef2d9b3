/* Misuse of the live denoiser returns a status code and a message, and has no effect. */
#include "expect.h"
#include <alphamf.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

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
    static float left[16000], right[16000];
    for (int i = 0; i < 16000; i++) {
        right[i] = 0.1f * (float)(i * 7919 % 101 - 50) / 50.0f;
        left[i] = right[i] * (i / 4000 % 2 ? 1.0f : 0.01f);
    }
    alphamf_settings *settings = alphamf_settings_new();
    EXPECT(alphamf_set(settings, "quality", "fast") == ALPHAMF_OK);
    EXPECT(alphamf_set(settings, "no_neural", "true") == ALPHAMF_OK);

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
    /* Numbers that the program takes are numbers. */
    const char *numbers[] = {"nan", "inf", "0,75", "", "1e999", ".25", "+0.5", "1.", "007.5e-1"};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        EXPECT(alphamf_set(settings, "mix", numbers[i]) == (i < 5 ? ALPHAMF_SETTING : ALPHAMF_OK));
        EXPECT(i >= 5 || strstr(alphamf_error(), ": expected a number"));
    }
    EXPECT(alphamf_set(settings, "seed", "+18446744073709551615") == ALPHAMF_OK);
    EXPECT(alphamf_set(settings, "strength", "gentle") == ALPHAMF_OK && alphamf_set(settings, "mix", ".75") == ALPHAMF_OK);
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
