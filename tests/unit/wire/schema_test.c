/* SPDX-License-Identifier: Apache-2.0
 * The .proto files as protoc understands them: the hand-written table of methods is right, and no
 * message type contains itself (protobuf-c unpacks by recursion without a limit). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/pure/assert.h"
#include "common/wire/methods.h"
#include "descriptor_subset.pb-c.h"
#include "tests/lib/test.h"

#define TYPE_MESSAGE   11
#define MESSAGES_MAX   256
#define NAME_BYTES_MAX 128

static Cadre__Test__FileSet *set;
static const char *set_path;

static int load(void **state)
{
    (void)state;
    struct cadre_error error;
    char *bytes = NULL;
    size_t size = 0;
    assert_ok(file_read(set_path, 1 << 20, &bytes, &size, &error), &error);
    set = cadre__test__file_set__unpack(NULL, size, (const uint8_t *)bytes);
    free(bytes);
    return set == NULL;
}

static int unload(void **state)
{
    (void)state;
    cadre__test__file_set__free_unpacked(set, NULL);
    return 0;
}

static const struct {
    const char *path;
    enum method_shape shape;
} table[] = {
#define ROW(path, shape) {path, shape},
    METHOD_TABLE(ROW)
#undef ROW
};

static void methods_are_those_of_the_proto_files(void **state)
{
    (void)state;
    size_t next = 0;
    for (size_t file = 0; file < set->n_file; file++) {
        const Cadre__Test__File *from = set->file[file];
        for (size_t i = 0; i < from->n_service; i++) {
            const Cadre__Test__Service *service = from->service[i];
            if (strcmp(from->package, "cadre.v1") != 0) {
                continue;
            }
            for (size_t j = 0; j < service->n_method; j++, next++) {
                const Cadre__Test__Method *method = service->method[j];
                char path[NAME_BYTES_MAX];
                snprintf(
                    path, sizeof path, "/%s.%s/%s", from->package, service->name, method->name);
                assert_true(next < CADRE_COUNT_OF(table));
                assert_string_equal(table[next].path, path);
                int shape = (method->client_streaming ? METHOD_CLIENT_STREAM : METHOD_UNARY) +
                            (method->server_streaming ? METHOD_SERVER_STREAM : METHOD_UNARY);
                assert_int_equal((int)table[next].shape, shape);
            }
        }
    }
    assert_int_equal(next, CADRE_COUNT_OF(table));
}

/* ---- recursion ---- */

static struct {
    char name[NAME_BYTES_MAX]; /* ".cadre.v1.JobSpec" */
    const Cadre__Test__Message *message;
    bool open; /* on the path from the root */
    bool done;
} messages[MESSAGES_MAX];
static size_t message_count;

static size_t find(const char *name)
{
    for (size_t i = 0; i < message_count; i++) {
        if (strcmp(messages[i].name, name) == 0) {
            return i;
        }
    }
    fail_msg("%s is not in the descriptor set", name);
    return 0;
}

static void walk(size_t index)
{
    if (messages[index].done) {
        return;
    }
    if (messages[index].open) {
        fail_msg(
            "%s contains itself; a message of it could exhaust the stack", messages[index].name);
    }
    messages[index].open = true;
    const Cadre__Test__Message *message = messages[index].message;
    for (size_t i = 0; i < message->n_field; i++) {
        if (message->field[i]->type == TYPE_MESSAGE) {
            walk(find(message->field[i]->type_name));
        }
    }
    messages[index].open = false;
    messages[index].done = true;
}

static void no_type_contains_itself(void **state)
{
    (void)state;
    for (size_t file = 0; file < set->n_file; file++) {
        const Cadre__Test__File *from = set->file[file];
        for (size_t i = 0; i < from->n_message_type; i++) {
            assert_true(message_count < MESSAGES_MAX);
            snprintf(messages[message_count].name, NAME_BYTES_MAX, ".%s.%s", from->package,
                from->message_type[i]->name);
            messages[message_count++].message = from->message_type[i];
        }
    }
    assert_true(message_count > 50);
    for (size_t i = 0; i < message_count; i++) {
        walk(i);
    }
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: %s DESCRIPTOR_SET\n", argv[0]);
        return 2;
    }
    set_path = argv[1];
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(methods_are_those_of_the_proto_files),
        cmocka_unit_test(no_type_contains_itself),
    };
    return cmocka_run_group_tests(tests, load, unload);
}
