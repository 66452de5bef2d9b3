/* The setting "threads" limits the threads of all work, that of preparing settings and of noise profiles included. */
#include "expect.h"
#include <alphamf.h>
#include <stdio.h>
#include <string.h>

/* Number of threads of this process, by Linux. */
static int threads(void) {
    char line[256];
    int count = 0;
    FILE *status = fopen("/proc/self/status", "r");
    if (!status) return -1;
    while (fgets(line, sizeof line, status)) sscanf(line, "Threads: %d", &count);
    fclose(status);
    return count;
}

int main(void) {
    static float samples[16000];
    const float *channels[] = {samples};
    alphamf_stream *stream;
    alphamf_live *live;
    for (int i = 0; i < 16000; i++) samples[i] = 0.1f * (float)(i * 7919 % 101 - 50) / 50.0f;

    alphamf_settings *settings = alphamf_settings_new();
    EXPECT(alphamf_set(settings, "quality", "fast") == ALPHAMF_OK);
    EXPECT(alphamf_set(settings, "threads", "1") == ALPHAMF_OK);
    EXPECT(threads() == 1);
    EXPECT(alphamf_create(8000, 1, settings, &stream) == ALPHAMF_OK && threads() == 2);
    EXPECT(alphamf_set_noise_profile(stream, channels, 16000) == ALPHAMF_OK && threads() == 2);
    EXPECT(alphamf_push(stream, channels, 16000) == ALPHAMF_OK && alphamf_finish(stream) == ALPHAMF_OK);
    EXPECT(threads() == 2);
    EXPECT(alphamf_live_create(8000, 1, settings, 16.0, &live) == ALPHAMF_OK && threads() == 2);
    alphamf_live_free(live);
    alphamf_free(stream);
    alphamf_settings_free(settings);
    return 0;
}
