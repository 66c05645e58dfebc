/* SPDX-License-Identifier: Apache-2.0
 * Three servers in a ring that keep each other's copies, under faults drawn from a seed: they lose
 * their memory, or keep it; they run on after they were replaced, and a client still sends to
 * them; the coordinator is away. What was acknowledged, by whomever, is there at the end.
 *
 * CADRE_TEST_FAULTS, CADRE_TEST_SEED: more, and others. */
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/pure/prng.h"
#include "server_rig.h"
#include "tests/lib/rounds.h"
#include "worker/library/ps/server/server_internal.h"

enum { SERVERS = RIG_SERVERS, ROWS = 4, ROW_ELEMENTS = 8, FAULTS = 60 };

/* Adds 1 to every element of a server's shard, again and again. */
struct pusher {
    struct pusher *next;
    struct client *client;
    uint32_t server;
    uint64_t closure; /* that it is at; UINT64_MAX: none */
    atomic_bool ends;
    atomic_uint sent;
    atomic_uint acknowledged;
    pthread_t thread;
};

struct faults_run {
    struct rig rig;
    struct prng prng;
    int memory[SERVERS];
    struct pusher pushers[SERVERS];
    float sent[SERVERS]; /* by those who asked a server that had been replaced */
    float acknowledged[SERVERS];
};

/* Closures are numbered as they begin; those below all that are under way are done for good. */
static struct {
    pthread_mutex_t lock;
    uint64_t last;
    struct pusher *first;
} closures = {.lock = PTHREAD_MUTEX_INITIALIZER};

static uint64_t closure_begin(struct pusher *self, uint64_t *ret_done_watermark)
{
    pthread_mutex_lock(&closures.lock);
    uint64_t closure = ++closures.last;
    self->closure = closure;
    *ret_done_watermark = closure;
    for (const struct pusher *each = closures.first; each != NULL; each = each->next) {
        *ret_done_watermark =
            each->closure < *ret_done_watermark ? each->closure : *ret_done_watermark;
    }
    pthread_mutex_unlock(&closures.lock);
    return closure;
}

static void *push_on(void *argument)
{
    struct pusher *self = argument;
    float ones[ROWS * ROW_ELEMENTS];
    for (size_t i = 0; i < ROWS * ROW_ELEMENTS; i++) {
        ones[i] = 1;
    }
    struct request push = {.kind = REQUEST_PUSH,
        .server = self->server,
        .row_bytes = ROW_ELEMENTS * sizeof(float),
        .push = {.kind = PUSH_ADD, .rows = ROWS, .rate = NAN, .based_on = PUSH_ANY_VERSION},
        .values = ones};
    cadre_status status = CADRE_OK;
    while (status == CADRE_OK && !atomic_load(&self->ends)) {
        struct cadre_error error = {0};
        uint64_t done_watermark;
        atomic_fetch_add(&self->sent, 1);
        push.push.closure = closure_begin(self, &done_watermark);
        status = client_call(self->client, &push, 1, done_watermark, &error);
        if (status == CADRE_OK) {
            atomic_fetch_add(&self->acknowledged, 1);
        } else if (status != CADRE_CANCELLED) {
            fprintf(stderr, "a push to ps %u failed: %s\n", self->server, error.text);
        }
    }
    return NULL;
}

static void pusher_start(struct pusher *self, struct client *client, uint32_t server)
{
    *self = (struct pusher){.client = client, .server = server, .closure = UINT64_MAX};
    pthread_mutex_lock(&closures.lock);
    self->next = closures.first;
    closures.first = self;
    pthread_mutex_unlock(&closures.lock);
    pthread_create(&self->thread, NULL, push_on, self);
}

static void pusher_join(struct pusher *self)
{
    pthread_join(self->thread, NULL);
    pthread_mutex_lock(&closures.lock);
    struct pusher **at = &closures.first;
    while (*at != self) {
        at = &(*at)->next;
    }
    *at = self->next;
    pthread_mutex_unlock(&closures.lock);
}

struct more {
    struct pusher *pusher;
    unsigned least;
};

static bool is_more(void *data)
{
    const struct more *more = data;
    return atomic_load(&more->pusher->acknowledged) >= more->least;
}

/* Each of them has got on. */
static void await_pushes(struct faults_run *faults_run)
{
    for (uint32_t i = 0; i < SERVERS; i++) {
        struct pusher *pusher = &faults_run->pushers[i];
        struct more more = {pusher, atomic_load(&pusher->acknowledged) + 3};
        assert_true(test_wait(is_more, &more, RIG_PATIENCE_US));
    }
}

static bool never(void *data)
{
    (void)data;
    return false;
}

/* Faults come at any time. */
static void pause_us(struct faults_run *faults_run, uint64_t most_us)
{
    (void)test_wait(never, NULL, prng_uniform(&faults_run->prng, most_us));
}

static void start(struct faults_run *faults_run, uint32_t index, bool keeps)
{
    if (!keeps) {
        close(faults_run->memory[index]);
        faults_run->memory[index] = memfd_create("ps", MFD_CLOEXEC);
    }
    rig_start(&faults_run->rig, index, faults_run->memory[index]);
}

/* It is replaced while it runs, and a client without that message sends requests to it. */
static void replace(struct faults_run *faults_run, uint32_t index)
{
    struct rig *rig = &faults_run->rig;
    struct rig_partitioned partitioned;
    struct pusher pusher;
    struct directory *stale = rig_directory(rig, 2, 2);
    struct client *client = rig_client_of(stale, RIG_PATIENCE_US);
    pusher_start(&pusher, client, index);
    pause_us(faults_run, 5000);
    rig_partition(rig, index, &partitioned);
    pause_us(faults_run, 5000);
    rig_disconnect(rig, false);
    faults_run->memory[index] = memfd_create("ps", MFD_CLOEXEC); /* the old one's it keeps */
    rig_start(rig, index, faults_run->memory[index]);
    await_pushes(faults_run);
    client_close(client);
    pusher_join(&pusher);
    directory_free(stale);
    rig_end_partitioned(&partitioned);
    faults_run->sent[index] += (float)atomic_load(&pusher.sent);
    faults_run->acknowledged[index] += (float)atomic_load(&pusher.acknowledged);
}

static void fault(struct faults_run *faults_run)
{
    struct rig *rig = &faults_run->rig;
    uint32_t index = (uint32_t)prng_uniform(&faults_run->prng, SERVERS);
    bool away = prng_chance(&faults_run->prng, 1, 3);
    rig_await_backed(rig);
    if (away) {
        rig_disconnect(rig, true);
    }
    switch (prng_uniform(&faults_run->prng, 4)) {
    case 0:
        replace(faults_run, index);
        break;
    case 1:
        rig_stop(rig, index);
        pause_us(faults_run, 20000);
        rig_disconnect(rig, false);
        start(faults_run, index, true);
        break;
    default:
        rig_stop(rig, index);
        pause_us(faults_run, 20000);
        rig_disconnect(rig, false);
        start(faults_run, index, false);
        break;
    }
    rig_disconnect(rig, false);
    if (prng_chance(&faults_run->prng, 1, 2)) {
        await_pushes(faults_run);
    }
}

static void check(struct faults_run *faults_run, uint32_t server)
{
    float rows[ROWS * ROW_ELEMENTS];
    struct pusher *pusher = &faults_run->pushers[server];
    struct request pull = {.kind = REQUEST_PULL,
        .server = server,
        .rows = ROWS,
        .row_bytes = ROW_ELEMENTS * sizeof(float),
        .into = rows};
    rig_call(&faults_run->rig, &pull);
    float least = (float)atomic_load(&pusher->acknowledged) + faults_run->acknowledged[server];
    float most = (float)atomic_load(&pusher->sent) + faults_run->sent[server];
    for (size_t i = 0; i < ROWS * ROW_ELEMENTS; i++) {
        if (rows[i] < least || rows[i] > most) {
            fail_msg("ps %u has %.0f pushes of %.0f that were acknowledged and %.0f that were sent",
                server, (double)rows[i], (double)least, (double)most);
        }
    }
}

static uint64_t number_of(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);
    return text == NULL ? otherwise : strtoull(text, NULL, 10);
}

static void nothing_acknowledged_is_lost(void **state)
{
    (void)state;
    static struct faults_run faults_run;
    uint64_t faults = number_of("CADRE_TEST_FAULTS", TEST_ROUNDS(FAULTS));
    faults_run.prng = (struct prng){.state = number_of("CADRE_TEST_SEED", 1)};
    rig_open_backed(&faults_run.rig, SERVERS, 2);
    struct store_spec spec = rig_spec("v", ROWS, ROW_ELEMENTS);
    for (uint32_t i = 0; i < SERVERS; i++) {
        faults_run.memory[i] = memfd_create("ps", MFD_CLOEXEC);
        rig_start(&faults_run.rig, i, faults_run.memory[i]);
        assert_int_equal(rig_create(&faults_run.rig, i, &spec), 0);
    }
    for (uint32_t i = 0; i < SERVERS; i++) {
        pusher_start(&faults_run.pushers[i], faults_run.rig.client, i);
    }
    for (uint64_t i = 0; i < faults; i++) {
        fault(&faults_run);
    }
    await_pushes(&faults_run);
    float stale = 0;
    for (uint32_t i = 0; i < SERVERS; i++) {
        atomic_store(&faults_run.pushers[i].ends, true);
        pusher_join(&faults_run.pushers[i]);
        assert_int_equal(faults_run.pushers[i].sent, faults_run.pushers[i].acknowledged);
        stale += faults_run.acknowledged[i];
    }
    for (uint32_t i = 0; i < SERVERS; i++) {
        check(&faults_run, i);
    }
    printf(
        "%llu faults, %u, %u and %u pushes, %.0f by clients without the message of a replacement\n",
        (unsigned long long)faults, faults_run.pushers[0].sent, faults_run.pushers[1].sent,
        faults_run.pushers[2].sent, (double)stale);
    rig_close(&faults_run.rig);
    for (uint32_t i = 0; i < SERVERS; i++) {
        close(faults_run.memory[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_acknowledged_is_lost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
