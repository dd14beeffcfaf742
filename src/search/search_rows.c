/* From rows of logits to candidates. A row's numbers depend on that row only and are summed in one order, so neither
 * its neighbours nor the threads change a bit of them. */
#include <math.h>
#include <string.h>

#include "base/threads.h"
#include "kernels/isa.h"
#include "kernels/passes.h"
#include "kernels/rows.h"
#include "search/search_internal.h"

enum { ONE_THREAD = 1 << 14 }; /* logits that one thread finishes before a second one would have started */
enum { BLOCK = 64 };           /* units that are skipped together if none of them can be a candidate */
enum { LANES = 8 };            /* independent maxima, which the compiler vectorises */

at_log_softmax at_log_softmax_of(const at_real *row, int64_t count)
{
    const log_sum_row sums = at_isa()->passes->log_sum(row, count);
    return (at_log_softmax){(double)sums.max, log(sums.sum)};
}

/* A logit without a probability, and finite. */
#define NEVER ((at_real)-1e30)

typedef struct rows_job {
    const at_search_work *work;
    const at_real *logits;
    int64_t vocabulary;
    at_row_task *tasks;
    at_real *scratch; /* [workers, V] */
    int32_t *order;   /* [workers, V] for top-k and top-p, or NULL */
} rows_job;

/* Padding and the begin never follow; the end may not follow yet; and what is barred. */
static bool may_follow(const at_row_task *task, int64_t id)
{
    return id != AT_PAD && id != AT_BEGIN && (id != AT_END || !task->no_end) &&
           (!task->bars || at_bars_allow(task->bars, (int32_t)id));
}

static at_real largest(const at_real *x, int64_t count)
{
    at_real top[LANES];
    int64_t i = 0;
    for (int w = 0; w < LANES; w++)
        top[w] = x[0];
    for (; i + LANES <= count; i += LANES)
        for (int w = 0; w < LANES; w++)
            top[w] = x[i + w] > top[w] ? x[i + w] : top[w];
    for (; i < count; i++)
        top[0] = x[i] > top[0] ? x[i] : top[0];
    for (int w = 1; w < LANES; w++)
        top[0] = top[w] > top[0] ? top[w] : top[0];
    return top[0];
}

/* No better than the last candidate of a full list. */
static bool is_beaten(const at_row_task *task, at_real logit)
{
    return task->count == task->most && (double)logit <= task->candidates[task->count - 1].log_prob;
}

/* The likeliest ids in order, by insertion: most blocks fail the first comparison. The logits rank as the
 * log-probabilities do. */
static void find_likeliest(const rows_job *job, const at_real *row, at_log_softmax l, at_row_task *task)
{
    at_candidate *best = task->candidates;
    for (int64_t from = 0, to; from < job->vocabulary; from = to) {
        to = from + BLOCK < job->vocabulary ? from + BLOCK : job->vocabulary;
        if (is_beaten(task, largest(row + from, to - from)))
            continue;
        for (int64_t id = from; id < to; id++) {
            if (is_beaten(task, row[id]) || !may_follow(task, id))
                continue;
            int64_t rank = task->count < task->most ? task->count++ : task->count - 1;
            for (; rank > 0 && best[rank - 1].log_prob < (double)row[id]; rank--)
                best[rank] = best[rank - 1];
            best[rank] = (at_candidate){(double)row[id], (int32_t)id};
        }
    }
    for (int64_t i = 0; i < task->count; i++)
        best[i].log_prob = at_log_prob(l, best[i].log_prob);
}

/* ---- Sampling ------------------------------------------------------------------------------------------------- */

/* The likelier one first, and of equals the lower id, as in search. */
static bool is_likelier(const at_real *row, int32_t a, int32_t b)
{
    return row[a] > row[b] || (row[a] == row[b] && a < b);
}

/* Restores the heap below `root`: nothing is likelier than what it stands below. */
static void sift(const at_real *row, int32_t *heap, int64_t root, int64_t count)
{
    for (int64_t child; (child = 2 * root + 1) < count; root = child) {
        if (child + 1 < count && is_likelier(row, heap[child + 1], heap[child]))
            child++;
        if (!is_likelier(row, heap[child], heap[root]))
            return;
        const int32_t moved = heap[root];
        heap[root] = heap[child];
        heap[child] = moved;
    }
}

/* Moves the likeliest of the heap [count] behind its end, where those taken before already stand; returns its id. */
static int32_t take_likeliest(const at_real *row, int32_t *heap, int64_t count)
{
    const int32_t id = heap[0];
    heap[0] = heap[count - 1];
    heap[count - 1] = id;
    sift(row, heap, 0, count - 1);
    return id;
}

/* Sets the weights to 0 of all but the top-k likeliest, and of these all but the fewest likeliest ones r = 1, 2, ... with
 * w_1 + ... + w_r >= top-p (w_1 + ... + w_k). */
static void keep_likeliest(const rows_job *job, const at_real *row, const at_row_task *task, at_real *weights,
                           int32_t *heap)
{
    const at_search_settings *settings = job->work->settings;
    int64_t count = 0, kept = 0;
    double total = 0, running = 0;
    for (int32_t id = 0; id < job->vocabulary; id++)
        if (may_follow(task, id))
            heap[count++] = id;
    for (int64_t root = count / 2; root-- > 0;)
        sift(row, heap, root, count);
    const bool is_nucleus = settings->top_p > 0 && settings->top_p < 1;
    int64_t most = settings->top_k > 0 && settings->top_k < count ? settings->top_k : count;
    if (most == count && !is_nucleus)
        return;
    int64_t taken = 0;
    for (; most < count && taken < most; taken++)
        total += (double)weights[take_likeliest(row, heap, count - taken)];
    for (int64_t i = 0; taken == 0 && i < count; i++)
        total += (double)weights[heap[i]];
    for (; kept < most && (!is_nucleus || kept == 0 || running < settings->top_p * total); kept++) {
        const int32_t id = kept < taken ? heap[count - 1 - kept] : take_likeliest(row, heap, count - kept);
        running += (double)weights[id];
    }
    for (int64_t i = 0; i < count - kept; i++)
        weights[heap[i]] = 0;
}

/* p_i = e^(x_i / T) / sum_j e^(x_j / T) over what may follow, and is kept; the first id at which the running sum passes
 * `uniform`. */
static void sample(const rows_job *job, const at_real *row, int worker, at_log_softmax l, at_row_task *task)
{
    double sum = 0, running = 0, rate = 1 / job->work->settings->temperature;
    at_real top = -INFINITY, *scratch = job->scratch + worker * job->vocabulary;
    for (int64_t id = 0; id < job->vocabulary; id++)
        if (may_follow(task, id) && row[id] > top)
            top = row[id];
    for (int64_t id = 0; id < job->vocabulary; id++) {
        double power = may_follow(task, id) ? ((double)row[id] - (double)top) * rate : -INFINITY;
        scratch[id] = (at_real)(power < -200 ? -200 : power);
    }
    at_rows_exp(scratch, scratch, job->vocabulary);
    if (job->order)
        keep_likeliest(job, row, task, scratch, job->order + worker * job->vocabulary);
    for (int64_t id = 0; id < job->vocabulary; id++) {
        scratch[id] = may_follow(task, id) ? scratch[id] : 0;
        sum += (double)scratch[id];
    }
    int32_t sampled = AT_END;
    for (int64_t id = 0; id < job->vocabulary && running <= task->uniform * sum; id++) {
        running += (double)scratch[id];
        sampled = scratch[id] > 0 ? (int32_t)id : sampled;
    }
    task->candidates[0] = (at_candidate){at_log_prob(l, (double)row[sampled]), sampled};
    task->count = 1;
}

/* ---- All rows ------------------------------------------------------------------------------------------------- */

static void do_row(void *context, int64_t index, int worker)
{
    const rows_job *job = context;
    at_row_task *task = &job->tasks[index];
    const at_real *row = job->logits + index * job->vocabulary;
    task->count = 0;
    if (task->most == 0)
        return;
    at_log_softmax l = at_log_softmax_of(row, job->vocabulary);
    if (task->shares_end && !isnan(l.log_sum)) { /* the softmax over all but the end */
        at_real *others = job->scratch + worker * job->vocabulary;
        memcpy(others, row, (size_t)job->vocabulary * sizeof *others);
        others[AT_END] = NEVER;
        l = at_log_softmax_of(others, job->vocabulary);
    }
    task->failed = isnan(l.log_sum);
    if (task->failed)
        return;
    if (task->only >= 0) {
        task->candidates[0] = (at_candidate){at_log_prob(l, (double)row[task->only]), task->only};
        task->count = 1;
    } else if (task->samples) {
        sample(job, row, worker, l, task);
    } else {
        find_likeliest(job, row, l, task);
    }
    if (task->count == 0) { /* all is barred: then it ends */
        task->candidates[0] = (at_candidate){at_log_prob(l, (double)row[AT_END]), AT_END};
        task->count = 1;
    }
    for (int64_t i = 0; i < task->also_count; i++)
        task->also[i].log_prob = at_log_prob(l, (double)row[task->also[i].id]);
}

bool at_search_rows(at_search_work *work, const at_real *logits, int64_t rows, int64_t vocabulary, at_row_task *tasks)
{
    int workers = rows * vocabulary < ONE_THREAD ? 1 : at_threads();
    rows_job job = {work, logits, vocabulary, tasks, NULL, NULL};
    const bool keeps = work->settings->top_k > 0 || work->settings->top_p > 0;
    job.scratch = at_search_alloc(work, work->steps, workers * vocabulary, sizeof *job.scratch);
    if (keeps)
        job.order = at_search_alloc(work, work->steps, workers * vocabulary, sizeof *job.order);
    if (!job.scratch || (keeps && !job.order))
        return false;
    at_parallel(rows, workers, do_row, &job);
    return true;
}
