/* SPDX-License-Identifier: Apache-2.0
 * The page in the browser, and what it consists of: files that the program contains. They hold no
 * data of the cluster; its script fetches that below /api/. */
#include <string.h>

#include "coordinator/daemon/pages/assets.h"
#include "coordinator/daemon/pages/pages.h"

static const struct asset *asset_find(const char *name)
{
    for (size_t i = 0; i < asset_count; i++) {
        if (strcmp(assets[i].name, name) == 0) {
            return &assets[i];
        }
    }
    return NULL;
}

/* Whether the browser has this content already. */
static bool is_known(const struct http_request *request, const struct asset *asset)
{
    const char *known = http_request_header(request, "If-None-Match");
    return known != NULL && strstr(known, asset->etag) != NULL;
}

static void asset_answer(struct http_request *request, const char *name)
{
    const struct asset *asset = asset_find(name);
    if (asset == NULL) {
        http_answer(request, http_response_text(404, false, "There is no such file of the page."));
        return;
    }
    bool known = is_known(request, asset);
    const struct http_content content = {.status = known ? 304 : 200,
        .type = asset->type,
        .bytes = known ? "" : asset->bytes,
        .size = known ? 0 : asset->size,
        .etag = asset->etag};
    http_answer(request, http_response_new(&content));
}

void asset_serve_index(void *user, struct http_request *request)
{
    (void)user;
    asset_answer(request, "index.html");
}

void asset_serve(void *user, struct http_request *request)
{
    (void)user;
    asset_answer(request, http_request_rest(request));
}
