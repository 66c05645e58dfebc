/* SPDX-License-Identifier: Apache-2.0
 * Owns all names of components and lists of them until the process ends. Called by the functions
 * that describe elements, in any thread. */
#include "worker/library/input/node/component_names.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/pure/assert.h"

struct kept_name {
    struct kept_name *next;
    char name[];
};

struct kept_list {
    struct kept_list *next;
    uint32_t count;
    const char *names[];
};

static struct {
    pthread_mutex_t lock;
    struct kept_name *names;
    struct kept_list *lists;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* With the lock. */
static const char *keep_name(const char *name)
{
    for (const struct kept_name *one = kept.names; one != NULL; one = one->next) {
        if (strcmp(one->name, name) == 0) {
            return one->name;
        }
    }
    size_t bytes = strlen(name) + 1;
    struct kept_name *one = malloc(sizeof *one + bytes);
    if (one == NULL) {
        return NULL;
    }
    memcpy(one->name, name, bytes);
    one->next = kept.names;
    kept.names = one;
    return one->name;
}

/* With the lock, of names that are kept. */
static const char *const *keep_list(const char *const names[], uint32_t count)
{
    for (const struct kept_list *one = kept.lists; one != NULL; one = one->next) {
        if (one->count == count && memcmp(one->names, names, count * sizeof names[0]) == 0) {
            return one->names;
        }
    }
    struct kept_list *one = malloc(sizeof *one + count * sizeof one->names[0]);
    if (one == NULL) {
        return NULL;
    }
    one->count = count;
    memcpy(one->names, names, count * sizeof names[0]);
    one->next = kept.lists;
    kept.lists = one;
    return one->names;
}

const char *component_name_intern(const char *name)
{
    pthread_mutex_lock(&kept.lock);
    const char *found = keep_name(name);
    pthread_mutex_unlock(&kept.lock);
    return found;
}

const char *const *component_names_list(const char *const names[], uint32_t count)
{
    pthread_mutex_lock(&kept.lock);
    const char *const *found = keep_list(names, count);
    pthread_mutex_unlock(&kept.lock);
    return found;
}

static cadre_status component_names_check(const char *const names[], uint32_t count,
    const char *who, bool *ret_any, struct cadre_error *error)
{
    *ret_any = false;
    for (uint32_t i = 0; i < count; i++) {
        if (names[i] == NULL) {
            continue;
        }
        *ret_any = true;
        if (names[i][0] == '\0') {
            return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                "%s: the name of component %u is empty; give NULL where one has no name", who, i);
        }
        for (uint32_t other = 0; other < i; other++) {
            if (names[other] != NULL && strcmp(names[other], names[i]) == 0) {
                return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                    "%s: components %u and %u are both called '%s'; give each a name of its own",
                    who, other, i, names[i]);
            }
        }
    }
    return CADRE_OK;
}

cadre_status component_names_intern(const char *const names[], uint32_t count, const char *who,
    const char *const **ret_names, struct cadre_error *error)
{
    const char *own[CADRE_ELEMENT_TENSORS_MAX];
    bool any = false;
    bool memory = true;
    CADRE_ASSERT(count <= CADRE_ELEMENT_TENSORS_MAX);
    *ret_names = NULL;
    CADRE_TRY(component_names_check(names, count, who, &any, error));
    if (!any) {
        return CADRE_OK;
    }
    pthread_mutex_lock(&kept.lock);
    for (uint32_t i = 0; i < count; i++) {
        own[i] = names[i] == NULL ? NULL : keep_name(names[i]);
        memory = memory && (names[i] == NULL || own[i] != NULL);
    }
    *ret_names = memory ? keep_list(own, count) : NULL;
    pthread_mutex_unlock(&kept.lock);
    return *ret_names != NULL ? CADRE_OK
                              : cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                                    "%s: no memory for the names of components", who);
}

void names_builder_add(struct names_builder *made, const char *prefix, const char *name)
{
    CADRE_ASSERT(made->count < CADRE_ELEMENT_TENSORS_MAX);
    const char *before = prefix == NULL ? "" : prefix;
    const char *behind = name == NULL ? "" : name;
    const char **to = &made->names[made->count++];
    if (before[0] == '\0' && behind[0] == '\0') {
        *to = NULL;
        return;
    }
    size_t bytes = strlen(before) + 1 + strlen(behind) + 1;
    char *path = malloc(bytes);
    if (path != NULL) {
        const char *between = before[0] != '\0' && behind[0] != '\0' ? "/" : "";
        snprintf(path, bytes, "%s%s%s", before, between, behind);
    }
    *to = path == NULL ? NULL : component_name_intern(path);
    made->no_memory = made->no_memory || *to == NULL;
    free(path);
}

void names_builder_add_tuple_item(
    struct names_builder *made, uint32_t part, const char *const names[], uint32_t count)
{
    char prefix[16];
    snprintf(prefix, sizeof prefix, "%u", part);
    for (uint32_t i = 0; i < count; i++) {
        char number[16];
        snprintf(number, sizeof number, "%u", i);
        const char *own = names == NULL ? NULL : names[i];
        names_builder_add(made, prefix, own != NULL ? own : count > 1 ? number : NULL);
    }
}

void names_builder_add_ragged(struct names_builder *made, const char *name)
{
    names_builder_add(made, name, name != NULL ? "values" : NULL);
    names_builder_add(made, name, name != NULL ? "row_splits" : NULL);
}

void names_builder_add_sparse(struct names_builder *made, const char *name)
{
    names_builder_add(made, name, name != NULL ? "indices" : NULL);
    names_builder_add(made, name, name != NULL ? "values" : NULL);
    names_builder_add(made, name, name != NULL ? "dense_shape" : NULL);
}

void names_builder_add_ragged_row(struct names_builder *made, const char *name)
{
    static const char end[] = "/values";
    const size_t bytes = name == NULL ? 0 : strlen(name);
    const size_t left = bytes < sizeof end ? 0 : bytes - (sizeof end - 1);
    if (left == 0 || strcmp(name + left, end) != 0) {
        names_builder_add(made, name, NULL);
        return;
    }
    char *whole = strndup(name, left);
    made->no_memory = made->no_memory || whole == NULL;
    names_builder_add(made, whole, NULL);
    free(whole);
}

cadre_status names_builder_intern(const struct names_builder *made, const char *who,
    const char *const **ret_names, struct cadre_error *error)
{
    *ret_names = NULL;
    return made->no_memory
               ? cadre_error_set(error, CADRE_RESOURCE_EXHAUSTED,
                     "%s: no memory for the names of components", who)
               : component_names_intern(made->names, made->count, who, ret_names, error);
}

const char *component_names_text(
    const char *const names[], uint32_t count, char text[NAMES_TEXT_BYTES])
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t i = 0; names != NULL && i < count && used < NAMES_TEXT_BYTES; i++) {
        if (names[i] != NULL) {
            used += (size_t)snprintf(
                text + used, NAMES_TEXT_BYTES - used, "%s'%s'", used == 0 ? "" : ", ", names[i]);
        }
    }
    if (used == 0) {
        snprintf(text, NAMES_TEXT_BYTES, "none has a name");
    }
    return text;
}

cadre_status component_names_find(const char *const names[], uint32_t count, const char *name,
    const char *who, uint32_t *ret_component, struct cadre_error *error)
{
    uint32_t found = 0;
    for (uint32_t i = 0; names != NULL && i < count; i++) {
        if (names[i] != NULL && strcmp(names[i], name) == 0) {
            *ret_component = i;
            found++;
        }
    }
    if (found == 1) {
        return CADRE_OK;
    }
    char text[NAMES_TEXT_BYTES];
    return found == 0
               ? cadre_error_set(error, CADRE_NOT_FOUND,
                     "%s: no component is called '%s'; of the %u that there are: %s", who, name,
                     count, component_names_text(names, count, text))
               : cadre_error_set(error, CADRE_INVALID_ARGUMENT,
                     "%s: %u components are called '%s'; give the values that are joined names of "
                     "their own (cadre_argument)",
                     who, found, name);
}
