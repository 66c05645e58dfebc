/* SPDX-License-Identifier: Apache-2.0
 * The provider: one thread looks while the others use the present credentials, or wait for the
 * first. What was taken stays until it is given back, also when there are newer ones. */
#include "common/storage/s3/credentials.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "common/base/thread.h"
#include "common/base/clock.h"
#include "common/base/fault.h"
#include "common/pure/assert.h"
#include "common/storage/s3/secret.h"
#include "common/storage/s3/sources.h"

#define LOOK_AGAIN_US UINT64_C(5000000) /* after a look that gave none, or none that last */

struct s3_provider {
    struct s3_provider_options options;
    pthread_mutex_t mutex;    /* of all that follows */
    pthread_cond_t changed;   /* a look ended */
    struct s3_found *present; /* NULL: none yet. It has a reference of its own */
    bool looking;             /* a thread looks, without the mutex */
    bool looked;              /* at looked_us */
    uint64_t looked_us;
    struct cadre_error failure; /* of that look; CADRE_OK: none */
};

static uint64_t now_of(const struct s3_provider *provider)
{
    const struct s3_provider_options *options = &provider->options;
    return options->now_us != NULL ? options->now_us(options->user) : clock_wall_us();
}

cadre_status s3_provider_open(const struct s3_provider_options *options,
    struct s3_provider **ret_provider, struct cadre_error *error)
{
    struct s3_provider *provider =
        fault_point("storage.memory") ? NULL : calloc(1, sizeof *provider);
    if (provider == NULL) {
        return cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED, "no memory for credentials");
    }
    provider->options = *options;
    (void)pthread_mutex_init(&provider->mutex, NULL);
    (void)pthread_cond_init(&provider->changed, NULL);
    *ret_provider = provider;
    return CADRE_OK;
}

static void release(struct s3_found *found)
{
    if (found == NULL) {
        return;
    }
    CADRE_ASSERT(found->references > 0);
    found->references--;
    if (found->references == 0) {
        s3_secret_free(found, sizeof *found);
    }
}

void s3_provider_close(struct s3_provider *provider)
{
    if (provider == NULL) {
        return;
    }
    CADRE_ASSERT(!provider->looking);
    CADRE_ASSERT(provider->present == NULL || provider->present->references == 1);
    release(provider->present);
    (void)pthread_cond_destroy(&provider->changed);
    (void)pthread_mutex_destroy(&provider->mutex);
    free(provider);
}

static bool is_usable(const struct s3_provider *provider, uint64_t now_us)
{
    return provider->present != NULL && now_us < provider->present->credentials.ends_us;
}

static bool is_due(const struct s3_provider *provider, uint64_t now_us)
{
    uint64_t ends_us = provider->present->credentials.ends_us;
    return ends_us != UINT64_MAX && ends_us < now_us + S3_RENEW_BEFORE_US;
}

/* A clock that is set back ends the pause: the difference is a large number then. */
static bool looked_lately(const struct s3_provider *provider, uint64_t now_us)
{
    return provider->looked && now_us - provider->looked_us < LOOK_AGAIN_US;
}

static void show_time(uint64_t us, char *ret_text, size_t size)
{
    time_t seconds = (time_t)(us / CADRE_US_PER_S);
    struct tm tm;
    ret_text[0] = '\0';
    if (gmtime_r(&seconds, &tm) != NULL) {
        (void)strftime(ret_text, size, "%Y-%m-%d %H:%M:%S UTC", &tm);
    }
}

/* "the credentials of X ended at T": of `found`, for a sentence. */
static cadre_status blame_end(const struct s3_found *found, bool is_new, struct cadre_error *error)
{
    char when[40];
    show_time(found->credentials.ends_us, when, sizeof when);
    if (is_new) {
        return cadre_error_set(error, CADRE_UNAUTHENTICATED,
            "the credentials of %s, which are new, ended at %s: is this host's clock right?",
            found->source, when);
    }
    return cadre_error_wrap(error, CADRE_UNAUTHENTICATED,
        "the credentials of %s ended at %s, and no new ones came", found->source, when);
}

/* With the mutex held, which it lets others have meanwhile. */
static void look(struct s3_provider *provider)
{
    struct cadre_error error = {.code = CADRE_OK};
    provider->looking = true;
    pthread_mutex_unlock(&provider->mutex);
    struct s3_found *found = s3_secret_new(sizeof *found);
    cadre_status status = found != NULL ? s3_sources_find(&provider->options, found, &error)
                                        : cadre_error_set(&error, CADRE_RESOURCE_EXHAUSTED,
                                              "no memory for credentials");
    uint64_t now_us = now_of(provider);
    pthread_mutex_lock(&provider->mutex);
    provider->looking = false;
    provider->looked = true;
    provider->looked_us = now_us;
    if (status == CADRE_OK && found->credentials.ends_us <= now_us) {
        status = blame_end(found, true, &error);
    }
    provider->failure = error;
    provider->failure.code = status;
    if (status == CADRE_OK) {
        found->references = 1;
        release(provider->present);
        provider->present = found;
    } else {
        s3_secret_free(found, sizeof *found);
    }
    pthread_cond_broadcast(&provider->changed);
}

static cadre_status wait_for_look(
    struct s3_provider *provider, uint64_t deadline_us, struct cadre_error *error)
{
    (void)thread_wait_until(&provider->changed, &provider->mutex, deadline_us);
    if (provider->looking && clock_monotonic_us() >= deadline_us) {
        return cadre_error_set(error, CADRE_DEADLINE_EXCEEDED,
            "no credentials for the object store in time: their source is slow to answer");
    }
    return CADRE_PENDING;
}

/* CADRE_PENDING: something changed, so it is to be called again. */
static cadre_status try_take(struct s3_provider *provider, uint64_t deadline_us,
    const struct s3_credentials **ret_credentials, struct cadre_error *error)
{
    uint64_t now_us = now_of(provider);
    bool lately = looked_lately(provider, now_us);
    if (is_usable(provider, now_us) && (provider->looking || lately || !is_due(provider, now_us))) {
        provider->present->references++;
        *ret_credentials = &provider->present->credentials;
        return CADRE_OK;
    }
    if (provider->looking) {
        return wait_for_look(provider, deadline_us, error);
    }
    if (!lately || provider->failure.code == CADRE_OK) {
        look(provider);
        return CADRE_PENDING;
    }
    cadre_status status =
        cadre_error_set(error, provider->failure.code, "%s", provider->failure.text);
    bool ended = provider->present != NULL && status != CADRE_CANCELLED;
    return ended ? blame_end(provider->present, false, error) : status;
}

cadre_status s3_provider_take(struct s3_provider *provider, uint64_t deadline_us,
    const struct s3_credentials **ret_credentials, struct cadre_error *error)
{
    cadre_status status = CADRE_PENDING;
    pthread_mutex_lock(&provider->mutex);
    while (status == CADRE_PENDING) {
        status = try_take(provider, deadline_us, ret_credentials, error);
    }
    pthread_mutex_unlock(&provider->mutex);
    return status;
}

/* What it is a part of. */
static struct s3_found *found_of(const struct s3_credentials *credentials)
{
    _Static_assert(offsetof(struct s3_found, credentials) == 0, "the first member");
    return (struct s3_found *)(uintptr_t)credentials;
}

void s3_provider_give_back(struct s3_provider *provider, const struct s3_credentials *credentials)
{
    if (credentials == NULL) {
        return;
    }
    pthread_mutex_lock(&provider->mutex);
    release(found_of(credentials));
    pthread_mutex_unlock(&provider->mutex);
}

void s3_provider_refuse(struct s3_provider *provider, const struct s3_credentials *credentials)
{
    pthread_mutex_lock(&provider->mutex);
    if (provider->present == found_of(credentials)) {
        provider->present = NULL;
        provider->looked = false;
        release(found_of(credentials));
    }
    pthread_mutex_unlock(&provider->mutex);
}
