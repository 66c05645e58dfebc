/* SPDX-License-Identifier: Apache-2.0
 * What a peer may send: items that are damaged, and peers of the chief and of workers that do not
 * keep to what was agreed. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "stage.h"
#include "worker/library/runtime/closures/closure_wire.h"

#define WAIT_TIMEOUT_US (60 * CADRE_US_PER_S)

static uint8_t *written(cadre_tensor *tensor, size_t *ret_bytes)
{
    const struct wire_item item = {.tensor = tensor, .object = 77};
    *ret_bytes = wire_item_bytes(&item);
    uint8_t *bytes = malloc(*ret_bytes);
    assert_non_null(bytes);
    assert_ptr_equal(wire_item_write(&item, bytes), bytes + *ret_bytes);
    return bytes;
}

static cadre_status read_back(const uint8_t *bytes, size_t size, struct wire_item *ret_item)
{
    struct cadre_error error = {0};
    /* Memory of just that size: a sanitizer sees what is read behind it. */
    uint8_t *copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy + 1, bytes, size);
    struct wire_reader reader = {.at = copy + 1, .left = size};
    cadre_status status = wire_item_read(&reader, ret_item, &error);
    free(copy);
    assert_true(status == CADRE_OK || error.text[0] != '\0');
    return status;
}

/* Each beginning of an item, and each with one byte that is another. */
static void damage(cadre_tensor *tensor)
{
    size_t size = 0;
    struct wire_item item;
    uint8_t *bytes = written(tensor, &size);
    assert_int_equal(read_back(bytes, size, &item), CADRE_OK);
    cadre_tensor_release(item.tensor);
    for (size_t less = 0; less < size; less++) {
        assert_int_not_equal(read_back(bytes, less, &item), CADRE_OK);
        assert_null(item.tensor);
    }
    for (size_t i = 0; i < size; i++) {
        for (int bit = 0; bit < 8; bit++) {
            bytes[i] ^= (uint8_t)(1 << bit);
            if (read_back(bytes, size, &item) == CADRE_OK) {
                cadre_tensor_release(item.tensor);
            } else {
                assert_null(item.tensor);
            }
            bytes[i] ^= (uint8_t)(1 << bit);
        }
    }
    free(bytes);
}

static void items_may_be_damaged(void **state)
{
    (void)state;
    static const cadre_string strings[] = {{"one", 3}, {"", 0}, {"three", 5}};
    static const int32_t numbers[] = {1, 2, 3, 4, 5, 6};
    const int64_t dims[] = {3, 2};
    cadre_tensor *tensor = NULL;
    size_t size = 0;
    struct wire_item item;
    assert_public_ok(cadre_tensor_from_data(CADRE_STRING, 1, dims, strings, &tensor));
    damage(tensor);
    cadre_tensor_release(tensor);
    assert_public_ok(cadre_tensor_from_data(CADRE_I32, 2, dims, numbers, &tensor));
    damage(tensor);
    cadre_tensor_release(tensor);
    uint8_t *bytes = written(NULL, &size);
    assert_int_equal(read_back(bytes, size, &item), CADRE_OK);
    assert_null(item.tensor);
    assert_int_equal(item.object, 77);
    free(bytes);
}

/* --- a peer of the chief --- */

/* Comes as worker 0. */
static struct link *come(struct stage *stage)
{
    struct cadre_error error = {0};
    struct link *link = NULL;
    struct link_terms terms = stage->chief.terms;
    terms.slot = 1;
    terms.incarnation = 51;
    assert_ok(link_connect(&terms, "the chief", stage->address, 0, WAIT_TIMEOUT_US, &link, &error),
        &error);
    return link;
}

static struct frame receive(struct link *link)
{
    struct cadre_error error = {0};
    struct frame frame;
    uint8_t bytes[4096];
    assert_ok(link_receive(link, WAIT_TIMEOUT_US, &frame, &error), &error);
    assert_true(frame.bytes <= sizeof bytes);
    assert_ok(link_receive_bytes(link, bytes, (size_t)frame.bytes, &error), &error);
    return frame;
}

static void await_end(struct link *link)
{
    struct cadre_error error = {0};
    struct frame frame;
    assert_int_equal(link_receive(link, WAIT_TIMEOUT_US, &frame, &error), CADRE_UNAVAILABLE);
    link_free(link);
}

static void send_bytes(struct link *link, struct frame frame, const void *bytes, size_t size)
{
    struct cadre_error error = {0};
    uint8_t copy[256];
    struct iovec piece = {.iov_base = copy, .iov_len = size};
    assert_true(size <= sizeof copy);
    memcpy(copy, bytes, size);
    frame.bytes = size;
    assert_ok(link_send(link, &frame, &piece, 1, &error), &error);
}

/* It is dropped, and what it had is done by the next one. */
static void a_worker_may_send_anything(void **state)
{
    (void)state;
    struct stage stage;
    struct cadre_error error = {0};
    stage_open(&stage, 1);
    cadre_remote_value *value = stage_schedule(&stage, "tally", 1);
    const struct frame bad[] = {
        {.kind = CLOSURE_START},               /* the chief's own */
        {.kind = 99},                          /* of no kind */
        {.kind = CLOSURE_RESULT, .id = 12345}, /* of no closure */
        {.kind = CLOSURE_RESULT, .id = 12345, .args = {1 << 20}},
        {.kind = CLOSURE_RESULT, .id = 12345, .code = 3},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct link *link = come(&stage);
        assert_int_equal(receive(link).kind, CLOSURE_START);
        assert_ok(link_send(link, &bad[i], NULL, 0, &error), &error);
        await_end(link);
    }
    stage_start(&stage, 0);
    assert_public_ok(cadre_join(stage.strategy));
    assert_int_equal(stage_runs(1), 1);
    cadre_remote_value_release(value);
    stage_close(&stage);
}

/* A result of it that cannot be read is the closure's failure: no other worker would do better. */
static void outputs_may_be_damaged(void **state)
{
    (void)state;
    struct stage stage;
    stage_open(&stage, 1);
    struct link *link = come(&stage);
    const struct frame bad[] = {
        {.kind = CLOSURE_RESULT, .args = {1}},
        {.kind = CLOSURE_RESULT, .args = {CADRE_OUTPUTS_MAX + 1}},
        {.kind = CLOSURE_RESULT, .code = 77},
    };
    const cadre_status codes[] = {CADRE_INTERNAL, CADRE_INTERNAL, CADRE_UNKNOWN};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cadre_remote_value_release(stage_schedule(&stage, "tally", 1));
        struct frame result = bad[i];
        result.id = receive(link).id;
        send_bytes(link, result, "what is this?", 13);
        assert_public_error(cadre_join(stage.strategy), codes[i], "");
    }
    /* A thing is no output. */
    size_t size = 0;
    uint8_t *bytes = written(NULL, &size);
    cadre_remote_value_release(stage_schedule(&stage, "tally", 1));
    struct frame result = {.kind = CLOSURE_RESULT, .args = {1}};
    result.id = receive(link).id;
    send_bytes(link, result, bytes, size);
    assert_public_error(cadre_join(stage.strategy), CADRE_INTERNAL, "no tensor");
    free(bytes);
    link_free(link);
    stage_close(&stage);
}

/* A task that is no worker, and one whose later incarnation is here already. */
static void who_is_no_worker_is_sent_away(void **state)
{
    (void)state;
    struct stage stage;
    struct cadre_error error = {0};
    struct link *link = NULL;
    stage_open(&stage, 1);
    struct link_terms terms = stage.chief.terms;
    terms.slot = 2; /* ps 0 */
    assert_ok(link_connect(&terms, "the chief", stage.address, 0, WAIT_TIMEOUT_US, &link, &error),
        &error);
    await_end(link);
    struct link *newest = come(&stage);
    stage_await_connected(&stage, 1);
    terms.slot = 1;
    terms.incarnation = 50;
    assert_ok(link_connect(&terms, "the chief", stage.address, 0, WAIT_TIMEOUT_US, &link, &error),
        &error);
    await_end(link);
    cadre_remote_value_release(stage_schedule(&stage, "tally", 1));
    assert_int_equal(receive(newest).kind, CLOSURE_START);
    /* The same incarnation again: it replaces the older connection. */
    link = come(&stage);
    assert_int_equal(receive(link).kind, CLOSURE_START);
    await_end(newest);
    link_free(link);
    stage_close(&stage);
}

/* --- a peer of a worker --- */

struct chief {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct link *link;
};

static void admit(void *user, struct link *link)
{
    struct chief *chief = user;
    pthread_mutex_lock(&chief->lock);
    while (chief->link != NULL) {
        pthread_cond_wait(&chief->changed, &chief->lock);
    }
    chief->link = link;
    pthread_cond_broadcast(&chief->changed);
    pthread_mutex_unlock(&chief->lock);
}

static struct link *next_link(struct chief *chief)
{
    pthread_mutex_lock(&chief->lock);
    while (chief->link == NULL) {
        pthread_cond_wait(&chief->changed, &chief->lock);
    }
    struct link *link = chief->link;
    chief->link = NULL;
    pthread_cond_broadcast(&chief->changed);
    pthread_mutex_unlock(&chief->lock);
    return link;
}

static void await_failure(struct link *link, cadre_status code, const char *part)
{
    struct cadre_error error = {0};
    struct frame frame;
    char text[CADRE_ERROR_TEXT_BYTES] = {0};
    assert_ok(link_receive(link, WAIT_TIMEOUT_US, &frame, &error), &error);
    assert_int_equal(frame.kind, CLOSURE_RESULT);
    assert_int_equal(frame.code, code);
    assert_true(frame.bytes < sizeof text);
    assert_ok(link_receive_bytes(link, text, (size_t)frame.bytes, &error), &error);
    if (strstr(text, part) == NULL) {
        fail_msg("'%s' does not say '%s'", text, part);
    }
}

/* What a chief gets wrong fails its closure; what is no part of the talk ends the connection. */
static void a_chief_may_send_anything(void **state)
{
    (void)state;
    struct stage stage;
    struct chief chief = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct link_listener *listener = NULL;
    struct cadre_error error = {0};
    const struct link_admission admission = {.admit = admit, .user = &chief};
    stage_open(&stage, 1);
    assert_ok(link_listener_open("127.0.0.1", NULL, &listener, stage.address, &error), &error);
    assert_ok(link_listener_start(listener, &stage.chief.terms, &admission, &error), &error);
    stage_start(&stage, 0);
    struct link *link = next_link(&chief);
    const struct frame bad[] = {
        {.kind = CLOSURE_RESULT},
        {.kind = CLOSURE_MAKE, .id = 1, .args = {REGISTERED_FUNCTION}},
        {.kind = CLOSURE_MAKE, .id = 5, .args = {REGISTERED_DATASET}},
        {.kind = CLOSURE_START, .bytes = UINT64_MAX},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct frame frame = bad[i];
        frame.bytes = 0;
        if (bad[i].bytes > 0) {
            uint8_t header[FRAME_BYTES] = {0};
            header[0] = CLOSURE_START;
            memset(header + 16, 0xff, 8); /* its bytes */
            assert_int_equal(write(link_fd(link), header, sizeof header), FRAME_BYTES);
        } else {
            assert_ok(link_send(link, &frame, NULL, 0, &error), &error);
        }
        await_end(link);
        link = next_link(&chief);
    }
    send_bytes(link, (struct frame){.kind = CLOSURE_START, .id = 1, .args = {1, 0, 200}}, "x", 1);
    await_failure(link, CADRE_INTERNAL, "without a function's name");
    send_bytes(
        link, (struct frame){.kind = CLOSURE_START, .id = 2, .args = {1, 0, 8}}, "no_such.", 8);
    await_failure(link, CADRE_NOT_FOUND, "worker 0: no function `no_such.` is registered");
    send_bytes(
        link, (struct frame){.kind = CLOSURE_START, .id = 3, .args = {1, 1, 5}}, "tally\0\0\0", 8);
    await_failure(link, CADRE_INTERNAL, "in the middle of an item");
    send_bytes(
        link, (struct frame){.kind = CLOSURE_START, .id = 4, .args = {1, 65, 5}}, "tally\0\0\0", 8);
    await_failure(link, CADRE_INTERNAL, "65 arguments");
    const struct frame cancel = {.kind = CLOSURE_CANCEL, .args = {9}};
    assert_ok(link_send(link, &cancel, NULL, 0, &error), &error);
    send_bytes(
        link, (struct frame){.kind = CLOSURE_START, .id = 9, .args = {1, 0, 5}}, "quick\0\0\0", 8);
    await_failure(link, CADRE_CANCELLED, "before it ran");
    link_listener_close(listener);
    link_free(link);
    stage_close(&stage);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(items_may_be_damaged),
        cmocka_unit_test(a_worker_may_send_anything),
        cmocka_unit_test(outputs_may_be_damaged),
        cmocka_unit_test(who_is_no_worker_is_sent_away),
        cmocka_unit_test(a_chief_may_send_anything),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
