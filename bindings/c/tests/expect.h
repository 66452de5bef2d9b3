/* Ends main with a message if a condition does not hold. */
#include <alphamf.h>
#include <stdio.h>

#define EXPECT(condition)                                                            \
    do {                                                                             \
        if (!(condition)) {                                                          \
            fprintf(stderr, "%d: %s (%s)\n", __LINE__, #condition, alphamf_error()); \
            return 1;                                                                \
        }                                                                            \
    } while (0)
