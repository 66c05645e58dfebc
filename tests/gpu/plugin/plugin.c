/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct device_ops *ops;
uint32_t devices;

void plugin_open(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : getenv("CADRE_PLUGIN");
    if (path == NULL || path[0] == '\0') {
        test_skip("libcadre-cuda.so is not built: cmake found no CUDA Toolkit (CADRE_CUDA)");
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    void *symbol = library != NULL ? dlsym(library, DEVICE_PLUGIN_ENTRY) : NULL;
    if (symbol == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    device_plugin_entry entry = NULL;
    memcpy(&entry, &symbol, sizeof entry);
    if (entry(DEVICE_ABI + 1) != NULL || entry(0) != NULL) {
        fprintf(stderr, "%s: it has a table for another ABI\n", path);
        exit(1);
    }
    ops = entry(DEVICE_ABI);
    if (ops == NULL || ops->abi != DEVICE_ABI) {
        fprintf(stderr, "%s: it has no table of ABI %d\n", path, DEVICE_ABI);
        exit(1);
    }
}

void plugin_open_with_devices(int argc, char **argv)
{
    char reason[256] = "";
    char text[320];
    plugin_open(argc, argv);
    devices = ops->count(reason);
    if (devices == 0) {
        snprintf(text, sizeof text, "no GPU here: %s", reason);
        test_skip(text);
    }
}

void *stream_of(uint32_t device)
{
    struct cadre_error error = {.code = CADRE_OK};
    void *stream = NULL;
    assert_ok(ops->stream_open(device, false, &stream, &error), &error);
    return stream;
}

void *memory_of(uint32_t device, size_t bytes, void *stream)
{
    struct cadre_error error = {.code = CADRE_OK};
    void *memory = NULL;
    assert_ok(ops->memory_get(device, bytes, stream, &memory, &error), &error);
    return memory;
}

struct waiting {
    void *stream;
    cadre_status status;
    struct cadre_error error;
};

static bool at_rest(void *data)
{
    struct waiting *waiting = data;
    waiting->status = ops->stream_test(waiting->stream, &waiting->error);
    return waiting->status != CADRE_PENDING;
}

void settle(void *stream)
{
    struct waiting waiting = {.stream = stream};
    assert_true(test_wait(at_rest, &waiting, PLUGIN_WAIT_US));
    assert_ok(waiting.status, &waiting.error);
}

void upload(void *to, const void *from, size_t bytes, void *stream)
{
    struct cadre_error error = {.code = CADRE_OK};
    assert_ok(ops->copy(to, from, bytes, stream, &error), &error);
    settle(stream);
}

void download(void *to, const void *from, size_t bytes, void *stream)
{
    upload(to, from, bytes, stream);
}
