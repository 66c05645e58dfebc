/* SPDX-License-Identifier: Apache-2.0
 * Mapped files, and the handler of SIGBUS: a file that is cut short while threads read it is an
 * error of theirs, and every other SIGBUS goes to the handler that was there before. */
#include "tests/unit/input/cmocka_unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/fault.h"
#include "common/pure/prng.h"
#include "tests/unit/input/scratch_folder.h"
#include "tests/unit/input/tfrecord_writing.h"
#include "worker/library/input/files/mapped_file.h"
#include "worker/library/input/files/record_table.h"

#define PAGES      64
#define PAGE_BYTES 4096

static const struct record_options options = {
    .rules = {.record_bytes = 1 << 20}, .buffer_bytes = 1 << 16};

/* Each test runs in a process of its own: cmocka puts handlers of its own over ours, and a process
 * has only one first mapping. */
typedef int process_fn(void);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "line %d: %s\n", __LINE__, #condition);                                \
            return 1;                                                                              \
        }                                                                                          \
    } while (0)

static int run_process(process_fn *function)
{
    int how = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        /* As a program starts, not as cmocka runs a test. */
        signal(SIGBUS, SIG_DFL);
        _exit(function());
    }
    assert_int_equal(waitpid(child, &how, 0), child);
    return how;
}

static void expect_success(process_fn *function)
{
    int how = run_process(function);
    assert_true(WIFEXITED(how));
    assert_int_equal(WEXITSTATUS(how), 0);
}

static void expect_bus_error(process_fn *function)
{
    int how = run_process(function);
    assert_true(WIFSIGNALED(how));
    assert_int_equal(WTERMSIG(how), SIGBUS);
}

/* Maps a file of PAGES pages, each full of its number; NULL when it cannot. */
static const char *map_pages(const char *name, struct mapped_file *ret_mapped)
{
    static uint8_t bytes[PAGES * PAGE_BYTES];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (uint8_t)(i / PAGE_BYTES);
    }
    const char *path = scratch_write(name, bytes, sizeof bytes);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    cadre_status status = mapped_file_open(ret_mapped, fd, sizeof bytes, NULL);
    close(fd);
    return status == CADRE_OK ? path : NULL;
}

/* That the system has of this process. */
static size_t count_mappings(void)
{
    size_t lines = 0;
    FILE *file = fopen("/proc/self/maps", "re");
    for (int c = 0; file != NULL && (c = fgetc(file)) != EOF;) {
        lines += c == '\n' ? 1 : 0;
    }
    if (file != NULL) {
        fclose(file);
    }
    return lines;
}

static int copy_and_cut(void)
{
    struct mapped_file mapped = {0};
    struct mapped_file other = {0};
    uint8_t bytes[100];
    const char *path = map_pages("a", &mapped);
    REQUIRE(path != NULL && map_pages("b", &other) != NULL);
    for (size_t page = 0; page < PAGES; page++) {
        mapped_file_prefetch(&mapped, page * PAGE_BYTES, PAGE_BYTES);
        REQUIRE(mapped_file_copy(&mapped, page * PAGE_BYTES + 50, bytes, sizeof bytes));
        REQUIRE(bytes[99] == page);
    }
    REQUIRE(truncate(path, (off_t)10 * PAGE_BYTES) == 0);
    REQUIRE(mapped_file_copy(&mapped, 9 * PAGE_BYTES, bytes, sizeof bytes));
    REQUIRE(!mapped_file_copy(&mapped, 10 * PAGE_BYTES - 50, bytes, sizeof bytes));
    REQUIRE(bytes[49] == 9 && bytes[50] == 0);
    /* It stays so, and is that file's trouble alone; nothing more of it is looked at, which would
     * take the process's mappings up, page by page. */
    size_t lines = count_mappings();
    for (size_t page = 0; page < PAGES; page += 2) {
        REQUIRE(!mapped_file_copy(&mapped, page * PAGE_BYTES, bytes, sizeof bytes));
    }
    REQUIRE(count_mappings() == lines);
    REQUIRE(mapped_file_copy(&other, 20 * PAGE_BYTES, bytes, sizeof bytes));
    mapped_file_close(&mapped);
    mapped_file_close(&mapped);
    mapped_file_close(&other);
    /* A row that is used again begins without a mark. */
    REQUIRE(map_pages("a", &mapped) != NULL);
    REQUIRE(mapped_file_copy(&mapped, 20 * PAGE_BYTES, bytes, sizeof bytes));
    mapped_file_close(&mapped);
    return 0;
}

static void copies_and_cuts(void **state)
{
    (void)state;
    expect_success(copy_and_cut);
}

static int fail_to_map(void)
{
    struct mapped_file mapped = {0};
    struct cadre_error error = {0};
    int fd = open(scratch_write("c", "bytes", 5), O_RDONLY | O_CLOEXEC);
    fault_arm("input.map", 1);
    REQUIRE(mapped_file_open(&mapped, fd, 5, &error) == CADRE_RESOURCE_EXHAUSTED);
    REQUIRE(fault_disarm());
    REQUIRE(mapped.bytes == NULL && mapped.mapping == NULL);
    REQUIRE(mapped_file_open(&mapped, fd, UINT64_MAX, &error) == CADRE_RESOURCE_EXHAUSTED);
    REQUIRE(mapped_file_open(&mapped, -1, 5, &error) != CADRE_OK);
    REQUIRE(mapped_file_open(&mapped, fd, 5, &error) == CADRE_OK);
    mapped_file_close(&mapped);
    signal(SIGBUS, SIG_DFL);
    REQUIRE(mapped_file_open(&mapped, fd, 5, &error) == CADRE_FAILED_PRECONDITION);
    return 0;
}

static void mappings_that_fail(void **state)
{
    (void)state;
    expect_success(fail_to_map);
}

/* Very many files leave the process the mappings that it needs for other things. */
static int map_too_many(void)
{
    static struct mapped_file mapped[MAPPED_FILES_MAX];
    struct mapped_file more = {0};
    struct cadre_error error = {0};
    char byte = 0;
    int fd = open(scratch_write("m", "bytes", 5), O_RDONLY | O_CLOEXEC);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < MAPPED_FILES_MAX; i++) {
            REQUIRE(mapped_file_open(&mapped[i], fd, 5, &error) == CADRE_OK);
        }
        REQUIRE(mapped_file_open(&more, fd, 5, &error) == CADRE_RESOURCE_EXHAUSTED);
        REQUIRE(more.mapping == NULL);
        mapped_file_close(&mapped[7]);
        REQUIRE(mapped_file_open(&mapped[7], fd, 5, &error) == CADRE_OK);
        for (size_t i = 0; i < MAPPED_FILES_MAX; i++) {
            REQUIRE(mapped_file_copy(&mapped[i], 1, &byte, 1) && byte == 'y');
            mapped_file_close(&mapped[i]);
        }
    }
    return 0;
}

static void the_number_of_mappings_is_bounded(void **state)
{
    (void)state;
    expect_success(map_too_many);
}

struct reading {
    const struct record_table *table;
    const struct frames *frames;
    atomic_bool *cut;
    uint64_t seed;
    unsigned failures;
    const char *wrong;
};

/* Reads records in random order until the file is cut, and some after that: each is right, or is
 * DATA_LOSS that names it. */
static void *read_records(void *user)
{
    struct reading *reading = user;
    struct prng prng = {.state = reading->seed};
    uint8_t bytes[4096];
    for (int after = 0; after < 2000;) {
        struct cadre_error error = {0};
        cadre_string record = {0};
        struct record_run run = {.table = reading->table,
            .first = prng_uniform(&prng, reading->frames->count),
            .count = 1};
        after += atomic_load(reading->cut) ? 1 : 0;
        record_table_locate(&run);
        cadre_status status = record_table_read(&run, 1, bytes, &record, &error);
        size_t start = reading->frames->starts[run.first];
        if (status == CADRE_OK &&
            (record.size != run.bytes - 16 ||
                memcmp(record.bytes, reading->frames->bytes + start + 12, record.size) != 0)) {
            reading->wrong = "another record";
        }
        reading->failures += status != CADRE_OK;
        if (status != CADRE_OK &&
            (status != CADRE_DATA_LOSS || strstr(error.text, "threads, record ") == NULL)) {
            reading->wrong = "another error";
        }
    }
    return NULL;
}

static struct frames frames; /* made before the process is */

static int cut_while_reading(void)
{
    enum { THREADS = 4 };
    struct record_table table = {0};
    struct cadre_error error = {0};
    struct reading readings[THREADS];
    pthread_t threads[THREADS];
    atomic_bool cut;
    atomic_init(&cut, false);
    const char *path = scratch_path("threads");
    REQUIRE(record_table_open(&table, path, NULL, &options, false, &error) == CADRE_OK);
    REQUIRE(table.mapped.mapping != NULL);
    for (uint64_t t = 0; t < THREADS; t++) {
        readings[t] =
            (struct reading){.table = &table, .frames = &frames, .cut = &cut, .seed = t + 1};
        REQUIRE(pthread_create(&threads[t], NULL, read_records, &readings[t]) == 0);
    }
    for (size_t left = 1500; left >= 500; left -= 500) {
        REQUIRE(truncate(path, (off_t)frames.starts[left]) == 0);
    }
    atomic_store(&cut, true);
    for (size_t t = 0; t < THREADS; t++) {
        REQUIRE(pthread_join(threads[t], NULL) == 0);
        REQUIRE(readings[t].wrong == NULL);
        REQUIRE(readings[t].failures > 0);
    }
    record_table_close(&table);
    return 0;
}

static void cut_while_threads_read(void **state)
{
    (void)state;
    frames_add_patterns(&frames, 2000, 1000);
    frames_write(&frames, "threads");
    expect_success(cut_while_reading);
    frames_clear(&frames);
}

/* --- whose SIGBUS it is --- */

static volatile sig_atomic_t seen;
static void *seen_page;

static void own_handler(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    seen++;
    if (info->si_code > 0) {
        mmap(seen_page, PAGE_BYTES, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    }
}

static int create_page(const char *name)
{
    static const uint8_t page[PAGE_BYTES];
    return open(scratch_write(name, page, sizeof page), O_RDWR | O_CLOEXEC);
}

/* A handler that was there before gets what is not ours: a fault of another mapping, and what is
 * sent. */
static int with_a_handler_before(void)
{
    struct sigaction handler = {.sa_sigaction = own_handler, .sa_flags = SA_SIGINFO};
    struct mapped_file mapped = {0};
    uint8_t byte = 1;
    int fd = create_page("a");
    int other = create_page("b");
    sigaction(SIGBUS, &handler, NULL);
    seen_page = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, other, 0);
    REQUIRE(mapped_file_open(&mapped, fd, PAGE_BYTES, NULL) == CADRE_OK);
    REQUIRE(ftruncate(other, 0) == 0 && ftruncate(fd, 0) == 0);
    byte = *(volatile uint8_t *)seen_page;
    REQUIRE(seen == 1 && byte == 0);
    REQUIRE(!mapped_file_copy(&mapped, 0, &byte, 1));
    REQUIRE(seen == 1);
    raise(SIGBUS);
    REQUIRE(seen == 2);
    return 0;
}

static int fault_without_a_handler(void)
{
    struct mapped_file mapped = {0};
    int fd = create_page("a");
    volatile uint8_t *page = mmap(NULL, PAGE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    REQUIRE(mapped_file_open(&mapped, fd, PAGE_BYTES, NULL) == CADRE_OK);
    REQUIRE(ftruncate(fd, 0) == 0);
    return page[0] == 0 ? 2 : 3; /* never comes back */
}

static int signal_without_a_handler(void)
{
    struct mapped_file mapped = {0};
    REQUIRE(mapped_file_open(&mapped, create_page("a"), PAGE_BYTES, NULL) == CADRE_OK);
    raise(SIGBUS);
    return 2; /* never comes here */
}

static int ignored_signal(void)
{
    struct mapped_file mapped = {0};
    signal(SIGBUS, SIG_IGN);
    REQUIRE(mapped_file_open(&mapped, create_page("a"), PAGE_BYTES, NULL) == CADRE_OK);
    raise(SIGBUS);
    return 0;
}

static int ignored_fault(void)
{
    signal(SIGBUS, SIG_IGN);
    return fault_without_a_handler();
}

static void other_faults_go_to_others(void **state)
{
    (void)state;
    expect_success(with_a_handler_before);
    expect_success(ignored_signal);
    expect_bus_error(fault_without_a_handler);
    expect_bus_error(signal_without_a_handler);
    expect_bus_error(ignored_fault);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_and_cuts),
        cmocka_unit_test(mappings_that_fail),
        cmocka_unit_test(the_number_of_mappings_is_bounded),
        cmocka_unit_test(cut_while_threads_read),
        cmocka_unit_test(other_faults_go_to_others),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
