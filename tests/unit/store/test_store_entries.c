/* SPDX-License-Identifier: Apache-2.0
 * Commits as entries of a log: a store that gets their bytes has the same rows as one that gets the
 * records (so does the whole of test_store_conformance.c); what is cut, bent or of a later version
 * is refused with a sentence; and how large entries are. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"
#include "common/pure/prng.h"
#include "coordinator/entries/log_entry.h"
#include "tests/unit/store/entries_store.h"
#include "tests/unit/store/store_fixture.h"

#define KINDS (LEDGER_EVENT + 1)

static const uint64_t large = UINT64_C(0xfedcba9876543210);

/* ---- a commit with a record of every kind, each member of it set ---- */

static const struct store_placement placements[] = {
    {.slot = 0, .incarnation = 1, .attempts = 3, .attempts_generation = 4, .worker = "worker a"},
    {.slot = 16, .incarnation = 1 + (UINT64_C(1) << 40), .worker = "worker b"}};

static const struct history_event event = {.time_us = 1,
    .kind = HISTORY_ENDING,
    .generation = 2,
    .position = UINT64_C(1) << 61,
    .slot = HISTORY_SLOT_NONE,
    .incarnation = 5,
    .tasks = 6,
    .undone = 7,
    .restarted = true,
    .waited_us = 8,
    .exit_code = -1,
    .exit_signal = 9,
    .state = JOB_FAILED,
    .code = CADRE_ABORTED,
    .worker = "worker a",
    .roster = "0-2,5",
    .text = "it \xc3\xa9"
            "choue"};

/* What JOB does not have of it in the first commit. */
static const struct core_record records[KINDS] = {
    [CORE_RECORD_JOB] = {.job = {1},
        .submitted = {.spec = {.tasks = 17,
                          .tasks_min = 2,
                          .priority = -3,
                          .max_restarts = 4,
                          .wait_us = 5,
                          .stall_us = 6,
                          .ps_job = {.workers = 8, .servers = 7, .evaluators = 1, .backups = true},
                          .gpus = 9,
                          .time_limit_us = 10},
            .restores = true,
            .checkpoint = {.generation = {2, UINT64_C(0xfedcba9876543210)},
                .position = 11,
                .shared = true,
                .manifest_bytes = 12,
                .manifest_sha256 = {1, 2, 3},
                .digest = 13,
                .path = "checkpoints/origin"}}},
    [CORE_RECORD_STARTED] = {.job = {1}, .incarnation_max = 9},
    [CORE_RECORD_TASK] = {.job = {1},
        .task = {.slot = 3,
            .incarnation = 10,
            .attempts = 2,
            .attempts_generation = 1,
            .backed_by = 4,
            .worker = "worker c"}},
    [CORE_RECORD_PLAN] = {.job = {1},
        .plan = {.generation = {3, 33},
            .parent = {2, 22},
            .resume = 4,
            .restarts = 5,
            .restarted = true}},
    [CORE_RECORD_CONTROL] = {.job = {1},
        .control = {.generation = {3, 33},
            .halt_at = POSITION_NONE,
            .halt_kind = HALT_REGROUP,
            .halt_stream = STREAM_ANY}},
    [CORE_RECORD_WATERMARK] = {.job = {1},
        .watermark = {.generation = {3, 33}, .up_to = 40, .cursor = {1, 2, 3, 4, 5, true}}},
    [CORE_RECORD_CONSUMED] = {.job = {1},
        .consumption = {.cursor = {1, 2, 3, 4, 5, true},
            .consumption = {.steps = 6,
                .samples = 7,
                .consumed = {8, 9},
                .expected = {10, 11},
                .provable = true,
                .files = CONSUMED_FILES_ALL}}},
    [CORE_RECORD_STREAM] = {.job = {1},
        .stream = {.stream = 1, .samples = 60000, .shares = true, .name = "train"}},
    [CORE_RECORD_END_OF_DATA] = {.job = {1}, .end_of_data = {1, 2, 3, 4, 5, true}},
    [CORE_RECORD_CHECKPOINT] = {.job = {1},
        .checkpoint = {.generation = {3, 33},
            .position = 41,
            .manifest_bytes = 12,
            .manifest_sha256 = {[31] = 255},
            .digest = UINT64_C(0xfedcba9876543210),
            .path = "checkpoints/41"}},
    [CORE_RECORD_DONE] = {.job = {1}, .done = {.generation = {3, 33}, .position = 42}},
    [CORE_RECORD_TASK_EXIT] = {.job = {1},
        .task_exit = {.slot = 16,
            .incarnation = 1 + (UINT64_C(1) << 40),
            .state = TASK_EXITED,
            .exit = {.code = 137, .signal = 9, .text = "oh"}}},
    [CORE_RECORD_ENDING] = {.job = {1},
        .ended = {.state = JOB_PREEMPTED, .code = CADRE_ABORTED, .exit_code = 75, .text = "it"}},
    [CORE_RECORD_ENDED] = {.job = {1},
        .ended = {.state = JOB_FAILED, .code = CADRE_ABORTED, .exit_code = 1, .text = "it"}},
    [CORE_RECORD_QUEUED] = {.job = {1}},
    [CORE_RECORD_BACKED] = {.job = {1},
        .backed = {.slot = 3, .incarnation = 10, .backed = {.number = 2, .by = 5}}},
    [CORE_RECORD_DRAINED] = {.drained = {.worker = "a", .who = "operator", .why = "disk"}},
    [CORE_RECORD_UNDRAINED] = {.drained = {.worker = "b", .who = "", .why = ""}},
    [CORE_RECORD_CHECKPOINT_LOST] = {.job = {1}, .lost = {.position = 40, .why = "a bit"}},
    [CORE_RECORD_ORIGIN] = {.job = {1},
        .checkpoint = {.generation = {1, 1}, .position = 9, .path = "checkpoints/9"}},
    [CORE_RECORD_PUBLISHED] = {.job = {1}, .published = {3, 41}},
    [CORE_RECORD_DIVERGED] = {.job = {1}, .diverged = {3, 39}},
    [CORE_RECORD_CULPRIT] = {.culprit = {.worker = "a", .times = 2}},
    [CORE_RECORD_VERIFIED] = {.job = {1}, .verified = {38, UINT64_C(0xfedcba9876543210)}},
    [CORE_RECORD_CHECKPOINT_DROPPED] = {.job = {1}, .dropped = 40},
    [CORE_RECORD_FORGOTTEN] = {.job = {7}},
    [CORE_RECORD_TERM] = {.start = 12},
};

static struct core_record typed[KINDS];

static struct store_record stored_of(unsigned kind)
{
    if (kind == LEDGER_EVENT) {
        return (struct store_record){.event = &event, .job = {1}};
    }
    bool placed = kind == CORE_RECORD_STARTED || kind == CORE_RECORD_PLAN;
    typed[kind] = records[kind];
    typed[kind].type = (enum core_record_type)kind;
    return (struct store_record){.record = &typed[kind],
        .wall_us = placed || kind == CORE_RECORD_JOB ? 1700000000000000 : 0,
        .spec = kind == CORE_RECORD_JOB ? "spec\0 of bytes" : NULL,
        .spec_bytes = kind == CORE_RECORD_JOB ? 14 : 0,
        .placements = placed ? placements : NULL,
        .target_count = placed ? CADRE_COUNT_OF(placements) : 0,
        .committed = kind == CORE_RECORD_ENDING ? 40 : 0};
}

static void write_entry(
    const struct store_record *stored, size_t count, struct wire_buffer *ret_bytes)
{
    struct cadre_error error;
    wire_buffer_clear(ret_bytes);
    assert_ok(log_entry_write(ledger_format_newest(), stored, count, ret_bytes, &error), &error);
}

/* The bytes of an entry that is read and written again. */
static void assert_same_again(const struct wire_buffer *bytes)
{
    struct cadre_error error;
    struct entry_records entry = {0};
    struct wire_buffer again = {0};
    assert_ok(log_entry_read(&entry, bytes->bytes, bytes->size, &error), &error);
    write_entry(entry.records, entry.count, &again);
    assert_int_equal(again.size, bytes->size);
    assert_memory_equal(again.bytes, bytes->bytes, bytes->size);
    wire_buffer_free(&again);
    log_entry_free(&entry);
}

/* ---- tests ---- */

static void assert_same_placements(const struct store_record *a, const struct store_record *b)
{
    assert_int_equal(a->target_count, b->target_count);
    for (size_t i = 0; i < a->target_count; i++) {
        assert_int_equal(a->placements[i].slot, b->placements[i].slot);
        assert_true(a->placements[i].incarnation == b->placements[i].incarnation);
        assert_int_equal(a->placements[i].attempts, b->placements[i].attempts);
        assert_true(a->placements[i].attempts_generation == b->placements[i].attempts_generation);
        assert_string_equal(a->placements[i].worker, b->placements[i].worker);
    }
}

/* Of each kind by itself, and byte by byte, because all records here are zero where nothing is. */
static void each_kind_comes_back(void **state)
{
    (void)state;
    struct cadre_error error;
    struct wire_buffer bytes = {0};
    struct entry_records entry = {0};
    for (unsigned kind = 1; kind < LEDGER_EVENT; kind++) {
        const struct store_record given = stored_of(kind);
        write_entry(&given, 1, &bytes);
        assert_ok(log_entry_read(&entry, bytes.bytes, bytes.size, &error), &error);
        const struct store_record *read = entry.records;
        assert_int_equal(entry.count, 1);
        assert_memory_equal(read->record, given.record, sizeof *given.record);
        assert_true(read->wall_us == given.wall_us && read->committed == given.committed);
        assert_int_equal(read->spec_bytes, given.spec_bytes);
        assert_true(given.spec_bytes == 0 || memcmp(read->spec, given.spec, given.spec_bytes) == 0);
        assert_same_placements(read, &given);
        assert_same_again(&bytes);
    }
    const struct store_record given = stored_of(LEDGER_EVENT);
    write_entry(&given, 1, &bytes);
    assert_same_again(&bytes);
    assert_ok(log_entry_read(&entry, bytes.bytes, bytes.size, &error), &error);
    const struct history_event *read = entry.records[0].event;
    assert_null(entry.records[0].record);
    assert_int_equal(entry.records[0].job.n, 1);
    assert_true(read->time_us == 1 && read->slot == HISTORY_SLOT_NONE && read->restarted);
    assert_int_equal(read->exit_code, -1);
    assert_string_equal(read->text, event.text);
    wire_buffer_free(&bytes);
    log_entry_free(&entry);
}

/* ---- two stores ---- */

struct shown {
    char *text;
    size_t size;
    FILE *file;
};

static void show_event(void *user, const struct history_event *shown)
{
    struct shown *to = user;
    fprintf(to->file, "event %" PRIu64 " at %" PRIu64 " kind %d %s %s %s\n", shown->number,
        shown->time_us, (int)shown->kind, shown->worker, shown->roster, shown->text);
}

static void show_drained(void *user, const struct core_drained *drained)
{
    struct shown *to = user;
    fprintf(to->file, "drained %s by %s: %s\n", drained->worker, drained->who, drained->why);
}

static void show_culprit(void *user, const struct core_culprit *culprit)
{
    struct shown *to = user;
    fprintf(to->file, "culprit %s %u times\n", culprit->worker, culprit->times);
}

/* All that store_ops reads. */
static char *all_text(struct store *store)
{
    struct cadre_error error;
    struct shown shown = {0};
    uint64_t last = 0;
    char *jobs = store_text(store);
    shown.file = open_memstream(&shown.text, &shown.size);
    fprintf(shown.file, "%sterm %" PRIu64 " jobs to %" PRIu64 "\n", jobs,
        store->ops->term(store).start, store->ops->job_id_max(store));
    for (uint64_t job = 1; job <= store->ops->job_id_max(store); job++) {
        (void)store->ops->history(
            store, (struct job_id){job}, 0, 1000, show_event, &shown, &last, &error);
    }
    assert_ok(store->ops->drains(store, show_drained, &shown, &error), &error);
    assert_ok(store->ops->culprits(store, show_culprit, &shown, &error), &error);
    fclose(shown.file);
    free(jobs);
    return shown.text;
}

/* In order of their numbers, each a commit of its own; a job 7 to forget is there before. */
static void feed(struct store *store)
{
    struct cadre_error error;
    assert_ok(COMMIT(store, true, &error, record_job(7, 1)), &error);
    for (unsigned kind = 1; kind < KINDS; kind++) {
        const struct store_record stored = stored_of(kind);
        assert_ok(store->ops->commit(store, &stored, 1, kind % 2 == 0, &error), &error);
    }
}

static void stores_have_the_same_rows(void **state)
{
    (void)state;
    cadre_status (*const opens[2][2])(struct store **, struct cadre_error *) = {
        {store_memory_open, open_memory_of_entries}, {open_sqlite, open_sqlite_of_entries}};
    for (int peer = 0; peer < 2; peer++) {
        char *texts[2];
        for (int way = 0; way < 2; way++) {
            struct cadre_error error;
            struct store *store = NULL;
            assert_ok(opens[peer][way](&store, &error), &error);
            feed(store);
            texts[way] = all_text(store);
            store->ops->close(store);
        }
        assert_string_equal(texts[0], texts[1]);
        assert_non_null(strstr(texts[0], "term 12 jobs to 7"));
        free(texts[0]);
        free(texts[1]);
    }
    for (unsigned kind = 1; kind < KINDS; kind++) {
        assert_true((entries_store_kinds() >> kind & 1) != 0);
    }
}

/* ---- bytes that no version writes ---- */

static void write_all(struct wire_buffer *ret_bytes)
{
    struct store_record all[KINDS];
    for (unsigned kind = 1; kind < KINDS; kind++) {
        all[kind - 1] = stored_of(kind);
    }
    write_entry(all, KINDS - 1, ret_bytes);
}

static void a_later_version_is_refused(void **state)
{
    (void)state;
    static const uint8_t unknown_kind[] = {8, 1, 18, 3, 0xea, 1, 0}; /* field 29 */
    static const uint8_t no_kind[] = {8, 1, 18, 3, 0x80, 2, 1};      /* job 1, and nothing else */
    static const uint8_t format[] = {8, 2};
    struct cadre_error error;
    struct entry_records entry = {0};
    assert_error(log_entry_read(&entry, unknown_kind, sizeof unknown_kind, &error),
        CADRE_INVALID_ARGUMENT, &error,
        "LedgerRecord has no message of this version (in LedgerEntry.records[0])");
    assert_error(log_entry_read(&entry, no_kind, sizeof no_kind, &error), CADRE_INVALID_ARGUMENT,
        &error, "LedgerRecord has no message of this version");
    assert_error(log_entry_read(&entry, format, sizeof format, &error), CADRE_INVALID_ARGUMENT,
        &error, "LedgerEntry.format is 2; it must be from 1 to 1");
    assert_int_equal(entry.count, 0);
    log_entry_free(&entry);
}

/* What is accepted is applied, or refused, without harm. */
static void try_bytes(const uint8_t *bytes, size_t size)
{
    struct cadre_error error = {0};
    struct entry_records entry = {0};
    if (log_entry_read(&entry, bytes, size, &error) == CADRE_OK) {
        struct store *store = NULL;
        assert_ok(store_memory_open(&store, &error), &error);
        (void)store->ops->commit(store, entry.records, entry.count, true, &error);
        store->ops->close(store);
    } else {
        assert_true(error.text[0] != '\0');
    }
    log_entry_free(&entry);
}

static void what_is_cut_or_bent_does_no_harm(void **state)
{
    (void)state;
    struct wire_buffer bytes = {0};
    struct prng prng = {.state = 7};
    write_all(&bytes);
    for (size_t size = 0; size < bytes.size; size++) {
        try_bytes(bytes.bytes, size);
    }
    uint8_t *bent = malloc(bytes.size);
    assert_non_null(bent);
    for (int round = 0; round < 3000; round++) {
        memcpy(bent, bytes.bytes, bytes.size);
        for (uint64_t flips = 1 + prng_uniform(&prng, 4); flips > 0; flips--) {
            bent[prng_uniform(&prng, bytes.size)] = (uint8_t)prng_next(&prng);
        }
        try_bytes(bent, bytes.size);
    }
    free(bent);
    wire_buffer_free(&bytes);
}

/* ---- sizes ---- */

static size_t size_of(const struct store_record *stored, size_t count)
{
    struct wire_buffer bytes = {0};
    write_entry(stored, count, &bytes);
    size_t size = bytes.size;
    wire_buffer_free(&bytes);
    return size;
}

/* A start, or a plan, of so many tasks. */
static size_t size_placed(enum core_record_type type, size_t tasks)
{
    struct store_placement *items = calloc(tasks, sizeof *items);
    char(*names)[48] = calloc(tasks, sizeof *names);
    assert_true(items != NULL && names != NULL);
    for (size_t i = 0; i < tasks; i++) {
        (void)snprintf(names[i], sizeof names[i], "worker-%05zu.cluster", i);
        items[i] = (struct store_placement){.slot = (uint32_t)i,
            .incarnation = i + 1,
            .worker = type == CORE_RECORD_STARTED ? names[i] : ""};
    }
    struct store_record stored = stored_of(type);
    stored.placements = items;
    stored.target_count = tasks;
    size_t size = size_of(&stored, 1);
    free(items);
    free(names);
    return size;
}

/* A job far on its way: step 1,000,000, epoch 12, generation 9. */
static size_t size_of_step(void)
{
    const struct core_record watermark = {.type = CORE_RECORD_WATERMARK,
        .job = {1200},
        .watermark = {.generation = {9, large},
            .up_to = 1000000,
            .cursor = {.stream = 1, .epoch = 12, .first = 980000, .begin = 980000}}};
    const struct core_record consumed = {.type = CORE_RECORD_CONSUMED,
        .job = {1200},
        .consumption = {.cursor = {.stream = 1, .epoch = 12, .first = 980000, .begin = 980000},
            .consumption = {.steps = 20000,
                .samples = 5120000,
                .consumed = {large, large},
                .expected = {large, large},
                .provable = true}}};
    const struct store_record stored[] = {{.record = &watermark}, {.record = &consumed}};
    return size_of(stored, 2);
}

static void entries_are_small(void **state)
{
    (void)state;
    for (unsigned kind = 1; kind < KINDS; kind++) {
        const struct store_record stored = stored_of(kind);
        print_message("kind %2u: %4zu bytes\n", kind, size_of(&stored, 1));
    }
    size_t step = size_of_step();
    size_t start = size_placed(CORE_RECORD_STARTED, 10000);
    size_t plan = size_placed(CORE_RECORD_PLAN, 10000);
    print_message("watermark and consumed: %zu bytes\n", step);
    print_message("start of 10,000 tasks: %zu bytes, plan: %zu\n", start, plan);
    assert_true(step <= 120);
    assert_true(start <= 400000 && plan <= 120000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_comes_back),
        cmocka_unit_test(stores_have_the_same_rows),
        cmocka_unit_test(a_later_version_is_refused),
        cmocka_unit_test(what_is_cut_or_bent_does_no_harm),
        cmocka_unit_test(entries_are_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
