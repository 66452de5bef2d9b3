/*
 * alphamf: a Bayesian speech denoiser. Made by cbindgen from bindings/c/src/lib.rs: do not edit.
 *
 * A recording goes through a stream, block by block:
 *
 *     alphamf_stream *stream;
 *     if (alphamf_create(48000, 2, NULL, &stream) != ALPHAMF_OK) puts(alphamf_error());
 *     alphamf_push(stream, channels, samples);          (again and again)
 *     count = alphamf_pull(stream, voice, NULL, room);  (after each push, while it gives any)
 *     alphamf_finish(stream);                           (then pull the rest)
 *     alphamf_free(stream);
 *
 * Samples are floats, full scale 1, finite; an array of pointers holds one for each channel.
 *
 * Sound that must come out at once goes through alphamf_live_create and alphamf_live_process.
 *
 * Threads: any function may be called from any thread. A stream, or settings that are being changed, by one thread at a
 * time; different streams, also of the same settings, at once. The library has worker threads of its own; a process
 * that has forked must not use it on, unless it executes another program.
 */

#ifndef ALPHAMF_H
#define ALPHAMF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 What came of a call; the codes are those that the program `denoise` exits with.
 */
typedef enum {
  /*
   Done.
   */
  ALPHAMF_OK = 0,
  /*
   Failed for another reason than those below.
   */
  ALPHAMF_FAILED = 1,
  /*
   A setting is unknown, out of its range, or does not go with another.
   */
  ALPHAMF_SETTING = 2,
  /*
   What was given to work on is of no use: a null pointer, samples that are not finite, a sample rate or a number of
   channels that is not served, anything after the end.
   */
  ALPHAMF_INPUT = 3,
  /*
   A dictionary is of no use.
   */
  ALPHAMF_MODEL = 5,
  /*
   The watch has ended it.
   */
  ALPHAMF_CANCELLED = 130,
} alphamf_status;

/*
 Sound on its way through the denoiser as it comes, in calls and streams.
 */
typedef struct alphamf_live alphamf_live;

/*
 Settings of streams.
 */
typedef struct alphamf_settings alphamf_settings;

/*
 A recording on its way through the denoiser.
 */
typedef struct alphamf_stream alphamf_stream;

/*
 Is told the seconds of the recording that are done, and ends the work by returning anything but 0. It may be called
 from any thread, but by one at a time, and must not call functions on the same stream.
 */
typedef int (*alphamf_watch)(double seconds, void *user);

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/*
 The version of the library.
 */
const char *alphamf_version(void);

/*
 What was wrong with the last call on this thread that failed, in words; valid until the next one fails.
 */
const char *alphamf_error(void);

/*
 New settings, all at their defaults; to be freed by alphamf_settings_free.
 */
alphamf_settings *alphamf_settings_new(void);

/*
 Changes a setting: those of the program `denoise` by the names of its options, with _ for -, such as
 ("strength", "gentle"), ("mix", "0.8"), ("channels", "separate"), ("no_neural", "true") or
 ("threads", "2"). Streams that exist are not changed.

 Returns ALPHAMF_SETTING for a name that is unknown or a value that is none; what goes with what, and most ranges, are
 checked by alphamf_create.

 # Safety
 `settings` are those of `alphamf_settings_new`; the texts end with a zero.
 */
alphamf_status alphamf_set(alphamf_settings *settings,
                           const char *name,
                           const char *value);

/*
 Takes a dictionary, in place of the one that is built in, from the bytes of a file that `denoise train` made.

 # Safety
 `settings` are those of `alphamf_settings_new`; `bytes` points to `length` bytes.
 */
alphamf_status alphamf_set_dictionary(alphamf_settings *settings,
                                      const uint8_t *bytes,
                                      size_t length);

/*
 Frees settings; nothing happens for NULL. Streams that were created with them live on.

 # Safety
 They are those of `alphamf_settings_new`, and not used any more.
 */
void alphamf_settings_free(alphamf_settings *settings);

/*
 Begins a recording of so many samples per second (8000 to 192000) and channels (1 to 256, and no more than 64 x 48000
 samples per second together), with these settings or, if they are NULL, the defaults. The stream is to be freed by
 alphamf_free. The first stream of some settings takes a moment longer: it fills tables that others share.

 # Safety
 `settings` is null or of `alphamf_settings_new`; `stream` points to a place for a pointer, which is set to NULL on
 failure.
 */
alphamf_status alphamf_create(uint32_t sample_rate,
                              uint32_t channels,
                              const alphamf_settings *settings,
                              alphamf_stream **stream);

/*
 Lets the noise start from a stretch that holds nothing else, of the same sample rate and channels. Before the first
 push.

 # Safety
 `stream` is that of `alphamf_create`; `channels` points to a pointer for each channel, each to so many samples.
 */
alphamf_status alphamf_set_noise_profile(alphamf_stream *stream,
                                  const float *const *channels,
                                  size_t samples);

/*
 Lets a function watch the work of a stream, and end it; none if `watch` is NULL. What was ended can only be freed.

 # Safety
 `stream` is that of `alphamf_create`; `user` may be used by `watch` from any thread, as long as the stream lives.
 */
alphamf_status alphamf_set_watch(alphamf_stream *stream,
                                 alphamf_watch watch,
                                 void *user);

/*
 The most samples per channel that may have gone in and not come out yet after a push; 0 for NULL.

 # Safety
 `stream` is NULL or that of `alphamf_create`.
 */
size_t alphamf_latency(const alphamf_stream *stream);

/*
 Takes the next samples of every channel. Most calls return at once; one in about four seconds of the recording works
 on a block. The result does not depend on how samples are divided into calls. What is refused leaves nothing behind.

 # Safety
 `stream` is that of `alphamf_create`; `channels` points to a pointer for each channel, each to so many samples.
 */
alphamf_status alphamf_push(alphamf_stream *stream,
                            const float *const *channels,
                            size_t samples);

/*
 Ends the recording: what is still to come can be pulled. As many samples come out as went in.

 # Safety
 `stream` is that of `alphamf_create`.
 */
alphamf_status alphamf_finish(alphamf_stream *stream);

/*
 How many samples per channel can be pulled; 0 for NULL.

 # Safety
 `stream` is NULL or that of `alphamf_create`.
 */
size_t alphamf_available(const alphamf_stream *stream);

/*
 Writes the next samples of every channel that are done, at most so many: of the voice, and of what was taken out.
 Either may be NULL and is left out. Returns how many were written for each channel.

 # Safety
 `stream` is NULL or that of `alphamf_create`; `voice` and `residual` are NULL or point to a pointer for each channel,
 each to room for so many samples, which do not overlap.
 */
size_t alphamf_pull(alphamf_stream *stream,
                    float *const *voice,
                    float *const *residual,
                    size_t samples);

/*
 What was found so far, as JSON: what `denoise --stats` tells of a file's samples. Valid until the next call on the
 stream; an empty text for NULL.

 # Safety
 `stream` is NULL or that of `alphamf_create`.
 */
const char *alphamf_statistics(alphamf_stream *stream);

/*
 Frees a stream, finished or not; nothing happens for NULL.

 # Safety
 It is that of `alphamf_create`, and not used any more.
 */
void alphamf_free(alphamf_stream *stream);

/*
 Denoises a recording that is in memory as a whole, with these settings or, if they are NULL, the defaults. What it
 writes may be where it reads.

 # Safety
 As for `alphamf_create`, `alphamf_push` and `alphamf_pull`.
 */
alphamf_status alphamf_denoise(uint32_t sample_rate,
                               uint32_t channels,
                               const alphamf_settings *settings,
                               const float *const *noisy,
                               float *const *voice,
                               size_t samples);

/*
 Begins sound that is denoised as it comes: what goes in comes out `latency` milliseconds (4 to 32) later. Of the
 settings, which may be NULL for the defaults, the dictionary, the listener, floor_db, mix and the exponents count. To
 be freed by alphamf_live_free.

 # Safety
 `settings` is null or of `alphamf_settings_new`; `live` points to a place for a pointer, which is set to NULL on
 failure.
 */
alphamf_status alphamf_live_create(uint32_t sample_rate,
                                   uint32_t channels,
                                   const alphamf_settings *settings,
                                   double latency,
                                   alphamf_live **live);

/*
 Takes so many samples of every channel, interleaved, and gives as many. It allocates nothing and never waits: made to
 be called from an audio callback. The result does not depend on the size of the blocks.

 # Safety
 `live` is that of `alphamf_live_create`; `input` points to samples x channels numbers, `output` to room for as many,
 and the two do not overlap.
 */
alphamf_status alphamf_live_process(alphamf_live *live,
                                    const float *input,
                                    float *output,
                                    size_t samples);

/*
 Changes what may change meanwhile, smoothly: the power that gains are raised to (0 to 2; 1 at first), the least gain
 (-100 to 0 dB), how much of the result is the voice (0 to 1), and whether the sound passes as it came. What is out of
 its range is taken for the nearest in it. Between two calls of alphamf_live_process, never during one.

 # Safety
 `live` is that of `alphamf_live_create`.
 */
alphamf_status alphamf_live_set(alphamf_live *live,
                                float strength,
                                float floor_db,
                                float mix,
                                bool bypass);

/*
 Samples from what comes in to what goes out; 0 for NULL.

 # Safety
 `live` is NULL or that of `alphamf_live_create`.
 */
size_t alphamf_live_latency(const alphamf_live *live);

/*
 Forgets all that has come.

 # Safety
 `live` is that of `alphamf_live_create`.
 */
alphamf_status alphamf_live_reset(alphamf_live *live);

/*
 Frees it; nothing happens for NULL.

 # Safety
 It is that of `alphamf_live_create`, and not used any more.
 */
void alphamf_live_free(alphamf_live *live);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* ALPHAMF_H */
