/* SPDX-License-Identifier: Apache-2.0
 * Opening NCCL's library once; see calls_nccl.h. */
#include "worker/library/cuda/calls_nccl.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_NAME    "libnccl.so.2"
#define FOLDER_BYTES 1024

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct nccl_library library;

/* 22809 is 2.28.9, and before 2.9 2708 was 2.7.8. */
static void write_version(int version, char ret_text[32])
{
    int unit = version >= 10000 ? 10000 : 1000;
    snprintf(ret_text, 32, "%d.%d.%d", version / unit, version % unit / 100, version % 100);
}

static bool library_nccl_resolve(void *handle)
{
    void *symbol = NULL;
#define NCCL_RESOLVE(name)                                                                         \
    symbol = dlsym(handle, #name);                                                                 \
    if (symbol == NULL) {                                                                          \
        snprintf(library.from, sizeof library.from, "NCCL has no %s: it is too old", #name);       \
        return false;                                                                              \
    }                                                                                              \
    memcpy(&library.name, &symbol, sizeof symbol); /* C has no cast from an object to a function   \
                                                    */
    NCCL_EACH_FUNCTION(NCCL_RESOLVE)
#undef NCCL_RESOLVE
    return true;
}

static void *open_in(const char *folder)
{
    char path[FOLDER_BYTES + sizeof "/" FILE_NAME];
    int length = snprintf(path, sizeof path, "%s/" FILE_NAME, folder);
    return length > 0 && (size_t)length < sizeof path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
}

static void *open_beside_plugin(void)
{
    Dl_info plugin;
    char folder[FOLDER_BYTES];
    if (dladdr(&library, &plugin) == 0 || plugin.dli_fname == NULL ||
        strlen(plugin.dli_fname) >= sizeof folder) {
        return NULL;
    }
    snprintf(folder, sizeof folder, "%s", plugin.dli_fname);
    char *slash = strrchr(folder, '/');
    if (slash == NULL) {
        return NULL;
    }
    *slash = '\0';
    return open_in(folder);
}

static void *open_any(void)
{
    static const char *const folders[] = {
#ifdef CADRE_CUDA_LIBRARIES
        CADRE_CUDA_LIBRARIES,
#endif
        "/usr/local/cuda/lib64"};
    void *handle = dlopen(FILE_NAME, RTLD_NOW | RTLD_LOCAL);
    for (size_t i = 0; handle == NULL && i < sizeof folders / sizeof folders[0]; i++) {
        handle = open_in(folders[i]);
    }
    return handle != NULL ? handle : open_beside_plugin();
}

static void library_nccl_look(void)
{
    const char *named = getenv("CADRE_NCCL");
    bool is_named = named != NULL && named[0] != '\0';
    void *handle = is_named ? dlopen(named, RTLD_NOW | RTLD_LOCAL) : open_any();
    if (handle == NULL) {
        const char *message = dlerror();
        snprintf(library.from, sizeof library.from, "NCCL cannot be opened: %.*s",
            (int)sizeof library.from - 40,
            message != NULL ? message : "the linker gives no reason");
        return;
    }
    (void)dlerror(); /* of the files that could not be opened */
    int version = 0;
    if (!library_nccl_resolve(handle) || library.ncclGetVersion(&version) != ncclSuccess) {
        if (library.from[0] == '\0') {
            snprintf(library.from, sizeof library.from, "NCCL does not return its version");
        }
        dlclose(handle);
        return;
    }
    char text[32];
    write_version(version, text);
    Dl_info file;
    void *symbol = dlsym(handle, "ncclGetVersion");
    const char *name = dladdr(symbol, &file) != 0 ? file.dli_fname : NULL;
    if (version < NCCL_OLDEST) {
        snprintf(library.from, sizeof library.from,
            "NCCL %s (%.*s) is too old: 2.18 or newer is needed", text, 100,
            name != NULL ? name : FILE_NAME);
        dlclose(handle);
        return;
    }
    snprintf(library.from, sizeof library.from, "%.*s", (int)sizeof library.from - 1,
        name != NULL ? name : FILE_NAME);
    library.version = version;
}

const struct nccl_library *nccl_library(void)
{
    pthread_once(&once, library_nccl_look);
    return &library;
}
