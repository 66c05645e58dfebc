/* SPDX-License-Identifier: Apache-2.0
 * What every program reports of itself. */
#ifndef CADRE_HTTP_PROCESS_METRICS_H
#define CADRE_HTTP_PROCESS_METRICS_H

#include "common/http/exposition.h"
#include "common/tls/material.h"

/* The process_ families, as Prometheus' own libraries name them, and cadre_build_info with the
 * program's name. What the system does not report is left out. With `tls`: when it expires. */
void process_metrics(struct exposition *out, const char *program, const struct tls_material *tls);

#endif
