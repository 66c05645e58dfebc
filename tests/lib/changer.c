/* SPDX-License-Identifier: Apache-2.0 */
#include "changer.h"

#include "test.h"

/* That it is a race is known: the sanitizer is to look for others. */
#ifdef __SANITIZE_THREAD__
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);
#define UNWATCHED_BEGIN() AnnotateIgnoreWritesBegin(__FILE__, __LINE__)
#define UNWATCHED_END()   AnnotateIgnoreWritesEnd(__FILE__, __LINE__)
#else
#define UNWATCHED_BEGIN() ((void)0)
#define UNWATCHED_END()   ((void)0)
#endif

static void *change(void *argument)
{
    struct changer *changer = argument;
    volatile int64_t *number = changer->number;
    UNWATCHED_BEGIN();
    for (unsigned i = 0; !atomic_load(&changer->ends); i++) {
        *number = changer->values[i % 2];
    }
    UNWATCHED_END();
    return NULL;
}

void changer_start(struct changer *changer, int64_t *number, int64_t one, int64_t other)
{
    *changer = (struct changer){.number = number, .values = {one, other}};
    assert_int_equal(pthread_create(&changer->thread, NULL, change, changer), 0);
}

void changer_stop(struct changer *changer)
{
    atomic_store(&changer->ends, true);
    pthread_join(changer->thread, NULL);
    *changer->number = changer->values[0];
}
