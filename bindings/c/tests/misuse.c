/* Misuse of settings and streams returns a status code and a message, and has no effect. */
#include "expect.h"
#include <alphamf.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static int stop(double seconds, void *user) {
    *(double *)user = seconds;
    return 1;
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
    EXPECT(alphamf_push(stream, channels, 8) == ALPHAMF_INPUT && strstr(alphamf_error(), "sample 8 of channel 2"));
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
    float *incomplete[] = {left, NULL};
    EXPECT(alphamf_denoise(8000, 2, settings, channels, incomplete, 4000) == ALPHAMF_INPUT);
    EXPECT(strstr(alphamf_error(), "a channel of speech is a null pointer"));
    /* Found before a stream is made: here, of a rate that there is not. */
    EXPECT(alphamf_denoise(1000, 2, settings, channels, incomplete, 4000) == ALPHAMF_INPUT);
    EXPECT(strstr(alphamf_error(), "a channel of speech is a null pointer"));
    EXPECT(alphamf_denoise(8000, 1 << 20, settings, channels, places, 4000) == ALPHAMF_INPUT);
    EXPECT(alphamf_denoise(8000, 2, settings, channels, incomplete, 0) == ALPHAMF_OK);
    EXPECT(alphamf_denoise(8000, 2, settings, channels, places, 4000) == ALPHAMF_OK && left[100] == right[100]);
    alphamf_settings_free(settings);
    return 0;
}
