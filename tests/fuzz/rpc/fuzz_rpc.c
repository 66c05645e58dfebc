/* SPDX-License-Identifier: Apache-2.0
 * Every method of the coordinator, health and reflection, with malformed messages and calls that
 * break the rules, against the real daemon. It must answer what is complete, survive the rest, and
 * end in order; built with the address sanitizer it must also have leaked nothing.
 *
 *   fuzz_rpc [SECONDS [SEED]]     2 s and the seed 1, after the seeds below
 *
 * Round N of a run draws from SEED + N alone, except that it names the jobs and tasks that the
 * rounds before have made. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "http2.h"
#include "mutate.h"
#include "seeds.h"
#include "tests/lib/program.h"
#include "tests/lib/test.h"

/* Seeds with which something was found once: a few rounds of each come first. */
static const uint64_t kept_seeds[] = {1};

#define KEPT_ROUNDS     40
#define HEALTHY_EVERY   8
#define DATA_PER_ROUND  40000
#define ANSWER_US       (20 * CADRE_US_PER_S)
#define STREAM_MESSAGES 10
#define JOIN_MESSAGES   60

struct counts {
    uint64_t rounds, calls, messages, mutated, answered, broken, per_method[64];
};

struct fuzz {
    struct prng prng;
    struct h2 h2;
    struct seed_world world;
    struct wire_buffer message;
    struct program daemon;
    char socket[TEST_PATH_BYTES];
    struct counts counts;
    uint64_t seed; /* of the round */
};

static uint64_t run_us = 2 * CADRE_US_PER_S;
static uint64_t run_seed = 1;

/* ---- what a stream of Join tells ---- */

static void learn(struct fuzz *fuzz, struct h2_stream *stream)
{
    size_t at = 0;
    while (stream->size - at >= 5) {
        const uint8_t *head = stream->bytes + at;
        size_t size =
            (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
        if (stream->size - at - 5 < size) {
            break;
        }
        seed_learn(&fuzz->world, head + 5, size);
        at += 5 + size;
    }
    memmove(stream->bytes, stream->bytes + at, stream->size - at);
    stream->size -= at;
}

/* ---- calls ---- */

static void fail_round(struct fuzz *fuzz, const char *what)
{
    program_signal(&fuzz->daemon, SIGKILL);
    struct program_result result;
    program_finish(&fuzz->daemon, 5 * CADRE_US_PER_S, &result);
    fail_msg("seed %llu, round %llu (rerun: fuzz_rpc %llu %llu): %s\n%s",
        (unsigned long long)fuzz->seed, (unsigned long long)fuzz->counts.rounds,
        (unsigned long long)(run_us / CADRE_US_PER_S), (unsigned long long)run_seed, what,
        result.err);
}

static void await_end(struct fuzz *fuzz, const struct h2_stream *stream, const char *path)
{
    uint64_t deadline_us = clock_monotonic_us() + ANSWER_US;
    while (!stream->ended && fuzz->h2.fd >= 0) {
        h2_read(&fuzz->h2, 100);
        if (clock_monotonic_us() > deadline_us) {
            fail_round(fuzz, path);
        }
    }
}

/* One thing of the transport that no library would send. */
static void break_transport(struct fuzz *fuzz, const struct h2_stream *stream)
{
    struct prng *prng = &fuzz->prng;
    uint8_t bytes[512];
    size_t size = prng_uniform(prng, sizeof bytes);
    for (size_t i = 0; i < size; i++) {
        bytes[i] = (uint8_t)prng_next(prng);
    }
    fuzz->counts.broken++;
    switch (prng_uniform(prng, 9)) {
    case 0: /* compressed, it says */
        h2_message(&fuzz->h2, stream, 1, (uint32_t)size, bytes, size, false);
        break;
    case 1: /* a flag that does not exist */
        h2_message(&fuzz->h2, stream, (uint8_t)prng_next(prng), (uint32_t)size, bytes, size, true);
        break;
    case 2: /* far too long, it says */
        h2_message(&fuzz->h2, stream, 0, (uint32_t)prng_next(prng), bytes, size, false);
        break;
    case 3: /* ends within a message */
        h2_message(&fuzz->h2, stream, 0, (uint32_t)size + 7, bytes, size, true);
        break;
    case 4: /* ends, and goes on */
        h2_data(&fuzz->h2, stream, bytes, 0, true);
        h2_message(&fuzz->h2, stream, 0, (uint32_t)size, bytes, size, false);
        break;
    case 5:
        h2_data(&fuzz->h2, stream, bytes, size, false);
        break;
    case 6:
        h2_reset(&fuzz->h2, stream);
        break;
    case 7: /* half a prefix */
        h2_data(&fuzz->h2, stream, bytes, prng_uniform(prng, 5), true);
        break;
    default:
        close(fuzz->h2.fd);
        fuzz->h2.fd = -1;
    }
}

/* The next message of a call, mutated or not. */
static void send_next(struct fuzz *fuzz, const struct seed_method *method,
    const struct h2_stream *stream, bool first, bool end)
{
    static uint8_t rooms[2][MUTATE_BYTES_MAX];
    struct prng *prng = &fuzz->prng;
    seed_message(prng, &fuzz->world, method, first, &fuzz->message);
    const uint8_t *bytes = fuzz->message.bytes;
    size_t size = fuzz->message.size;
    bool joins = method == &seed_methods[0]; /* what is refused ends it, so most is good */
    uint64_t bad = joins ? 6 : first && method->shape != METHOD_UNARY ? 16 : 66;
    bool keeps = !prng_chance(prng, bad, 100);
    uint64_t times = keeps || size == 0 ? 0 : 1 + prng_uniform(prng, 3);
    for (uint64_t i = 0; i < times; i++) {
        size = mutate(prng, bytes, size, rooms[i % 2]);
        bytes = rooms[i % 2];
    }
    h2_message(&fuzz->h2, stream, 0, (uint32_t)size, bytes, size, end);
    fuzz->counts.messages++;
    fuzz->counts.mutated += times > 0;
}

static void call_method(struct fuzz *fuzz, size_t index)
{
    const struct seed_method *method = &seed_methods[index];
    struct prng *prng = &fuzz->prng;
    bool streams = method->shape == METHOD_CLIENT_STREAM || method->shape == METHOD_BOTH_STREAM;
    bool breaks = prng_chance(prng, 1, 10);
    bool ends = !streams || prng_chance(prng, 2, 3);
    uint64_t most = index == 0 ? JOIN_MESSAGES : STREAM_MESSAGES;
    uint64_t count = streams ? 1 + prng_uniform(prng, most) : 1;
    struct h2_stream *stream = h2_call(&fuzz->h2, method->path);
    if (stream == NULL) {
        return;
    }
    if (index == 0) {
        fuzz->world.task_count = 0;
        fuzz->world.generation = (struct generation){0};
    }
    fuzz->counts.calls++;
    fuzz->counts.per_method[index]++;
    for (uint64_t i = 0; i < count && fuzz->h2.fd >= 0 && !stream->ended; i++) {
        if (breaks && i + 1 == count) {
            break_transport(fuzz, stream);
            break;
        }
        send_next(fuzz, method, stream, i == 0, ends && i + 1 == count);
        if (index == 0) {
            h2_read(&fuzz->h2, i < 2 ? 5 : 1);
            learn(fuzz, stream);
        }
    }
    bool must_end = !breaks && ends && !stream->ended && method->shape != METHOD_SERVER_STREAM;
    if (must_end) {
        await_end(fuzz, stream, method->path);
    } else {
        h2_read(&fuzz->h2, 1);
    }
    fuzz->counts.answered += stream->answered;
}

/* What any client does, and it works: the program's content is there, and a job has it. */
static void do_as_one_should(struct fuzz *fuzz)
{
    static const char *const paths[] = {
        METHOD_JOBS_PUT_BLOB, METHOD_JOBS_SUBMIT, METHOD_JOBS_VERSION};
    assert_true(h2_open(&fuzz->h2, fuzz->socket));
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        size_t index = 0;
        while (strcmp(seed_methods[index].path, paths[i]) != 0) {
            index++;
        }
        struct h2_stream *stream = h2_call(&fuzz->h2, paths[i]);
        seed_message(&fuzz->prng, &fuzz->world, &seed_methods[index], true, &fuzz->message);
        if (i == 0) {
            seed_blob(&fuzz->message);
        }
        h2_message(&fuzz->h2, stream, 0, (uint32_t)fuzz->message.size, fuzz->message.bytes,
            fuzz->message.size, true);
        await_end(fuzz, stream, paths[i]);
        if (i == 1 && stream->answered) {
            fuzz->world.jobs++;
        } else if (i != 1 && !stream->answered) {
            fail_round(fuzz, "a good call is not answered");
        }
    }
    h2_close(&fuzz->h2);
}

static void run_round(struct fuzz *fuzz, uint64_t seed)
{
    fuzz->seed = seed;
    fuzz->prng = (struct prng){.state = prng_mix(seed)};
    fuzz->counts.rounds++;
    if (fuzz->counts.rounds % HEALTHY_EVERY == 1) {
        do_as_one_should(fuzz);
    }
    if (!h2_open(&fuzz->h2, fuzz->socket)) {
        fail_round(fuzz, "the coordinator does not listen any more");
    }
    for (uint64_t calls = 1 + prng_uniform(&fuzz->prng, 6); calls > 0; calls--) {
        bool joins = prng_chance(&fuzz->prng, 1, 4);
        call_method(fuzz, joins ? 0 : prng_uniform(&fuzz->prng, seed_method_count));
        if (fuzz->h2.fd < 0 || fuzz->h2.sent_data > DATA_PER_ROUND) {
            break;
        }
    }
    h2_close(&fuzz->h2);
}

/* ---- the run ---- */

static bool listens(void *data)
{
    struct fuzz *fuzz = data;
    bool good = h2_open(&fuzz->h2, fuzz->socket);
    h2_close(&fuzz->h2);
    return good;
}

static void start_daemon(struct fuzz *fuzz)
{
    static char state[TEST_PATH_BYTES], address[TEST_PATH_BYTES + 8];
    const char *folder = test_temp_dir();
    test_path(fuzz->socket, folder, "c.sock");
    test_path(state, folder, "state");
    snprintf(address, sizeof address, "unix:%s", fuzz->socket);
    const char *const argv[] = {COORDINATOR, "--listen", address, "--state-dir", state,
        "--log-level", "error", "--grace", "1s", "--keep-jobs", "50", NULL};
    program_start(&(struct program_spec){.argv = argv}, &fuzz->daemon);
    assert_true(test_wait(listens, fuzz, 20 * CADRE_US_PER_S));
}

static void stop_daemon(struct fuzz *fuzz)
{
    struct program_result result;
    program_signal(&fuzz->daemon, SIGTERM);
    program_finish(&fuzz->daemon, 20 * CADRE_US_PER_S, &result);
    if (result.timed_out || result.exit_code != 0) {
        fail_msg("the coordinator ends with code %d, signal %d%s:\n%s", result.exit_code,
            result.signal, result.timed_out ? ", too late" : "", result.err);
    }
    program_result_free(&result);
}

static void print_counts(const struct fuzz *fuzz)
{
    const struct counts *counts = &fuzz->counts;
    print_message("seed %llu: %llu rounds, %llu calls (%llu of them broke the transport), %llu "
                  "messages (%llu mutated), %llu calls answered with a message; %llu jobs, "
                  "%llu plans were learned\n",
        (unsigned long long)run_seed, (unsigned long long)counts->rounds,
        (unsigned long long)counts->calls, (unsigned long long)counts->broken,
        (unsigned long long)counts->messages, (unsigned long long)counts->mutated,
        (unsigned long long)counts->answered, (unsigned long long)fuzz->world.jobs,
        (unsigned long long)fuzz->world.plans);
}

static void nothing_breaks_the_coordinator(void **state)
{
    (void)state;
    static struct fuzz fuzz;
    start_daemon(&fuzz);
    for (size_t i = 0; i < sizeof kept_seeds / sizeof kept_seeds[0]; i++) {
        for (uint64_t round = 0; round < KEPT_ROUNDS; round++) {
            run_round(&fuzz, kept_seeds[i] + round);
        }
    }
    uint64_t deadline_us = clock_monotonic_us() + run_us;
    for (uint64_t round = 0; clock_monotonic_us() < deadline_us; round++) {
        run_round(&fuzz, run_seed + round);
    }
    do_as_one_should(&fuzz);
    stop_daemon(&fuzz);
    print_counts(&fuzz);
    for (size_t i = 0; i < seed_method_count; i++) {
        if (fuzz.counts.per_method[i] == 0 && fuzz.counts.rounds > 300) {
            fail_msg("%s was never called", seed_methods[i].path);
        }
    }
    assert_true(fuzz.counts.answered > fuzz.counts.calls / 20);
    wire_buffer_free(&fuzz.message);
}

/* A method that is added must be fuzzed. */
static void every_method_is_known_here(void **state)
{
    (void)state;
#define KNOWN(method, wanted)                                                                      \
    do {                                                                                           \
        size_t at = 0;                                                                             \
        while (at < seed_method_count && strcmp(seed_methods[at].path, method) != 0) {             \
            at++;                                                                                  \
        }                                                                                          \
        assert_true(at < seed_method_count);                                                       \
        assert_int_equal(seed_methods[at].shape, wanted);                                          \
    } while (0);
    METHOD_TABLE(KNOWN)
#undef KNOWN
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        run_us = strtoull(argv[1], NULL, 10) * CADRE_US_PER_S;
    }
    if (argc > 2) {
        run_seed = strtoull(argv[2], NULL, 10);
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_method_is_known_here),
        cmocka_unit_test(nothing_breaks_the_coordinator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
