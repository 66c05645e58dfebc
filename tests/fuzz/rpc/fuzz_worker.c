/* SPDX-License-Identifier: Apache-2.0
 * A worker daemon under a coordinator that lies: AgentDown messages with something wrong, streams
 * that end anywhere, contents that are not what was asked for. The daemon must stay, and end in
 * order on SIGTERM; built with the address sanitizer it must also have leaked nothing.
 *
 *   fuzz_worker [SECONDS [SEED]]     2 s and the seed 1 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/rpc/server.h"
#include "mutate.h"
#include "seeds.h"
#include "tests/lib/program.h"
#include "tests/lib/test.h"
#include "tests/unit/wire/samples.h"

#define MESSAGES_PER_STREAM 24

struct liar {
    struct prng prng;
    struct rpc_loop *loop;
    struct rpc_server *server;
    struct wire_buffer packed;
    uint64_t streams, messages, mutated, contents;
};

static uint64_t run_us = 2 * CADRE_US_PER_S;
static uint64_t run_seed = 1;

static void send_packed(struct liar *liar, struct rpc_call *call, bool may_lie)
{
    static uint8_t room[MUTATE_BYTES_MAX];
    const uint8_t *bytes = liar->packed.bytes;
    size_t size = liar->packed.size;
    if (may_lie && prng_chance(&liar->prng, 1, 4)) {
        size = mutate(&liar->prng, bytes, size, room);
        bytes = room;
        liar->mutated++;
    }
    liar->messages++;
    (void)rpc_call_send(call, bytes, size, NULL);
}

static void say(struct liar *liar, struct rpc_call *call, const struct agent_down *down, bool lie)
{
    struct cadre_error error;
    wire_buffer_clear(&liar->packed);
    if (wire_pack_agent_down(down, &liar->packed, &error) == CADRE_OK) {
        send_packed(liar, call, lie);
    }
}

/* One of the samples, mostly about the few tasks that are named repeatedly. */
static void say_something(struct liar *liar, struct rpc_call *call)
{
    struct prng *prng = &liar->prng;
    const struct sample *sample;
    do {
        sample = &samples[prng_uniform(prng, sample_count)];
    } while (strcmp(sample->kind->name, "agent_down") != 0);
    struct agent_down down = *(const struct agent_down *)sample->message;
    const struct task_ref task = {.job = {1 + prng_uniform(prng, 3)},
        .slot = (uint32_t)prng_uniform(prng, 2),
        .incarnation = 1};
    if (down.type == AGENT_DOWN_START) {
        down.start.task = task;
        down.start.task_count = down.start.spec.workers;
    } else if (down.type == AGENT_DOWN_STOP) {
        down.stop.job = task.job;
        down.stop.task = task;
        down.stop.grace_us = 1000;
    } else if (down.type == AGENT_DOWN_RELAY) {
        down.relay_down.job = task.job;
        down.relay_down.task = task;
    } else if (down.type == AGENT_DOWN_LOG_ACK) {
        down.log_ack.task = task;
    } else if (down.type == AGENT_DOWN_WELCOME || down.type == AGENT_DOWN_REFUSED) {
        down = (struct agent_down){.type = AGENT_DOWN_FORGET, .forget = task.job};
    }
    say(liar, call, &down, true);
}

static void join_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct liar *liar = user;
    (void)data;
    (void)length;
    if (rpc_call_user(call) == NULL) {
        const struct agent_down welcome = {.type = AGENT_DOWN_WELCOME,
            .welcome = {.worker = {1 + liar->streams}, .lease_us = 300 * CADRE_US_PER_MS}};
        rpc_call_set_user(call, liar);
        liar->streams++;
        say(liar, call, &welcome, prng_chance(&liar->prng, 1, 8));
    }
    for (uint64_t i = prng_uniform(&liar->prng, MESSAGES_PER_STREAM); i > 0; i--) {
        say_something(liar, call);
    }
    if (prng_chance(&liar->prng, 1, 8)) {
        rpc_call_finish(call, (cadre_status)prng_uniform(&liar->prng, 17), "enough");
    }
}

/* A content: the wrong one, most of the time. */
static void blob_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct liar *liar = user;
    (void)data;
    (void)length;
    liar->contents++;
    for (uint64_t i = prng_uniform(&liar->prng, 4); i > 0; i--) {
        seed_blob(&liar->packed);
        send_packed(liar, call, true);
    }
    rpc_call_finish(call, prng_chance(&liar->prng, 3, 4) ? CADRE_OK : CADRE_NOT_FOUND, "");
}

static void upload_message(struct rpc_call *call, const void *data, size_t length, void *user)
{
    struct liar *liar = user;
    (void)data;
    (void)length;
    if (prng_chance(&liar->prng, 1, 4)) {
        (void)rpc_call_send(call, "\xff\xff", prng_uniform(&liar->prng, 3), NULL);
        rpc_call_finish(call, (cadre_status)prng_uniform(&liar->prng, 17), "");
    }
}

static void upload_end(struct rpc_call *call, void *user)
{
    (void)user;
    (void)rpc_call_send(call, "", 0, NULL);
    rpc_call_finish(call, CADRE_OK, "");
}

static void open_liar(struct liar *liar, const char *address)
{
    static const struct rpc_server_ops join = {.on_message = join_message};
    static const struct rpc_server_ops blob = {.on_message = blob_message};
    static const struct rpc_server_ops upload = {
        .on_message = upload_message, .on_half_close = upload_end};
    const struct rpc_method methods[] = {
        {METHOD_AGENTS_JOIN, true, true, LIMIT_FRAME_BYTES, &join, liar},
        {METHOD_AGENTS_GET_BLOB, false, true, LIMIT_FRAME_BYTES, &blob, liar},
        {METHOD_AGENTS_MISSING_BLOBS, false, false, LIMIT_FRAME_BYTES, &upload, liar},
        {METHOD_AGENTS_PUT_BLOB, true, false, LIMIT_FRAME_BYTES, &upload, liar},
        {METHOD_AGENTS_PUT_OUTPUT, true, false, LIMIT_FRAME_BYTES, &upload, liar},
        {METHOD_AGENTS_SETTLE_FILE, false, false, LIMIT_FRAME_BYTES, &upload, liar}};
    const struct rpc_server_options options = {
        .methods = methods, .method_count = sizeof methods / sizeof methods[0]};
    struct cadre_error error;
    liar->prng.state = prng_mix(run_seed);
    assert_ok(rpc_loop_open(&liar->loop, &error), &error);
    assert_ok(rpc_server_open(liar->loop, &options, &liar->server, &error), &error);
    assert_ok(rpc_server_listen(liar->server, address, NULL, NULL, &error), &error);
    rpc_server_start(liar->server);
}

/* The end of a long log, or where the sanitizer's report begins. */
static const char *end_of(const char *text, size_t size)
{
    const char *relay_up = strstr(text, "ERROR: ");
    relay_up = relay_up != NULL ? relay_up : strstr(text, "runtime error");
    return relay_up != NULL ? relay_up : text + (size > 2000 ? size - 2000 : 0);
}

static void no_coordinator_breaks_a_worker(void **state)
{
    (void)state;
    static struct liar liar;
    struct program daemon;
    struct program_result result;
    char address[TEST_PATH_BYTES + 8], folder[TEST_PATH_BYTES];
    const char *where = test_temp_dir();
    snprintf(address, sizeof address, "unix:%s/c.sock", where);
    test_path(folder, where, "worker");
    open_liar(&liar, address);
    const char *const argv[] = {WORKER, "--coordinator", address, "--state-dir", folder, "--name",
        "fuzzed", "--slots", "4", "--gpus", "none", "--grace", "1s", "--drain-timeout", "1s",
        "--log-level", "error", NULL};
    program_start(&(struct program_spec){.argv = argv}, &daemon);
    const bool never = false;
    (void)rpc_loop_run_until(liar.loop, &never, clock_monotonic_us() + run_us);
    program_signal(&daemon, SIGTERM);
    (void)rpc_loop_run_until(
        liar.loop, &never, clock_monotonic_us() + 200 * CADRE_US_PER_MS); /* its last words */
    rpc_server_close(liar.server);
    rpc_loop_close(liar.loop);
    program_finish(&daemon, 20 * CADRE_US_PER_S, &result);
    if (result.timed_out || result.exit_code < 0 || result.exit_code > 1 ||
        strstr(result.err, "Sanitizer") != NULL) {
        fail_msg("seed %llu: the worker ends with code %d, signal %d%s:\n%s",
            (unsigned long long)run_seed, result.exit_code, result.signal,
            result.timed_out ? ", too late" : "", end_of(result.err, result.err_bytes));
    }
    program_result_free(&result);
    wire_buffer_free(&liar.packed);
    print_message("seed %llu: %llu streams, %llu messages (%llu mutated), %llu contents\n",
        (unsigned long long)run_seed, (unsigned long long)liar.streams,
        (unsigned long long)liar.messages, (unsigned long long)liar.mutated,
        (unsigned long long)liar.contents);
    assert_true(liar.streams > 0);
}

int main(int argc, char **argv)
{
    if (argc > 1) {
        run_us = strtoull(argv[1], NULL, 10) * CADRE_US_PER_S;
    }
    if (argc > 2) {
        run_seed = strtoull(argv[2], NULL, 10);
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_coordinator_breaks_a_worker)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
