/* SPDX-License-Identifier: Apache-2.0 */
#include "coordinator/daemon/contents/recent_outputs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct recent_output {
    struct job_id job;
    char *name; /* NULL: none */
    uint64_t bytes;
    bool is_reference;
};

struct recent_outputs {
    pthread_mutex_t mutex;
    size_t next; /* where the next one goes */
    struct recent_output items[RECENT_OUTPUTS_MAX];
};

struct recent_outputs *recent_outputs_open(void)
{
    struct recent_outputs *recent = calloc(1, sizeof *recent);
    if (recent != NULL) {
        pthread_mutex_init(&recent->mutex, NULL);
    }
    return recent;
}

void recent_outputs_close(struct recent_outputs *recent)
{
    for (size_t i = 0; recent != NULL && i < RECENT_OUTPUTS_MAX; i++) {
        free(recent->items[i].name);
    }
    if (recent != NULL) {
        pthread_mutex_destroy(&recent->mutex);
        free(recent);
    }
}

static struct recent_output *find_output(
    struct recent_outputs *recent, struct job_id job, const char *name)
{
    for (size_t i = 0; i < RECENT_OUTPUTS_MAX; i++) {
        struct recent_output *item = &recent->items[i];
        if (item->name != NULL && item->job.n == job.n && strcmp(item->name, name) == 0) {
            return item;
        }
    }
    return NULL;
}

void recent_outputs_note(struct recent_outputs *recent, struct job_id job, const char *name,
    uint64_t bytes, bool is_reference)
{
    char *own = recent != NULL ? strdup(name) : NULL;
    if (own == NULL) {
        return;
    }
    pthread_mutex_lock(&recent->mutex);
    struct recent_output *item = find_output(recent, job, name);
    if (item == NULL) {
        item = &recent->items[recent->next];
        recent->next = (recent->next + 1) % RECENT_OUTPUTS_MAX;
    }
    free(item->name);
    *item = (struct recent_output){
        .job = job, .name = own, .bytes = bytes, .is_reference = is_reference};
    pthread_mutex_unlock(&recent->mutex);
}

void recent_outputs_each(struct recent_outputs *recent, struct job_id job,
    void (*visit)(void *user, const char *name, uint64_t bytes, bool is_reference), void *user)
{
    if (recent == NULL) {
        return;
    }
    pthread_mutex_lock(&recent->mutex);
    for (size_t i = 0; i < RECENT_OUTPUTS_MAX; i++) {
        const struct recent_output *item = &recent->items[i];
        if (item->name != NULL && item->job.n == job.n) {
            visit(user, item->name, item->bytes, item->is_reference);
        }
    }
    pthread_mutex_unlock(&recent->mutex);
}
