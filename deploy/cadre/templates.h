/* SPDX-License-Identifier: Apache-2.0
 * The files of deploy/templates, inside the command: embed.cmake makes the table. */
#ifndef CADRE_DEPLOY_CADRE_TEMPLATES_H
#define CADRE_DEPLOY_CADRE_TEMPLATES_H

#include <stddef.h>

struct template_file {
    const char *path; /* below that folder: "mlp/program.c" */
    const char *bytes;
    size_t size;
};

extern const struct template_file template_files[];
extern const size_t template_file_count;

#endif
