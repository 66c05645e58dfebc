/* SPDX-License-Identifier: Apache-2.0 */
#include "reference.h"

#include <math.h>

static double squares(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += values[i] * values[i];
    }
    return sum;
}

/* Kingma & Ba 2015, section 2, the form with one step size; epsilon as Keras has it. */
static void adam(struct reference *r, const double *g)
{
    const cadre_optimizer_options *o = &r->options;
    double rate = o->rate * sqrt(1 - pow(o->beta2, r->updates)) / (1 - pow(o->beta1, r->updates));
    for (size_t i = 0; i < r->count; i++) {
        r->a[i] = o->beta1 * r->a[i] + (1 - o->beta1) * g[i];
        r->b[i] = o->beta2 * r->b[i] + (1 - o->beta2) * g[i] * g[i];
        r->w[i] -= rate * r->a[i] / (sqrt(r->b[i]) + o->epsilon);
    }
}

/* You et al. 2020, algorithm 2, with phi(z) = z. */
static void lamb(struct reference *r, const double *g)
{
    const cadre_optimizer_options *o = &r->options;
    double direction[REFERENCE_MAX];
    for (size_t i = 0; i < r->count; i++) {
        r->a[i] = o->beta1 * r->a[i] + (1 - o->beta1) * g[i];
        r->b[i] = o->beta2 * r->b[i] + (1 - o->beta2) * g[i] * g[i];
        double m = r->a[i] / (1 - pow(o->beta1, r->updates));
        double v = r->b[i] / (1 - pow(o->beta2, r->updates));
        direction[i] = m / (sqrt(v) + o->epsilon) + o->weight_decay * r->w[i];
    }
    double of_w = sqrt(squares(r->w, r->count));
    double of_direction = sqrt(squares(direction, r->count));
    double trust = of_w > 0 && of_direction > 0 ? of_w / of_direction : 1;
    for (size_t i = 0; i < r->count; i++) {
        r->w[i] -= o->rate * trust * direction[i];
    }
}

/* Tieleman & Hinton 2012; Graves 2013 centered. */
static void rmsprop(struct reference *r, const double *g)
{
    const cadre_optimizer_options *o = &r->options;
    for (size_t i = 0; i < r->count; i++) {
        r->a[i] = o->rho * r->a[i] + (1 - o->rho) * g[i] * g[i];
        r->c[i] = o->rho * r->c[i] + (1 - o->rho) * g[i];
        double spread = o->centered ? r->a[i] - r->c[i] * r->c[i] : r->a[i];
        double step = o->rate * g[i] / sqrt(spread + o->epsilon);
        r->b[i] = o->momentum * r->b[i] + step;
        r->w[i] -= o->momentum > 0 ? r->b[i] : step;
    }
}

static void plain(struct reference *r, const double *g)
{
    const cadre_optimizer_options *o = &r->options;
    for (size_t i = 0; i < r->count; i++) {
        if (o->kind == CADRE_OPTIMIZER_ADAGRAD) { /* Duchi et al. 2011 */
            r->a[i] += g[i] * g[i];
            r->w[i] -= o->rate * g[i] / sqrt(r->a[i] + o->epsilon);
        } else if (o->kind == CADRE_OPTIMIZER_MOMENTUM) { /* Sutskever et al. 2013 */
            r->a[i] = o->momentum * r->a[i] - o->rate * g[i];
            r->w[i] += o->nesterov ? o->momentum * r->a[i] - o->rate * g[i] : r->a[i];
        } else {
            r->w[i] -= o->rate * g[i];
        }
    }
}

void reference_update(struct reference *r, const double *g)
{
    const cadre_optimizer_options *o = &r->options;
    r->updates++;
    for (size_t i = 0; i < r->count && o->kind != CADRE_OPTIMIZER_LAMB; i++) {
        r->w[i] -= r->w[i] * o->weight_decay * o->rate; /* Loshchilov & Hutter 2019 */
    }
    if (o->kind == CADRE_OPTIMIZER_ADAM || o->kind == CADRE_OPTIMIZER_ADAMW) {
        adam(r, g);
    } else if (o->kind == CADRE_OPTIMIZER_LAMB) {
        lamb(r, g);
    } else if (o->kind == CADRE_OPTIMIZER_RMSPROP) {
        rmsprop(r, g);
    } else {
        plain(r, g);
    }
}
