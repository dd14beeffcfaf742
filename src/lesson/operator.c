/* "attend" and "draw": the operator on the numbers of a request. */
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/rng.h"
#include "lesson/ask_internal.h"

enum { HEADS = 16, PARAMETERS = 12, WORD_SIZE = 16, DRAWS = 2000 };

/* ---- What is read ------------------------------------------------------------------------------------------------- */

/* A word is a vector of +-scale, drawn from its spelling: the same word, the same vector. The last number is `scale` for
 * all words. */
static bool read_words(const at_ask *ask, const json_t *object, const char *name, at_matrix *m)
{
    const json_t *words = json_object_get(object, "words");
    const size_t count = json_array_size(words);
    if (!at_ask_only(ask, object, "words size scale added"))
        return false;
    const int64_t size = at_ask_count(ask, object, "size", WORD_SIZE, 2, AT_LESSON_COLUMNS);
    const float scale = (float)at_ask_number(ask, object, "scale", 1, 100);
    const char *added = at_ask_text(ask, object, "added", "none");
    if (ask->error->code != AT_OK)
        return false;
    if (count < 1 || count > AT_LESSON_ROWS)
        return at_fail(ask->error, AT_SHAPE, "the `words` of `%s` must be a list of 1 to %d texts", name,
                       AT_LESSON_ROWS);
    *m = (at_matrix){(int64_t)count, size, at_ask_floats(ask, (int64_t)count * size)};
    for (size_t i = 0; m->value && i < count; i++) {
        const char *word = json_string_value(json_array_get(words, i));
        if (!word)
            return at_fail(ask->error, AT_USAGE, "the `words` of `%s` must be texts", name);
        const uint64_t seed = at_hash_text(word);
        for (int64_t c = 0; c < size; c++)
            m->value[(int64_t)i * size + c] =
                c == size - 1 || at_uniform_at(seed, 0, (uint64_t)c) < 0.5 ? scale : -scale;
    }
    return m->value && at_add_positions(ask, added, m);
}

static bool read_input(const at_ask *ask, const char *name, const at_matrix *fallback, at_matrix *m)
{
    const json_t *value = json_object_get(ask->request, name);
    if (!value && fallback) {
        *m = *fallback;
        return ask->error->code == AT_OK;
    }
    return json_is_object(value) ? read_words(ask, value, name, m) : at_ask_matrix(ask, value, name, m);
}

static bool read_parameters(const at_ask *ask, at_parameter *parameter, int *count)
{
    json_t *object = json_object_get(ask->request, "parameters"), *value;
    const char *name;
    if (object && !json_is_object(object))
        return at_fail(ask->error, AT_USAGE, "`parameters` must be an object of matrices by name");
    if (json_object_size(object) > PARAMETERS)
        return at_fail(ask->error, AT_USAGE, "there are more than %d `parameters`", PARAMETERS);
    json_object_foreach(object, name, value)
    {
        at_matrix m;
        char shown[40]; /* in messages */
        snprintf(shown, sizeof shown, "%.30s", name);
        if (!at_ask_matrix(ask, value, shown, &m))
            return false;
        const bool flat = !json_is_array(json_array_get(value, 0));
        parameter[(*count)++] = (at_parameter){
            .name = name, .rank = flat ? 1 : 2, .dim = {flat ? m.columns : m.rows, m.columns}, .value = m.value};
    }
    return true;
}

typedef struct setting {
    at_settings settings;
    at_matrix query, key, value;
    at_parameter parameter[PARAMETERS];
    int parameters;
} setting;

/* All but what only one of the two answers has. */
static bool read_setting(const at_ask *ask, setting *s)
{
    const json_t *r = ask->request;
    *s = (setting){.settings = {.score = at_ask_text(ask, r, "score", NULL),
                                .normaliser = at_ask_text(ask, r, "normaliser", NULL),
                                .window = at_ask_text(ask, r, "window", NULL),
                                .position = at_ask_text(ask, r, "position", NULL),
                                .heads = (int)at_ask_count(ask, r, "heads", 1, 1, HEADS),
                                .kv_heads = (int)at_ask_count(ask, r, "kv_heads", 0, 0, HEADS)}};
    if (!read_input(ask, "query", NULL, &s->query) || !read_input(ask, "key", &s->query, &s->key) ||
        !read_input(ask, "value", &s->key, &s->value) || !read_parameters(ask, s->parameter, &s->parameters))
        return false;
    if (s->value.rows != s->key.rows)
        return at_fail(ask->error, AT_SHAPE, "`key` has %lld rows and `value` %lld; each key has its value",
                       (long long)s->key.rows, (long long)s->value.rows);
    return true;
}

static const at_parameter *named(const setting *s, const char *name)
{
    for (int i = 0; i < s->parameters; i++)
        if (strcmp(s->parameter[i].name, name) == 0)
            return &s->parameter[i];
    return NULL;
}

static at_call call_of(setting *s)
{
    return (at_call){.batch = 1,
                     .queries = s->query.rows,
                     .keys = s->key.rows,
                     .query_width = s->query.columns,
                     .key_width = s->key.columns,
                     .value_width = s->value.columns,
                     .query = s->query.value,
                     .key = s->key.value,
                     .value = s->value.value,
                     .parameters = s->parameter,
                     .parameter_count = s->parameters};
}

/* ---- attend ----------------------------------------------------------------------------------------------------- */

/* x W^T, to be shown: what WQ, WK and WV make of their rows. The operator computes it again by itself. */
static bool put_projected(at_ask *ask, const setting *s, const char *parameter, const at_matrix *x, const char *name)
{
    const at_parameter *w = named(s, parameter);
    if (!w)
        return true;
    float *y = at_ask_floats(ask, x->rows * w->dim[0]); /* [rows, out] */
    for (int64_t i = 0; y && i < x->rows; i++)
        for (int64_t o = 0; o < w->dim[0]; o++) {
            double sum = 0;
            for (int64_t c = 0; c < x->columns; c++)
                sum += (double)x->value[i * x->columns + c] * (double)w->value[o * x->columns + c];
            y[i * w->dim[0] + o] = (float)sum;
        }
    if (y)
        at_put_matrix(ask, name, y, x->rows, w->dim[0]);
    return y;
}

/* The width of an output row: H Dv, or the rows of WO. */
static int64_t output_width(const setting *s)
{
    const at_parameter *WO = named(s, "WO"), *WV = named(s, "WV");
    const int kv_heads = s->settings.kv_heads ? s->settings.kv_heads : s->settings.heads;
    return WO ? WO->dim[0] : (WV ? WV->dim[0] : s->value.columns) / kv_heads * s->settings.heads;
}

bool at_answer_attend(at_ask *ask)
{
    setting s;
    if (!at_ask_only(
            ask, ask->request,
            "ask query key value score normaliser window position heads kv_heads parameters sample seed start") ||
        !read_setting(ask, &s))
        return false;
    const int64_t H = s.settings.heads, Q = s.query.rows, K = s.key.rows, width = output_width(&s);
    at_call call = call_of(&s);
    call.sample = at_ask_switch(ask, ask->request, "sample");
    call.seed = (uint64_t)at_ask_count(ask, ask->request, "seed", 1, 0, INT32_MAX);
    call.query_start = at_ask_count(ask, ask->request, "start", 0, 0, AT_LESSON_ROWS);
    call.out = at_ask_floats(ask, Q * width);
    call.weights = at_ask_floats(ask, H * Q * K);
    call.scores = at_ask_floats(ask, H * Q * K);
    call.entropy = at_ask_floats(ask, H * Q);
    call.key_sums = at_ask_floats(ask, H * K);
    if (ask->error->code != AT_OK || !at_attend(&s.settings, &call, ask->error))
        return false;
    at_put_matrix(ask, "query", s.query.value, Q, s.query.columns);
    at_put_matrix(ask, "output", call.out, Q, width);
    at_put_cube(ask, "weights", call.weights, H, Q, K);
    at_put_cube(ask, "scores", call.scores, H, Q, K);
    at_put_matrix(ask, "entropy", call.entropy, H, Q);
    at_put_matrix(ask, "sums", call.key_sums, H, K);
    return put_projected(ask, &s, "WQ", &s.query, "q") && put_projected(ask, &s, "WK", &s.key, "k") &&
           put_projected(ask, &s, "WV", &s.value, "v") && ask->error->code == AT_OK;
}

/* ---- draw ------------------------------------------------------------------------------------------------------- */

/* N draws are N batch rows of the same query, keys and values: every one draws by itself. */
typedef struct draws {
    int64_t count, D, K, Dv;
    float *query, *key, *value;          /* [N, 1, D], [N, K, D], [N, K, Dv] */
    float *out, *weights, *log_prob;     /* [N, 1, Dv], [N, 1, 1, K], [N] */
    float *reward, *signal, *grad_query; /* [N], [N], [N, D] */
} draws;

static float *repeated(const at_ask *ask, const at_matrix *m, int64_t times)
{
    const int64_t size = m->rows * m->columns;
    float *all = at_ask_floats(ask, times * size);
    for (int64_t n = 0; all && n < times; n++)
        memcpy(all + n * size, m->value, (size_t)size * sizeof *all);
    return all;
}

static bool draw(const at_ask *ask, const setting *s, const draws *d, bool backward)
{
    at_settings settings = s->settings;
    setting copy = *s;
    at_call call = call_of(&copy);
    settings.normaliser = "hard";
    call.batch = d->count;
    call.sample = true;
    call.seed = (uint64_t)at_ask_count(ask, ask->request, "seed", 1, 0, INT32_MAX);
    call.query = d->query, call.key = d->key, call.value = d->value;
    call.out = d->out, call.weights = d->weights, call.log_prob = d->log_prob;
    call.grad_log_prob = backward ? d->signal : NULL;
    call.grad_query = backward ? d->grad_query : NULL;
    return at_attend(&settings, &call, ask->error);
}

/* The mean over the draws of (R_n - b) d log p(s_n) / dq, and the deviation of one draw. */
static bool put_estimate(at_ask *ask, const setting *s, const draws *d, const char *name, double baseline)
{
    float *mean = at_ask_floats(ask, d->D), *deviation = at_ask_floats(ask, d->D);
    for (int64_t n = 0; n < d->count; n++)
        d->signal[n] = (float)((double)d->reward[n] - baseline);
    if (!mean || !deviation || !draw(ask, s, d, true))
        return false;
    for (int64_t c = 0; c < d->D; c++) {
        double sum = 0, squares = 0;
        for (int64_t n = 0; n < d->count; n++) {
            const double g = (double)d->grad_query[n * d->D + c];
            sum += g;
            squares += g * g;
        }
        mean[c] = (float)(sum / (double)d->count);
        deviation[c] = (float)sqrt(fmax(squares / (double)d->count - sum * sum / (double)(d->count * d->count), 0));
    }
    at_put_name(ask, name);
    at_buffer_print(&ask->text, "{");
    at_put_row(ask, "mean", mean, d->D);
    at_put_row(ask, "deviation", deviation, d->D);
    at_buffer_print(&ask->text, "}");
    return true;
}

/* The mean of `count` rows. */
static void put_mean(at_ask *ask, const char *name, const float *rows, int64_t count, int64_t size)
{
    float *mean = at_ask_floats(ask, size);
    for (int64_t c = 0; mean && c < size; c++) {
        double sum = 0;
        for (int64_t n = 0; n < count; n++)
            sum += (double)rows[n * size + c];
        mean[c] = (float)(sum / (double)count);
    }
    if (mean)
        at_put_row(ask, name, mean, size);
}

/* The soft weights and output, and d E[R] / dq: R = r.v_j is linear in the value, so E[R] = r.(sum_j p_j v_j), which is r
 * times soft attention's output. */
static bool put_exact(at_ask *ask, setting *s, const at_matrix *reward)
{
    at_settings settings = s->settings;
    at_call call = call_of(s);
    settings.normaliser = "softmax";
    call.out = at_ask_floats(ask, s->value.columns);
    call.weights = at_ask_floats(ask, s->key.rows);
    call.grad_out = reward->value;
    call.grad_query = at_ask_floats(ask, s->query.columns);
    if (!call.out || !call.weights || !call.grad_query || !at_attend(&settings, &call, ask->error))
        return false;
    at_put_row(ask, "weights", call.weights, s->key.rows);
    at_put_row(ask, "output", call.out, s->value.columns);
    at_put_row(ask, "exact", call.grad_query, s->query.columns);
    return true;
}

bool at_answer_draw(at_ask *ask)
{
    setting s;
    at_matrix reward;
    if (!at_ask_only(ask, ask->request, "ask query key value score parameters seed draws reward") ||
        !read_setting(ask, &s) || !at_ask_matrix(ask, json_object_get(ask->request, "reward"), "reward", &reward))
        return false;
    const int64_t N = at_ask_count(ask, ask->request, "draws", 1, 1, DRAWS);
    if (s.query.rows != 1 || reward.rows != 1 || reward.columns != s.value.columns)
        return at_fail(ask->error, AT_SHAPE,
                       "draws need one row of `query`, and a `reward` with as many numbers as a value has, %lld",
                       (long long)s.value.columns);
    if (named(&s, "WQ") || named(&s, "WK") || named(&s, "WV") || named(&s, "WO"))
        return at_fail(ask->error, AT_USAGE, "draws take no projections");
    if (N * s.key.rows * (s.key.columns + s.value.columns) > 1 << 20)
        return at_fail(ask->error, AT_SHAPE, "%lld `draws` of %lld keys are too many", (long long)N,
                       (long long)s.key.rows);
    const draws d = {.count = N,
                     .D = s.query.columns,
                     .K = s.key.rows,
                     .Dv = s.value.columns,
                     .query = repeated(ask, &s.query, N),
                     .key = repeated(ask, &s.key, N),
                     .value = repeated(ask, &s.value, N),
                     .out = at_ask_floats(ask, N * s.value.columns),
                     .weights = at_ask_floats(ask, N * s.key.rows),
                     .log_prob = at_ask_floats(ask, N),
                     .reward = at_ask_floats(ask, N),
                     .signal = at_ask_floats(ask, N),
                     .grad_query = at_ask_floats(ask, N * s.query.columns)};
    if (ask->error->code != AT_OK || !draw(ask, &s, &d, false))
        return false;
    double mean = 0;
    for (int64_t n = 0; n < N; n++) {
        for (int64_t c = 0; c < d.Dv; c++)
            d.reward[n] += reward.value[c] * d.out[n * d.Dv + c];
        mean += (double)d.reward[n] / (double)N;
    }
    put_mean(ask, "frequency", d.weights, N, d.K);
    put_mean(ask, "mean", d.out, N, d.Dv);
    at_put_number(ask, "reward", mean);
    return put_estimate(ask, &s, &d, "plain", 0) && put_estimate(ask, &s, &d, "baseline", mean) &&
           put_exact(ask, &s, &reward) && ask->error->code == AT_OK;
}
