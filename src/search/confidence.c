/* The confidence of a translation: which share of its units stands in a person's translation, as far as the model's own
 * probabilities tell. Search prefers what the model overrates, so that these are not that share themselves; a logistic
 * curve from them to it is fitted to pairs of lines. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/grow.h"
#include "search/search.h"

/* What is known of the translation of a pair. */
typedef struct measured {
    double mean;           /* log-probability per unit, the end included */
    int64_t units, common; /* of the translation; those that the reference has, too. Of no unit at all: 1 and 0 */
} measured;

typedef struct pairs {
    const at_translator *translator;
    const at_line *sources, *targets;
    measured *list; /* [count] */
    int64_t count, empty, first_empty;
    int32_t *ids[2]; /* a translation and its reference, sorted */
    size_t room[2];
    at_error *error;
} pairs;

static double mean_of(double score, int64_t units)
{
    return score / (double)(units + 1);
}

/* sigma(a + b x) */
static double curve(double a, double b, double x)
{
    return 1 / (1 + exp(-(a + b * x)));
}

double at_confidence(double score, int64_t units)
{
    return score > 0 ? 1 : exp(mean_of(score, units));
}

double at_translator_confidence(const at_translator *translator, double score, int64_t units)
{
    return translator->calibrated ? curve(translator->confidence[0], translator->confidence[1], mean_of(score, units))
                                  : NAN;
}

/* ---- What the translations have in common with the references --------------------------------------------------- */

static int compare_ids(const void *a, const void *b)
{
    const int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;
    return x < y ? -1 : x > y;
}

/* Units that both have, each as often as in the list that has it less often. Both are sorted. */
static int64_t count_common(const int32_t *a, int64_t a_count, const int32_t *b, int64_t b_count)
{
    int64_t common = 0;
    for (int64_t i = 0, j = 0; i < a_count && j < b_count;) {
        common += a[i] == b[j];
        const bool next_a = a[i] <= b[j], next_b = b[j] <= a[i];
        i += next_a;
        j += next_b;
    }
    return common;
}

static bool reserve(void *context, int64_t count, int32_t **ids, int32_t **offsets)
{
    pairs *p = context;
    *offsets = NULL;
    const bool good = AT_GROW(p->ids[1], p->room[1], (size_t)count + 1);
    *ids = p->ids[1];
    return good;
}

static bool add_pair(void *context, int64_t line, const at_result *result)
{
    pairs *p = context;
    const at_hypothesis *best = &result->best[0];
    int64_t replaced = 0;
    const int64_t count = at_vocabulary_encode_line(p->translator->target, p->targets[line], reserve, p, &replaced);
    if (count < 0 || !AT_GROW(p->ids[0], p->room[0], (size_t)best->count + 1))
        return at_no_memory(p->error, "the units of a pair");
    if (count == 0 || result->source_units == 0) {
        p->first_empty = p->empty++ ? p->first_empty : line + 1;
        return true;
    }
    if (best->count > 0)
        memcpy(p->ids[0], best->ids, (size_t)best->count * sizeof *best->ids);
    qsort(p->ids[0], (size_t)best->count, sizeof *p->ids[0], compare_ids);
    qsort(p->ids[1], (size_t)count, sizeof *p->ids[1], compare_ids);
    p->list[p->count++] = (measured){.mean = mean_of(best->score, best->count),
                                     .units = best->count > 0 ? best->count : 1,
                                     .common = count_common(p->ids[0], best->count, p->ids[1], count)};
    return true;
}

/* ---- The curve -------------------------------------------------------------------------------------------------- */

/* The pairs as the fit sees them: x with mean 0 and deviation 1 over all units. Two more units, one at either deviation and
 * each half in common, keep the curve finite whatever the pairs are. */
typedef struct points {
    const pairs *p;
    double mean, deviation;
} points;

static void point_at(const points *q, int64_t i, double *x, double *n, double *r)
{
    const measured *m = &q->p->list[i < 0 ? 0 : i];
    *x = i < 0 ? (i == -2 ? -1 : 1) : (m->mean - q->mean) / q->deviation;
    *n = i < 0 ? 1 : (double)m->units;
    *r = i < 0 ? 0.5 : (double)m->common;
}

/* sum_i r_i log c_i + (n_i - r_i) log(1 - c_i), c_i = sigma(z_i): sum_i r_i z_i - n_i log(1 + exp(z_i)), z = a + b x */
static double likelihood(const points *q, double a, double b)
{
    double sum = 0, x, n, r;
    for (int64_t i = -2; i < q->p->count; i++) {
        point_at(q, i, &x, &n, &r);
        const double z = a + b * x;
        sum += r * z - n * (fmax(z, 0) + log1p(exp(-fabs(z))));
    }
    return sum;
}

/* Newton's step: the gradient divided by minus the second derivatives. */
static void newton_step(const points *q, double a, double b, double *da, double *db)
{
    double ga = 0, gb = 0, aa = 0, ab = 0, bb = 0, x, n, r;
    for (int64_t i = -2; i < q->p->count; i++) {
        point_at(q, i, &x, &n, &r);
        const double c = curve(a, b, x), v = n * c * (1 - c);
        ga += r - n * c;
        gb += (r - n * c) * x;
        aa += v;
        ab += v * x;
        bb += v * x * x;
    }
    const double determinant = aa * bb - ab * ab;
    *da = (bb * ga - ab * gb) / determinant;
    *db = (aa * gb - ab * ga) / determinant;
}

/* The curve of the largest likelihood, which has one maximum: Newton's method, with steps halved until they go up. */
static void fit_curve(const pairs *p, double *offset, double *slope)
{
    enum { MOST_STEPS = 100 };
    double units = 0, mean = 0, variance = 0, a = 0, b = 0, da, db;
    for (int64_t i = 0; i < p->count; i++) {
        units += (double)p->list[i].units;
        mean += (double)p->list[i].units * p->list[i].mean;
    }
    mean /= units;
    for (int64_t i = 0; i < p->count; i++)
        variance += (double)p->list[i].units * (p->list[i].mean - mean) * (p->list[i].mean - mean);
    const double deviation = sqrt(variance / units);
    const points q = {p, mean, deviation > 1e-9 ? deviation : 1}; /* less is rounding: all are alike */
    for (int step = 0; step < MOST_STEPS; step++) {
        const double before = likelihood(&q, a, b);
        newton_step(&q, a, b, &da, &db);
        while (fabs(da) + fabs(db) > 1e-12 && !(likelihood(&q, a + da, b + db) > before)) {
            da /= 2;
            db /= 2;
        }
        if (!(fabs(da) + fabs(db) > 1e-12))
            break;
        a += da;
        b += db;
    }
    *offset = a - b * mean / q.deviation;
    *slope = b / q.deviation;
}

static void report_on(const pairs *p, at_calibration *report)
{
    report->pairs = p->count;
    report->empty = p->empty;
    report->first_empty = p->first_empty;
    for (int64_t i = 0; i < p->count; i++) {
        const measured *m = &p->list[i];
        const double c = curve(report->offset, report->slope, m->mean);
        const int place = (int)(c * AT_CONFIDENCE_BINS);
        at_confidence_bin *bin = &report->bin[place < AT_CONFIDENCE_BINS ? place : AT_CONFIDENCE_BINS - 1];
        bin->pairs++;
        bin->units += m->units;
        bin->confidence += (double)m->units * c;
        bin->share += (double)m->common;
        report->units += m->units;
    }
    for (int i = 0; i < AT_CONFIDENCE_BINS; i++) {
        at_confidence_bin *bin = &report->bin[i];
        report->confidence += bin->confidence / (double)report->units;
        report->share += bin->share / (double)report->units;
        report->error += fabs(bin->confidence - bin->share) / (double)report->units;
        if (bin->units > 0) {
            bin->confidence /= (double)bin->units;
            bin->share /= (double)bin->units;
        }
    }
}

/* ---- Both ------------------------------------------------------------------------------------------------------- */

static bool measure(pairs *p, at_translator *translator, const at_search_settings *settings, int64_t count)
{
    at_search_settings search = *settings;
    search.n_best = 1;
    search.first_line = 0;
    p->list = calloc((size_t)count + 1, sizeof *p->list);
    if (!p->list)
        return at_no_memory(p->error, "%lld pairs", (long long)count);
    if (!at_translate(translator, &search, p->sources, count, add_pair, p, p->error))
        return false;
    return p->count > 0 || at_fail(p->error, AT_FORMAT, "there is no pair with a unit on both sides");
}

bool at_translator_calibrate(at_translator *translator, const at_search_settings *settings, const at_line *sources,
                             const at_line *targets, int64_t count, bool fit, at_calibration *report, at_error *error)
{
    *report = (at_calibration){0};
    if (error->code != AT_OK)
        return false;
    if (!translator->model->kind->has_source)
        return at_fail(error, AT_UNSUPPORTED, "model '%s' is a language model: it does not translate",
                       translator->model->kind->name);
    if (!fit && !translator->calibrated)
        return at_fail(error, AT_UNSUPPORTED, "the model has no calibration yet that could be checked");
    pairs p = {.translator = translator, .sources = sources, .targets = targets, .error = error};
    const bool good = measure(&p, translator, settings, count);
    if (good && fit) {
        fit_curve(&p, &translator->confidence[0], &translator->confidence[1]);
        translator->calibrated = true;
    }
    if (good) {
        report->offset = translator->confidence[0];
        report->slope = translator->confidence[1];
        report_on(&p, report);
    }
    free(p.list);
    free(p.ids[0]);
    free(p.ids[1]);
    return good;
}
