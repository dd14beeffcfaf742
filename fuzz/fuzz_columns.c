/* Any bytes as a tab-separated file, after four bytes that choose the columns, the vocabularies and the limits: an error
 * message, or a corpus whose batches hold ids of its vocabularies, which are the same again from their JSON. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text/corpus.h"

static at_vocabulary *make_vocabulary(const at_lines *lines, int side, uint8_t choice)
{
    static const char *const kinds[] = {"char", "word", "word:2", "char:3"};
    at_error error = {0};
    at_vocabulary *vocabulary = at_vocabulary_new(kinds[choice % 4], &error);
    EXPECT(vocabulary);
    at_vocabulary_normalise(vocabulary, (at_cleaning){.form = (at_form)(choice / 4 % 3), .lowercase = choice / 16 % 2});
    const bool fixed = at_lines_count_units(lines, side, vocabulary, &error) && at_vocabulary_fix(vocabulary, &error);
    expect_message(fixed, &error);
    if (fixed)
        return vocabulary;
    at_vocabulary_free(vocabulary);
    return NULL;
}

static void check_vocabulary(const at_vocabulary *vocabulary)
{
    at_error error = {0};
    at_vocabulary *copy = at_vocabulary_copy(vocabulary, &error);
    EXPECT(copy && at_vocabulary_same(vocabulary, copy, &error));
    at_vocabulary_free(copy);
}

static void check_ids(const int32_t *id, int64_t count, const at_vocabulary *vocabulary)
{
    at_buffer text = {0};
    EXPECT(at_vocabulary_decode(vocabulary, id, count, &text) && !strchr(text.bytes, '\n'));
    at_buffer_free(&text);
    for (int64_t i = 0; i < count; i++)
        EXPECT(id[i] >= -1 && id[i] < at_vocabulary_size(vocabulary));
}

static void check_batches(const at_corpus *corpus, const at_vocabulary *const vocabulary[2], uint8_t size)
{
    at_error error = {0};
    at_batch batch;
    int64_t rows = 0;
    at_batches *batches = at_batches_new(corpus, size % 4, size % 4 == 0 ? 1 + size / 4 : 0, 1, true, &error);
    EXPECT(batches && at_batches_seek(batches, 1, 0, &error));
    while (at_batches_next(batches, &batch)) {
        rows += batch.rows;
        if (vocabulary[0])
            check_ids(batch.source, batch.rows * batch.source_length, vocabulary[0]);
        check_ids(batch.target, batch.rows * batch.target_length, vocabulary[1]);
    }
    EXPECT(rows == at_corpus_count(corpus));
    at_batches_free(batches);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    if (size < 4)
        return 0;
    const char *path;
    const int file = open_bytes(bytes + 4, size - 4, &path);
    at_corpus_files files = {.tsv = path, .source_column = bytes[0] % 4, .target_column = 1 + bytes[0] / 4 % 4};
    files.target_only = files.source_column == 0;
    const at_corpus_limits limits = {
        .max_length = bytes[1] % 8, .rule = (at_too_long)(bytes[1] / 8 % 3), .max_ratio = bytes[1] / 32};
    at_corpus_report report;
    at_error error = {0};
    at_decompressed_limit_set(1 << 17);
    at_lines *lines = at_lines_read(&files, &error);
    expect_message(lines, &error);
    at_vocabulary *source = lines && !files.target_only ? make_vocabulary(lines, 0, bytes[2]) : NULL;
    at_vocabulary *target = lines ? make_vocabulary(lines, 1, bytes[3]) : NULL;
    if (target && (source || files.target_only)) {
        at_corpus *corpus = at_corpus_new(lines, source, target, NULL, &limits, &report, &error);
        expect_message(corpus, &error);
        if (corpus)
            check_batches(corpus, (const at_vocabulary *const[2]){source, target}, bytes[2] ^ bytes[3]);
        at_corpus_free(corpus);
        check_vocabulary(target);
    }
    at_vocabulary_free(source);
    at_vocabulary_free(target);
    at_lines_free(lines);
    close(file);
    return 0;
}
