/* The list of metrics, and what several of them share. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/settings.h"
#include "score/metric_internal.h"

const at_metric_info *at_metric(int index)
{
    for (int i = 0; index >= 0 && at_metric_records[i]; i++)
        if (i == index)
            return &at_metric_records[i]->info;
    return NULL;
}

const at_metric_record *at_metric_record_named(const char *name)
{
    for (int i = 0; at_metric_records[i]; i++)
        if (strcmp(at_metric_records[i]->info.name, name) == 0)
            return at_metric_records[i];
    return NULL;
}

const at_metric_info *at_metric_named(const char *name)
{
    const at_metric_record *record = at_metric_record_named(name);
    return record ? &record->info : NULL;
}

bool at_score_no_memory(at_error *error)
{
    return at_no_memory(error, "a score");
}

void at_score_scratch_free(at_score_scratch *scratch)
{
    at_words_free(&scratch->words);
    at_dictionary_free(&scratch->dictionary);
    at_sequences_free(&scratch->units);
    at_sequences_free(&scratch->characters);
    at_grams_free(&scratch->grams);
    free(scratch->lines);
    free(scratch->cleaned);
    free(scratch->counts);
    free(scratch->masks);
    free(scratch->steps);
    *scratch = (at_score_scratch){0};
}

double at_percentage(const double *sums, bool sentence)
{
    (void)sentence;
    if (sums[1] > 0)
        return 100.0 * sums[0] / sums[1];
    return sums[0] > 0 ? 100 : 0;
}

const char *at_signature_case(const at_score_settings *settings)
{
    return settings->lowercase ? "lc" : "mixed";
}

bool at_score_words(at_score_scratch *scratch, const at_score_line *line)
{
    at_sequences_clear(&scratch->units);
    at_dictionary_clear(&scratch->dictionary);
    for (int s = 0; s <= line->count; s++) {
        if (!at_tokenise(&scratch->words, line->tokeniser, s == 0 ? *line->hypothesis : line->references[s - 1]))
            return false;
        for (int64_t i = 0; i < scratch->words.count; i++) {
            at_line word = scratch->words.item[i];
            int32_t id = at_dictionary_id(&scratch->dictionary, word.text, word.size);
            if (id < 0 || !at_sequences_add(&scratch->units, id))
                return false;
        }
        if (!at_sequences_end(&scratch->units))
            return false;
    }
    return true;
}
