/* Calls that fail while their thread ends, when the library's memory of the thread is gone: codes without a message. */
#include "expect.h"
#include <alphamf.h>
#include <pthread.h>
#include <string.h>

static pthread_key_t key;
static int worked = 1, ended = 1; /* 0: as expected */

static int end(alphamf_settings *settings) {
    EXPECT(alphamf_set(settings, "colour", "red") == ALPHAMF_SETTING);
    EXPECT(strcmp(alphamf_error(), "") == 0);
    EXPECT(alphamf_set(settings, "quality", "fast") == ALPHAMF_OK);
    alphamf_settings_free(settings);
    return 0;
}

static void at_exit(void *settings) { ended = end(settings); }

static int start(void) {
    alphamf_settings *settings = alphamf_settings_new();
    /* The thread has a message to forget. */
    EXPECT(alphamf_set(settings, "colour", "red") == ALPHAMF_SETTING && strstr(alphamf_error(), "colour"));
    EXPECT(pthread_setspecific(key, settings) == 0);
    return 0;
}

static void *work(void *unused) {
    worked = start();
    return unused;
}

int main(void) {
    pthread_t thread;
    EXPECT(pthread_key_create(&key, at_exit) == 0);
    EXPECT(pthread_create(&thread, NULL, work, NULL) == 0 && pthread_join(thread, NULL) == 0);
    EXPECT(worked == 0 && ended == 0);
    return 0;
}
