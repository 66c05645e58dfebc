/* SPDX-License-Identifier: Apache-2.0
 * What is beneath a folder, page by page (ListObjectsV2). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/storage/client.h"
#include "common/storage/files.h"
#include "common/storage/s3/run.h"

#define PAGE_KEYS   "1000"
#define QUERY_PAIRS 6

struct listing {
    struct s3_session *session;
    const char *folder; /* the path */
    char prefix[STORAGE_PATH_BYTES];
    bool deep;
    bool (*each)(void *user, const struct storage_entry *entry);
    void *user;
    char bucket[STORAGE_BUCKET_BYTES];
    char *token;    /* of the next page; NULL: the first one */
    char *last_key; /* of the pages before */
    bool ended;     /* by `each` */
};

static cadre_status replace_text(char **text, const char *by, struct cadre_error *error)
{
    char *copy = by != NULL ? strdup(by) : NULL;
    if (by != NULL && copy == NULL) {
        return cadre_error_errno(error, ENOMEM, "cannot list an object store");
    }
    free(*text);
    *text = copy;
    return CADRE_OK;
}

/* The object that stands for a folder itself, as consoles make it, is no entry. */
static bool is_marker(const struct s3_item *item)
{
    size_t length = strlen(item->key);
    return !item->is_folder && length > 0 && item->key[length - 1] == '/';
}

static void show_item(struct listing *listing, const struct s3_item *item)
{
    char path[STORAGE_PATH_BYTES + 16];
    (void)snprintf(path, sizeof path, "s3://%s/%s", listing->bucket, item->key);
    struct storage_entry entry = {.path = path, .is_folder = item->is_folder};
    entry.info.bytes = item->bytes;
    entry.info.modified_us = item->time_us;
    (void)snprintf(
        entry.info.version, sizeof entry.info.version, "%s", item->etag != NULL ? item->etag : "");
    listing->ended = !listing->each(listing->user, &entry);
}

static cadre_status check_key(
    const struct listing *listing, const char *key, struct cadre_error *error)
{
    if (strlen(key) > STORAGE_PATH_BYTES - 8 ||
        strncmp(key, listing->prefix, strlen(listing->prefix)) != 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%.200s cannot be listed: the store answers with the key \"%.100s\", which does not "
            "lie "
            "there",
            listing->folder, key);
    }
    if (listing->last_key != NULL && strcmp(key, listing->last_key) <= 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%.200s cannot be listed: the store's next page begins with \"%.100s\" again",
            listing->folder, key);
    }
    return CADRE_OK;
}

static cadre_status show_page(
    struct listing *listing, const struct s3_answer *page, struct cadre_error *error)
{
    for (size_t i = 0; i < page->item_count && !listing->ended; i++) {
        const struct s3_item *item = &page->items[i];
        CADRE_TRY(check_key(listing, item->key, error));
        if (!is_marker(item)) {
            show_item(listing, item);
        }
    }
    if (!page->truncated || listing->ended) {
        listing->ended = true;
        return CADRE_OK;
    }
    if (listing->token != NULL && strcmp(page->next, listing->token) == 0) {
        return cadre_error_set(error, CADRE_DATA_LOSS,
            "%.200s cannot be listed: the store gives the same page again", listing->folder);
    }
    if (page->item_count > 0) {
        CADRE_TRY(replace_text(&listing->last_key, page->items[page->item_count - 1].key, error));
    }
    return replace_text(&listing->token, page->next, error);
}

static cadre_status ask_page(struct listing *listing, struct cadre_error *error)
{
    struct s3_pair query[QUERY_PAIRS] = {{"list-type", "2"}, {"max-keys", PAGE_KEYS},
        {"encoding-type", "url"}, {"prefix", listing->prefix}};
    size_t count = 4;
    if (!listing->deep) {
        query[count++] = (struct s3_pair){"delimiter", "/"};
    }
    if (listing->token != NULL) {
        query[count++] = (struct s3_pair){"continuation-token", listing->token};
    }
    struct s3_ask ask = {.operation = S3_LIST_OBJECTS,
        .path = listing->folder,
        .bucket = listing->bucket,
        .method = "GET",
        .query = query,
        .query_count = count};
    struct s3_answer page;
    CADRE_TRY(s3_ask_parsed(listing->session, &ask, S3_ANSWER_LIST, &page, error));
    cadre_status status = show_page(listing, &page, error);
    s3_answer_free(&page);
    return status;
}

static cadre_status list_store(struct listing *listing, const struct storage_location *location,
    const char *starts, struct cadre_error *error)
{
    size_t key_bytes = strlen(location->key);
    bool has_slash = key_bytes == 0 || location->key[key_bytes - 1] == '/';
    int written = snprintf(listing->prefix, sizeof listing->prefix, "%s%s%s", location->key,
        has_slash ? "" : "/", starts != NULL ? starts : "");
    if (written < 0 || (size_t)written >= sizeof listing->prefix) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "%.200s: names beneath it cannot begin with %zu bytes", listing->folder,
            strlen(starts));
    }
    memcpy(listing->bucket, location->bucket, sizeof listing->bucket);
    cadre_status status = CADRE_OK;
    while (status == CADRE_OK && !listing->ended) {
        status = ask_page(listing, error);
    }
    free(listing->token);
    free(listing->last_key);
    return status;
}

cadre_status storage_list(struct storage_client *client, const char *folder, const char *starts,
    bool deep, bool (*each)(void *user, const struct storage_entry *entry), void *user,
    struct cadre_error *error)
{
    struct storage_location location;
    struct listing listing = {.folder = folder, .deep = deep, .each = each, .user = user};
    CADRE_TRY(storage_client_locate(client, folder, true, &location, &listing.session, error));
    if (starts != NULL && strchr(starts, '/') != NULL) {
        return cadre_error_set(error, CADRE_INVALID_ARGUMENT,
            "names beneath %.200s that begin with \"%.100s\": there is a \"/\" in it", folder,
            starts);
    }
    return location.kind == STORAGE_FILE ? files_list(folder, starts, deep, each, user, error)
                                         : list_store(&listing, &location, starts, error);
}
