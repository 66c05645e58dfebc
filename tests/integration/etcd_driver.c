/* SPDX-License-Identifier: Apache-2.0
 * common/etcd as a test of real etcd uses it: commands on stdin, a line for each answer on stdout.
 *
 *   etcd_driver ADDRESS [USER PASSWORD] [--ca FILE] [--cert FILE --key FILE]
 *
 *   txn NAME BYTES MS        puts log/NAME and head (whose value is NAME), if head is as this
 *                            program saw it last; else reads head
 *   force NAME BYTES MS      the same without a guard, for filling a store
 *   range KEY END LIMIT MS   END "-": KEY alone
 *   status INDEX MS
 *   watch KEY
 *   bench COUNT BYTES        guarded transactions one after the other
 *   endpoint                 the index of the present one
 *
 * A line is "WHAT key=value ... text=SENTENCE", with tabs between. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include "common/base/clock.h"
#include "common/etcd/etcd.h"
#include "common/pure/assert.h"
#include "common/rpc/tls.h"

#define COMMAND_BYTES (64 * 1024)
#define VALUE_BYTES   (4 * 1024 * 1024)
#define BENCH_MAX     20000

static struct {
    struct rpc_loop *loop;
    struct etcd *etcd;
    struct etcd_watch *watch;
    uv_pipe_t input;
    char commands[COMMAND_BYTES];
    size_t filled;
    int64_t head_revision; /* as seen last; 0: there is none */
    uint8_t value[VALUE_BYTES];
    /* A bench that runs. */
    uint32_t left, done;
    size_t bytes;
    uint64_t sent_us, began_us;
    uint32_t took_us[BENCH_MAX];
} driver;

struct asked {
    char what[16];
    char name[ETCD_KEY_BYTES];
};

static void begin_line(const char *what, const struct etcd_answer *answer)
{
    printf("%s\tstatus=%d\tunknown=%d\tendpoint=%s\tcluster=%016" PRIx64 "\tmember=%" PRIx64, what,
        (int)answer->status, answer->outcome_unknown, answer->endpoint, answer->cluster_id,
        answer->member_id);
}

static void end_line(const char *text)
{
    printf("\ttext=%s\n", text);
    fflush(stdout);
}

/* ---- transactions ---- */

static void note_head(const struct etcd_answer *answer)
{
    if (answer->succeeded) {
        driver.head_revision = answer->revision;
    } else if (answer->result_count == 1 && answer->results[0].pair_count == 1) {
        driver.head_revision = answer->results[0].pairs[0].mod_revision;
    }
}

static void on_transaction(const struct etcd_answer *answer, void *user)
{
    struct asked *asked = user;
    begin_line(asked->what, answer);
    if (answer->status == CADRE_OK) {
        printf("\tsucceeded=%d\trevision=%" PRId64, answer->succeeded, answer->revision);
        note_head(answer);
        if (!answer->succeeded && answer->results[0].pair_count == 1) {
            const struct etcd_pair *head = answer->results[0].pairs;
            printf("\thead=%.*s\tversion=%" PRId64, (int)head->value.size,
                (const char *)head->value.data, head->version);
        }
    }
    end_line(answer->text);
    free(asked);
}

static cadre_status transact(const char *name, size_t bytes, bool guarded,
    const struct etcd_then *then, struct cadre_error *error)
{
    char key[ETCD_KEY_BYTES];
    snprintf(key, sizeof key, "log/%s", name);
    const struct etcd_comparison guard = {
        .key = "head", .what = ETCD_MOD_REVISION, .number = driver.head_revision};
    const struct etcd_operation puts_of_it[] = {
        {.kind = ETCD_PUT, .key = key, .value = {.data = driver.value, .size = bytes}},
        {.kind = ETCD_PUT, .key = "head", .value = {.data = name, .size = strlen(name)}}};
    const struct etcd_operation get = {.kind = ETCD_GET, .key = "head"};
    const struct etcd_transaction transaction = {.comparisons = &guard,
        .comparison_count = guarded ? 1 : 0,
        .then = puts_of_it,
        .then_count = 2,
        .otherwise = &get,
        .otherwise_count = 1};
    return etcd_transact(driver.etcd, &transaction, then, error);
}

/* ---- a bench ---- */

static int compare_times(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a;
    uint32_t y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void bench_next(void);

static void on_bench(const struct etcd_answer *answer, void *user)
{
    (void)user;
    uint64_t now_us = clock_monotonic_us();
    if (answer->status != CADRE_OK || !answer->succeeded) {
        begin_line("bench", answer);
        end_line(answer->text);
        return;
    }
    note_head(answer);
    driver.took_us[driver.done++] = (uint32_t)(now_us - driver.sent_us);
    if (--driver.left > 0) {
        bench_next();
        return;
    }
    double seconds = (double)(now_us - driver.began_us) / 1e6;
    qsort(driver.took_us, driver.done, sizeof driver.took_us[0], compare_times);
    begin_line("bench", answer);
    printf("\tper_s=%.0f\tp50_us=%u\tp99_us=%u", driver.done / seconds,
        driver.took_us[driver.done / 2], driver.took_us[driver.done * 99 / 100]);
    end_line("");
}

static void bench_next(void)
{
    char name[32];
    struct cadre_error error;
    const struct etcd_then then = {
        .deadline_us = clock_monotonic_us() + 10 * CADRE_US_PER_S, .handler = on_bench};
    snprintf(name, sizeof name, "bench-%u", driver.done % 100);
    driver.sent_us = clock_monotonic_us();
    cadre_status status = transact(name, driver.bytes, true, &then, &error);
    CADRE_ASSERT(status == CADRE_OK);
}

/* ---- the other calls ---- */

static void on_range(const struct etcd_answer *answer, void *user)
{
    begin_line("range", answer);
    (void)user;
    if (answer->status == CADRE_OK) {
        const struct etcd_result *result = answer->results;
        printf("\tmore=%d\tcount=%zu\tkeys=", result->more, result->pair_count);
        for (size_t i = 0; i < result->pair_count; i++) {
            printf("%s%s:%zu:%" PRId64, i > 0 ? "," : "", result->pairs[i].key,
                result->pairs[i].value.size, result->pairs[i].version);
            if (strcmp(result->pairs[i].key, "head") == 0) {
                driver.head_revision = result->pairs[i].mod_revision;
            }
        }
    }
    end_line(answer->text);
}

static void on_member(const struct etcd_answer *answer, void *user)
{
    (void)user;
    begin_line("status", answer);
    if (answer->member != NULL) {
        const struct etcd_member *member = answer->member;
        printf("\tversion=%s\tleader=%d\tno_space=%d\tcorrupt=%d\tin_use=%" PRIu64, member->version,
            member->has_leader, member->no_space, member->corrupt, member->in_use_bytes);
    }
    end_line(answer->text);
}

static void on_watch(cadre_status status, const char *text, void *user)
{
    (void)user;
    printf("watch\tstatus=%d", (int)status);
    end_line(text);
}

/* ---- commands ---- */

static struct etcd_then then_in(const char *ms, void (*handler)(const struct etcd_answer *, void *))
{
    return (struct etcd_then){
        .deadline_us = clock_monotonic_us() + strtoull(ms, NULL, 10) * CADRE_US_PER_MS,
        .handler = handler};
}

static cadre_status do_transact(char **word, struct cadre_error *error)
{
    struct asked *asked = calloc(1, sizeof *asked);
    CADRE_ASSERT(asked != NULL);
    snprintf(asked->what, sizeof asked->what, "%s", word[0]);
    struct etcd_then then = then_in(word[3], on_transaction);
    then.user = asked;
    cadre_status status =
        transact(word[1], strtoul(word[2], NULL, 10), strcmp(word[0], "txn") == 0, &then, error);
    if (status != CADRE_OK) {
        free(asked);
    }
    return status;
}

static cadre_status do_bench(char **word, struct cadre_error *error)
{
    driver.left = (uint32_t)strtoul(word[1], NULL, 10);
    driver.bytes = strtoul(word[2], NULL, 10);
    driver.done = 0;
    driver.began_us = clock_monotonic_us();
    if (driver.left == 0 || driver.left > BENCH_MAX) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "1 to %d transactions", BENCH_MAX);
    }
    bench_next();
    return CADRE_OK;
}

static cadre_status do_command(char **word, int count, struct cadre_error *error)
{
    if (count == 4 && (strcmp(word[0], "txn") == 0 || strcmp(word[0], "force") == 0)) {
        return do_transact(word, error);
    }
    if (count == 5 && strcmp(word[0], "range") == 0) {
        const struct etcd_then then = then_in(word[4], on_range);
        return etcd_range(driver.etcd, word[1], strcmp(word[2], "-") != 0 ? word[2] : NULL,
            (uint32_t)strtoul(word[3], NULL, 10), &then, error);
    }
    if (count == 3 && strcmp(word[0], "status") == 0) {
        const struct etcd_then then = then_in(word[2], on_member);
        return etcd_status(driver.etcd, strtoul(word[1], NULL, 10), &then, error);
    }
    if (count == 2 && strcmp(word[0], "watch") == 0) {
        return etcd_watch_open(driver.etcd, word[1], on_watch, NULL, &driver.watch, error);
    }
    if (count == 3 && strcmp(word[0], "bench") == 0) {
        return do_bench(word, error);
    }
    if (count == 1 && strcmp(word[0], "endpoint") == 0) {
        printf("endpoint\tindex=%zu", etcd_endpoint(driver.etcd));
        end_line("");
        return CADRE_OK;
    }
    return cadre_error_set(error, CADRE_INVALID_ARGUMENT, "no such command: %.40s", word[0]);
}

static void run_command(char *text)
{
    char *word[6] = {NULL};
    int count = 0;
    struct cadre_error error = {0};
    char *rest = NULL;
    for (char *at = strtok_r(text, " ", &rest); at != NULL && count < 6;
         at = strtok_r(NULL, " ", &rest)) {
        word[count++] = at;
    }
    if (count > 0 && do_command(word, count, &error) != CADRE_OK) {
        printf("%s\tstatus=%d\tunknown=0", word[0], (int)error.code);
        end_line(error.text);
    }
}

static void give_room(uv_handle_t *handle, size_t wanted, uv_buf_t *buffer)
{
    (void)handle;
    (void)wanted;
    *buffer = uv_buf_init(
        driver.commands + driver.filled, (unsigned)(sizeof driver.commands - driver.filled));
}

static void on_input(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    (void)buffer;
    if (count < 0) {
        uv_close((uv_handle_t *)stream, NULL);
        rpc_loop_stop(driver.loop);
        return;
    }
    driver.filled += (size_t)count;
    char *start = driver.commands;
    char *newline;
    while ((newline = memchr(start, '\n', driver.filled - (size_t)(start - driver.commands)))) {
        *newline = '\0';
        run_command(start);
        start = newline + 1;
    }
    driver.filled -= (size_t)(start - driver.commands);
    memmove(driver.commands, start, driver.filled);
}

/* ---- begin and end ---- */

static cadre_status open_client(
    int argc, char **argv, struct rpc_tls **ret_tls, struct cadre_error *error)
{
    struct rpc_tls_options files = {.dir = NULL};
    struct etcd_options options = {.user = NULL};
    struct etcd_address address;
    for (int i = 2; i < argc; i++) {
        char **slot = strcmp(argv[i], "--ca") == 0     ? &files.ca
                      : strcmp(argv[i], "--cert") == 0 ? &files.cert
                      : strcmp(argv[i], "--key") == 0  ? &files.key
                                                       : NULL;
        if (slot != NULL && i + 1 < argc) {
            *slot = argv[++i];
        } else if (options.user == NULL) {
            options.user = argv[i];
        } else {
            options.password = argv[i];
        }
    }
    CADRE_TRY(rpc_tls_open_foreign(driver.loop, &files, NULL, NULL, ret_tls, error));
    CADRE_TRY(etcd_address_parse(argv[1], *ret_tls != NULL, &address, error));
    options.address = &address;
    options.tls = *ret_tls;
    return etcd_open(driver.loop, &options, &driver.etcd, error);
}

int main(int argc, char **argv)
{
    struct cadre_error error = {0};
    struct rpc_tls *tls = NULL;
    if (argc < 2 || rpc_loop_open(&driver.loop, &error) != CADRE_OK ||
        open_client(argc, argv, &tls, &error) != CADRE_OK) {
        fprintf(stderr, "etcd_driver: %s\n", argc < 2 ? "ADDRESS is missing" : error.text);
        return 1;
    }
    uv_pipe_init(rpc_loop_uv(driver.loop), &driver.input, 0);
    uv_pipe_open(&driver.input, 0);
    uv_read_start((uv_stream_t *)&driver.input, give_room, on_input);
    rpc_loop_run(driver.loop);
    etcd_close(driver.etcd);
    rpc_tls_close(tls);
    rpc_loop_close(driver.loop);
    return 0;
}
