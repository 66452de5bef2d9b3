/* Denoises raw samples from standard input to standard output: 16 bits in native byte order, one channel:
 *
 *     denoise RATE [NAME=VALUE]... < noisy.raw > speech.raw
 */
#include <alphamf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096 };

static int fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, alphamf_error());
    return EXIT_FAILURE;
}

/* Writes all completed samples. */
static int drain(alphamf_stream *stream) {
    float speech[BLOCK];
    float *channels[] = {speech};
    size_t count;
    while ((count = alphamf_pull(stream, channels, NULL, BLOCK)) > 0) {
        short codes[BLOCK];
        for (size_t i = 0; i < count; i++) {
            long code = lrintf(speech[i] * 32768.0f);
            codes[i] = (short)(code > 32767 ? 32767 : code < -32768 ? -32768 : code);
        }
        if (fwrite(codes, sizeof codes[0], count, stdout) != count) return -1;
    }
    return 0;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: %s RATE [NAME=VALUE]...\n", argv[0]);
        return EXIT_FAILURE;
    }
    alphamf_settings *settings = alphamf_settings_new();
    for (int i = 2; i < argc; i++) {
        char *value = strchr(argv[i], '=');
        if (value) *value++ = '\0';
        if (alphamf_set(settings, argv[i], value) != ALPHAMF_OK) {
            alphamf_settings_free(settings);
            return fail(argv[i]);
        }
    }
    alphamf_stream *stream;
    alphamf_status status = alphamf_create((uint32_t)strtoul(argv[1], NULL, 10), 1, settings, &stream);
    alphamf_settings_free(settings);
    if (status != ALPHAMF_OK) return fail("cannot create a stream");

    short codes[BLOCK];
    size_t count;
    int written = 0;
    while (status == ALPHAMF_OK && !written && (count = fread(codes, sizeof codes[0], BLOCK, stdin)) > 0) {
        float samples[BLOCK];
        const float *channels[] = {samples};
        for (size_t i = 0; i < count; i++) samples[i] = (float)codes[i] / 32768.0f;
        status = alphamf_push(stream, channels, count);
        if (status == ALPHAMF_OK) written = drain(stream);
    }
    if (status == ALPHAMF_OK) status = alphamf_finish(stream);
    if (status == ALPHAMF_OK) written = drain(stream);
    if (status == ALPHAMF_OK) fprintf(stderr, "%s\n", alphamf_statistics(stream));
    alphamf_free(stream);
    if (status != ALPHAMF_OK) return fail("cannot denoise");
    return written ? EXIT_FAILURE : EXIT_SUCCESS;
}
