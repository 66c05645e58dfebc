/* SPDX-License-Identifier: Apache-2.0
 * One bit of the ledger's file is another one, drawn from a seed: what is read is exactly right, or
 * the damage is reported. With CADRE_TEST_FLIPS=n so many are tried; by themselves 2,000. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "tests/unit/store/store_fixture.h"

#define JOBS_MORE 60
#ifdef __SANITIZE_ADDRESS__
#define FLIPS 200 /* each of them takes twenty times as long */
#else
#define FLIPS 2000
#endif

struct whole {
    char path[TEST_PATH_BYTES];
    char *file;
    size_t size;
    char *text;
    uint8_t secret[STORE_SECRET_BYTES];
    struct store_position position;
    struct store_cluster cluster;
    uint64_t job_id_max;
};

struct outcome {
    unsigned right;   /* everything read is as it was */
    unsigned refused; /* the file, when it is opened or read */
    unsigned named;   /* some job, the others are right */
};

static void add_job(struct store *store, uint64_t job)
{
    struct cadre_error error = {0};
    char path[32];
    snprintf(path, sizeof path, "step-%u", (unsigned)job);
    assert_ok(COMMIT(store, false, &error, record_job(job, 2), record_started(job, 2),
                  record_plan(job, 1, 0), record_stream(job, 1, "train"),
                  record_consumed(job, 1, 0, 0, job), record_consumed(job, 1, 1, job, 5),
                  record_consumed(job, 1, 2, job + 5, 5), record_end_of_data(job, 0),
                  record_end_of_data(job, 1), record_checkpoint_of(job, job, path, 77),
                  record_verified(job, job / 2, job), record_watermark(job, 1, job + 10)),
        &error);
    assert_ok(COMMIT(store, false, &error, record_task_exit(job, 0, 1, 0, "it ended"),
                  record_plan(job, 2, job), record_control(job, 2, HALT_STOP, job + 12)),
        &error);
    if (job % 3 != 0) {
        assert_ok(COMMIT(store, false, &error, record_done(job, job + 12),
                      record_ended(job, JOB_SUCCEEDED, "finished")),
            &error);
    }
}

static void make_whole(struct whole *whole)
{
    struct cadre_error error = {0};
    struct store *store = NULL;
    test_path(whole->path, test_temp_dir(), "ledger.db");
    assert_ok(store_sqlite_open(whole->path, &store, &error), &error);
    for (unsigned i = 0; i < STORY_COMMITS; i++) {
        assert_ok(story_commit(store, i, &error), &error);
    }
    for (uint64_t job = 3; job < 3 + JOBS_MORE; job++) {
        add_job(store, job);
    }
    const struct store_position position = {.index = 77, .term = 3, .hash = {1, 2, 3}};
    const struct store_cluster cluster = {
        .id_high = 1, .id_low = 2, .etcd_id = 3, .term_seen = 4, .hash = {5}, .secret = {6, 7}};
    assert_ok(store->ops->apply(store, NULL, 0, &position, &error), &error);
    assert_ok(store->ops->note_cluster(store, &cluster, &error), &error);
    whole->text = store_text(store);
    store->ops->secret(store, whole->secret);
    store->ops->position(store, &whole->position);
    store->ops->cluster(store, &whole->cluster);
    whole->job_id_max = store->ops->job_id_max(store);
    store->ops->close(store);
    assert_ok(file_read(whole->path, 1U << 24, &whole->file, &whole->size, &error), &error);
}

/* The part of `text` about the job whose part begins at `part` in another text; NULL: none. */
static const char *part_of_job(const char *text, const char *part)
{
    size_t head = strcspn(part + strlen("job "), " ") + strlen("job ") + 1;
    while (text != NULL && strncmp(text, part, head) != 0) {
        text = strstr(text, "\njob ");
        text = text != NULL ? text + 1 : NULL;
    }
    return text;
}

static size_t part_size(const char *part)
{
    const char *next = strstr(part, "\njob ");
    return next != NULL ? (size_t)(next - part) + 1 : strlen(part);
}

/* Every job is read as it was, or named as damaged; *ret_named: how many are. */
static bool is_served_right(const char *wanted, const char *reported, unsigned *ret_named)
{
    *ret_named = 0;
    for (const char *part = reported; *part != '\0'; part += part_size(part)) {
        const char *was = part_of_job(wanted, part);
        size_t head = strcspn(part + strlen("job "), " ") + strlen("job ");
        bool damaged = strncmp(part + head, " is damaged: ", strlen(" is damaged: ")) == 0;
        *ret_named += damaged ? 1 : 0;
        if (!damaged && (was == NULL || part_size(was) != part_size(part) ||
                            memcmp(was, part, part_size(part)) != 0)) {
            print_message("read:\n%.*s", (int)part_size(part), part);
            return false;
        }
    }
    for (const char *part = wanted; *part != '\0'; part += part_size(part)) {
        if (part_of_job(reported, part) == NULL) {
            print_message("not read:\n%.*s", (int)part_size(part), part);
            return false;
        }
    }
    return true;
}

static void try_flip(
    const struct whole *whole, size_t offset, unsigned bit, struct outcome *outcome)
{
    struct cadre_error error = {0};
    struct store *store = NULL;
    char *text = NULL;
    unsigned named = 0;
    char wal[TEST_PATH_BYTES + 8];
    snprintf(wal, sizeof wal, "%s-wal", whole->path);
    (void)remove(wal);
    whole->file[offset] = (char)(whole->file[offset] ^ (1 << bit));
    FILE *file = fopen(whole->path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(whole->file, 1, whole->size, file), whole->size);
    assert_int_equal(fclose(file), 0);
    whole->file[offset] = (char)(whole->file[offset] ^ (1 << bit));
    cadre_status status = store_sqlite_open(whole->path, &store, &error);
    if (status == CADRE_OK) {
        status = store_try_text(store, &text, &error);
    }
    if (status != CADRE_OK) {
        if (status != CADRE_DATA_LOSS && status != CADRE_FAILED_PRECONDITION) {
            fail_msg("byte %zu bit %u: %d: %s", offset, bit, (int)status, error.text);
        }
        outcome->refused++;
    } else {
        uint8_t secret[STORE_SECRET_BYTES];
        struct store_position position;
        struct store_cluster cluster;
        store->ops->secret(store, secret);
        store->ops->position(store, &position);
        store->ops->cluster(store, &cluster);
        if (memcmp(secret, whole->secret, sizeof secret) != 0 ||
            memcmp(&position, &whole->position, sizeof position) != 0 ||
            memcmp(&cluster, &whole->cluster, sizeof cluster) != 0 ||
            store->ops->job_id_max(store) != whole->job_id_max ||
            !is_served_right(whole->text, text, &named)) {
            fail_msg("byte %zu bit %u, in page %zu, is served as if right", offset, bit,
                offset / 4096 + 1);
        }
        outcome->named += named > 0 ? 1 : 0;
        outcome->right += named == 0 ? 1 : 0;
    }
    free(text);
    if (store != NULL) {
        store->ops->close(store);
    }
}

static uint64_t draw(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

static void no_flipped_bit_is_served(void **state)
{
    (void)state;
    struct whole whole = {0};
    struct outcome outcome = {0};
    const char *asked = getenv("CADRE_TEST_FLIPS");
    unsigned long flips = asked != NULL ? strtoul(asked, NULL, 10) : FLIPS;
    uint64_t seed = 0x1edcab1e;
    make_whole(&whole);
    for (unsigned long i = 0; i < flips; i++) {
        size_t offset = (size_t)(draw(&seed) % whole.size);
        try_flip(&whole, offset, (unsigned)(draw(&seed) % 8), &outcome);
    }
    print_message("of %lu flipped bits in %zu bytes: %u change nothing, %u name jobs, %u refused\n",
        flips, whole.size, outcome.right, outcome.named, outcome.refused);
    assert_true(outcome.named > 0 && outcome.refused > 0 && outcome.right > 0);
    free(whole.file);
    free(whole.text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(no_flipped_bit_is_served)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
