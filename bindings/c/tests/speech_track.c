/* The speech track: a probability every 10 ms, and sections in order; misuse of it has no effect. */
#include "expect.h"
#include <alphamf.h>

int main(void) {
    static float samples[16000], probability[300];
    const float *channels[] = {samples};
    alphamf_segment segments[100];
    alphamf_stream *stream = NULL;

    alphamf_settings *settings = alphamf_settings_new();
    EXPECT(alphamf_set(settings, "quality", "fast") == ALPHAMF_OK && alphamf_set(settings, "no_neural", "true") == ALPHAMF_OK);
    for (int i = 0; i < 16000; i++) samples[i] = 0.1f * (float)(i * 7919 % 101 - 50) / 50.0f;
    EXPECT(alphamf_pull_probability(NULL, 0, probability, 1) == 0 && alphamf_pull_segments(NULL, 0, segments, 1) == 0);
    /* "null" restores the default. */
    EXPECT(alphamf_set(settings, "speech_track", "true") == ALPHAMF_OK);
    EXPECT(alphamf_set(settings, "speech_track", "null") == ALPHAMF_OK && alphamf_set(settings, "threads", "null") == ALPHAMF_OK);
    EXPECT(alphamf_create(8000, 1, settings, &stream) == ALPHAMF_OK);
    EXPECT(alphamf_push(stream, channels, 800) == ALPHAMF_OK && alphamf_finish(stream) == ALPHAMF_OK);
    EXPECT(alphamf_pull_probability(stream, 0, probability, 300) == 0); /* not recorded */
    alphamf_free(stream);
    EXPECT(alphamf_set(settings, "speech_track", "yes") == ALPHAMF_SETTING);
    EXPECT(alphamf_set(settings, "speech_track", "true") == ALPHAMF_OK);
    EXPECT(alphamf_create(8000, 1, settings, &stream) == ALPHAMF_OK);
    for (int i = 0; i < 16000; i++) samples[i] *= i / 4000 % 2 ? 1.0f : 0.01f;
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
    alphamf_settings_free(settings);
    return 0;
}
