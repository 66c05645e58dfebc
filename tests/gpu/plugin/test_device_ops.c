/* SPDX-License-Identifier: Apache-2.0
 * Devices, memory, copies and order, through the table alone: any plugin passes. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "plugin.h"

#define BYTES ((size_t)300007)

static void fill_pattern(unsigned char *data, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++) {
        data[i] = (unsigned char)((i * 131 + seed * 29 + i / 251) & 0xff);
    }
}

static void test_devices_are_described(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    struct device_info info;
    for (uint32_t i = 0; i < devices; i++) {
        assert_ok(ops->describe(i, &info, &error), &error);
        assert_true(info.name[0] != '\0' && info.bus[0] != '\0');
        assert_true(info.memory_bytes > 0 && info.memory_free <= info.memory_bytes);
        assert_true(info.compute_major > 0 && info.multiprocessors > 0);
        assert_true(info.uuid[0] == '\0' || strlen(info.uuid) > 4);
    }
    assert_error(ops->describe(devices + 70, &info, &error), CADRE_INVALID_ARGUMENT, &error, "GPU");
    assert_error(ops->bind(devices + 70, &error), CADRE_INVALID_ARGUMENT, &error, "GPU");
    assert_ok(ops->bind(0, &error), &error);

    struct device_driver driver;
    memset(&driver, 0xff, sizeof driver);
    ops->driver(&driver);
    assert_non_null(strstr(driver.runtime, "CUDA"));
    assert_non_null(strstr(driver.driver, "CUDA"));
    assert_true((ops->comm != NULL) == (driver.collectives > 0));
    assert_true(driver.collectives_from[0] != '\0');
}

static void test_memory(void **state)
{
    (void)state;
    static const size_t sizes[] = {1, 255, 256, 4097, (size_t)1 << 20, ((size_t)3 << 20) + 5};
    struct cadre_error error = {.code = CADRE_OK};
    unsigned char *host = malloc((size_t)4 << 20);
    assert_non_null(host);
    for (uint32_t device = 0; device < devices; device++) {
        void *stream = stream_of(device);
        void *got[sizeof sizes / sizeof sizes[0]];
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            got[i] = memory_of(device, sizes[i], stream);
            assert_int_equal((uintptr_t)got[i] % 256, 0);
            assert_ok(ops->fill(got[i], (uint8_t)(i + 1), sizes[i], stream, &error), &error);
        }
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            download(host, got[i], sizes[i], stream);
            for (size_t k = 0; k < sizes[i]; k++) {
                assert_int_equal(host[k], i + 1);
            }
            ops->memory_give(device, got[i], stream);
        }
        /* Freed memory is there again, in the order of the stream. */
        for (size_t i = 0; i < 50; i++) {
            void *again = memory_of(device, sizes[i % 6], stream);
            assert_ok(ops->fill(again, 7, sizes[i % 6], stream, &error), &error);
            ops->memory_give(device, again, stream);
        }
        settle(stream);
        ops->stream_close(stream);
    }
    free(host);
}

static void test_memory_that_is_not_there(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    void *stream = stream_of(0);
    void *memory = &error;
    assert_error(ops->memory_get(0, (size_t)1 << 46, stream, &memory, &error),
        CADRE_RESOURCE_EXHAUSTED, &error, "GPU 0");
    assert_null(memory);
    assert_error(ops->memory_get(0, 0, stream, &memory, &error), CADRE_INVALID_ARGUMENT, &error,
        "at least one byte");
    memory = memory_of(0, 100, stream); /* nothing is left of the failure */
    assert_ok(ops->fill(memory, 1, 100, stream, &error), &error);
    ops->memory_give(0, memory, stream);
    ops->memory_give(0, NULL, stream);
    settle(stream);
    if (devices > 1) {
        assert_error(ops->memory_get(1, 100, stream, &memory, &error), CADRE_INVALID_ARGUMENT,
            &error, "stream of GPU 0");
    }
    ops->stream_close(stream);
}

static void test_streams_that_are_not_open(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    int local = 0;
    void *memory = NULL;
    assert_error(ops->stream_test(&local, &error), CADRE_INVALID_ARGUMENT, &error, "no stream");
    assert_error(
        ops->copy(&local, &local, 4, NULL, &error), CADRE_INVALID_ARGUMENT, &error, "no stream");
    assert_error(ops->memory_get(0, 4, &local, &memory, &error), CADRE_INVALID_ARGUMENT, &error,
        "no stream");
    assert_error(ops->stream_open(devices + 70, true, &memory, &error), CADRE_INVALID_ARGUMENT,
        &error, "GPU");
    assert_null(memory);
    assert_error(
        ops->event_open(devices + 70, &memory, &error), CADRE_INVALID_ARGUMENT, &error, "GPU");
    assert_null(memory);
    ops->stream_close(NULL);
    ops->stream_close(&local);
    ops->event_close(NULL);
    void *stream = stream_of(0);
    ops->stream_close(stream);
    assert_error(ops->stream_test(stream, &error), CADRE_INVALID_ARGUMENT, &error, "no stream");
}

static void test_copies(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    unsigned char *out = malloc(BYTES);
    unsigned char *in = malloc(BYTES);
    unsigned char *pinned = ops->pinned_get(BYTES);
    assert_true(out != NULL && in != NULL && pinned != NULL);
    for (uint32_t to = 0; to < devices; to++) {
        uint32_t from = (to + 1) % devices;
        void *stream = stream_of(from);
        void *other = stream_of(to);
        unsigned char *a = memory_of(from, BYTES, stream);
        unsigned char *b = memory_of(to, BYTES, other);
        settle(other); /* the memory is there before the other stream writes to it */
        fill_pattern(out, BYTES, to);
        fill_pattern(pinned, BYTES, to + 100);
        memset(in, 0, BYTES);
        upload(a, out, BYTES, stream);
        /* There and back by odd parts, between devices where there are several. */
        assert_ok(ops->copy(b + 3, a + 1, BYTES - 3, stream, &error), &error);
        assert_ok(ops->copy(b, pinned, 3, stream, &error), &error);
        settle(stream);
        download(in, b, BYTES, stream);
        assert_memory_equal(in, pinned, 3);
        assert_memory_equal(in + 3, out + 1, BYTES - 3);
        /* Page-locked memory is memory like any other. */
        upload(a, pinned, BYTES, stream);
        memset(pinned, 0, BYTES);
        download(pinned, a, BYTES, stream);
        fill_pattern(in, BYTES, to + 100);
        assert_memory_equal(in, pinned, BYTES);
        assert_ok(ops->copy(NULL, NULL, 0, stream, &error), &error);
        assert_ok(ops->fill(NULL, 0, 0, stream, &error), &error);
        ops->memory_give(from, a, stream);
        ops->memory_give(to, b, other);
        settle(stream);
        settle(other);
        ops->stream_close(stream);
        ops->stream_close(other);
    }
    ops->pinned_give(pinned, BYTES);
    ops->pinned_give(NULL, 0);
    free(in);
    free(out);
}

/* One stream writes, the other copies in between: a mark on the way there, and one back. */
static void test_events_order_streams(void **state)
{
    (void)state;
    struct cadre_error error = {.code = CADRE_OK};
    unsigned char *in = malloc(BYTES);
    assert_non_null(in);
    void *writer = stream_of(0);
    void *reader = NULL;
    assert_ok(ops->stream_open(0, true, &reader, &error), &error);
    void *written = NULL;
    void *read = NULL;
    assert_ok(ops->event_open(0, &written, &error), &error);
    assert_ok(ops->event_open(0, &read, &error), &error);
    assert_int_equal(ops->event_test(written, &error), CADRE_OK); /* nothing to wait for */
    unsigned char *from = memory_of(0, BYTES, writer);
    unsigned char *to = memory_of(0, 24 * BYTES, writer);
    for (unsigned round = 0; round < 24; round++) {
        assert_ok(ops->fill(from, (uint8_t)(round + 1), BYTES, writer, &error), &error);
        assert_ok(ops->event_record(written, writer, &error), &error);
        assert_ok(ops->stream_wait(reader, written, &error), &error);
        assert_ok(ops->copy(to + round * BYTES, from, BYTES, reader, &error), &error);
        assert_ok(ops->event_record(read, reader, &error), &error);
        assert_ok(ops->stream_wait(writer, read, &error), &error);
    }
    settle(writer); /* it waits for the reader's last mark */
    assert_int_equal(ops->event_test(read, &error), CADRE_OK);
    assert_int_equal(ops->event_test(written, &error), CADRE_OK);
    for (unsigned round = 0; round < 24; round++) {
        download(in, to + round * BYTES, BYTES, reader);
        for (size_t i = 0; i < BYTES; i += 997) {
            assert_int_equal(in[i], round + 1);
        }
    }
    ops->memory_give(0, from, writer);
    ops->memory_give(0, to, writer);
    settle(writer);
    ops->event_close(written);
    ops->event_close(read);
    ops->stream_close(writer);
    ops->stream_close(reader);
    free(in);
}

static void test_events_of_other_devices(void **state)
{
    (void)state;
    if (devices < 2) {
        skip();
    }
    struct cadre_error error = {.code = CADRE_OK};
    unsigned char in[64];
    void *first = stream_of(0);
    void *second = stream_of(1);
    void *event = NULL;
    assert_ok(ops->event_open(0, &event, &error), &error);
    assert_error(ops->event_record(event, second, &error), CADRE_INVALID_ARGUMENT, &error,
        "an event of GPU 0 cannot be recorded on a stream of GPU 1");
    unsigned char *memory = memory_of(0, 64, first);
    assert_ok(ops->fill(memory, 9, 64, first, &error), &error);
    assert_ok(ops->event_record(event, first, &error), &error);
    assert_ok(ops->stream_wait(second, event, &error), &error); /* across devices it may */
    assert_ok(ops->copy(in, memory, 64, second, &error), &error);
    settle(second);
    assert_int_equal(in[63], 9);
    ops->memory_give(0, memory, first);
    settle(first);
    ops->event_close(event);
    ops->stream_close(first);
    ops->stream_close(second);
}

/* --- several threads --- */

#define THREADS 4

struct thread {
    pthread_t thread;
    uint32_t device;
    bool good;
};

/* No assert of cmocka's: those belong to the main thread. */
static void *use_device(void *data)
{
    struct thread *thread = data;
    struct cadre_error error = {.code = CADRE_OK};
    void *stream = NULL;
    unsigned char in[4096];
    bool good = ops->stream_open(thread->device, false, &stream, &error) == CADRE_OK;
    for (unsigned round = 0; good && round < 30; round++) {
        void *memory = NULL;
        memset(in, 0, sizeof in);
        good = ops->memory_get(thread->device, sizeof in, stream, &memory, &error) == CADRE_OK &&
               ops->fill(memory, (uint8_t)(round + 1), sizeof in, stream, &error) == CADRE_OK &&
               ops->copy(in, memory, sizeof in, stream, &error) == CADRE_OK;
        cadre_status status = CADRE_PENDING;
        while (good && status == CADRE_PENDING) {
            status = ops->stream_test(stream, &error);
        }
        good = good && status == CADRE_OK && in[0] == round + 1 && in[4095] == round + 1;
        ops->memory_give(thread->device, memory, stream);
    }
    ops->stream_close(stream);
    thread->good = good;
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct thread threads[THREADS];
    for (uint32_t i = 0; i < THREADS; i++) {
        threads[i] = (struct thread){.device = i % devices};
        assert_int_equal(pthread_create(&threads[i].thread, NULL, use_device, &threads[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i].thread, NULL);
        assert_true(threads[i].good);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices_are_described),
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_memory_that_is_not_there),
        cmocka_unit_test(test_streams_that_are_not_open),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_events_order_streams),
        cmocka_unit_test(test_events_of_other_devices),
        cmocka_unit_test(test_threads),
    };
    plugin_open_with_devices(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
