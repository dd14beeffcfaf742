/* The model of g2p_en: an .npz with a GRU encoder and a GRU decoder without attention, and vocabulary.json beside it. Its
 * cells are PyTorch's: rows r z n, two biases. It is our rnn-plain, whose W x is a row of a table: the rows here are the
 * products of W_ih with the embeddings. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "io/npz.h"
#include "store/imported_internal.h"
#include "store/readers_internal.h"

static bool knows(const char *path, at_error *error)
{
    unsigned char start[4];
    at_error unread = {0};
    at_zip *zip =
        at_is_zip(start, at_file_begin(path, start, sizeof start, &unread)) ? at_zip_open(path, &unread) : NULL;
    const bool ours = zip && at_zip_find(zip, "enc_w_ih.npy") >= 0 && at_zip_find(zip, "dec_w_ih.npy") >= 0;
    at_zip_close(zip);
    (void)error;
    return ours;
}

/* The letters or the phones of vocabulary.json. */
static bool read_side(const json_t *vocabulary, const char *list, const char *begin, const char *path, int64_t rows,
                      at_row_ids *ids, at_error *error)
{
    const at_row_specials specials = {
        .pad = "<pad>", .unknown = "<unk>", .begin = begin, .end = "</s>", .characters = !begin};
    at_row_names names = {0};
    bool done = at_row_names_of_json(json_object_get(vocabulary, list), path, &names, error) &&
                at_row_ids_make(&names, rows, &specials, ids, error);
    if (done && (ids->row[AT_END] < 0 || names.count != rows))
        done = at_fail(error, AT_FORMAT, "'%s': '%s' has %lld names, and the model has %lld rows", path, list,
                       (long long)names.count, (long long)rows);
    at_row_names_free(&names);
    return done;
}

/* OURS [units,3H] = E W_ih^T + b_ih, summed in double */
static bool put_table(at_import *in, const char *ours, const char *side, const at_row_ids *ids)
{
    char name[3][20];
    const char *const ends[] = {"emb", "w_ih", "b_ih"};
    const at_array *a[3];
    for (int i = 0; i < 3; i++) {
        at_import_name(name[i], sizeof name[i], "%s_%s", side, ends[i]);
        if (!(a[i] = at_import_need(in, name[i], i < 2 ? 2 : 1)))
            return false;
        if (a[i]->dtype != AT_F32)
            return at_fail(in->error, AT_UNSUPPORTED, "'%s': '%s' is not float32", in->path, name[i]);
    }
    const at_shape shape = at_params_shape(in->params, at_params_find(in->params, ours));
    const int64_t width = shape.dim[1], E = at_import_dim(a[0], 0);
    const float *emb = a[0]->data, *W = a[1]->data, *b = a[2]->data;
    if (at_import_dim(a[1], 0) != E || at_import_dim(a[1], 1) != width || at_array_count(a[2]) != width)
        return at_fail(in->error, AT_FORMAT, "'%s': the sizes of '%s_*' do not fit each other", in->path, side);
    at_real *to = at_params_value(in->params, at_params_find(in->params, ours));
    for (int64_t u = 0; u < ids->units; u++)
        for (int64_t r = 0; r < width && ids->row[u] >= 0; r++) {
            double sum = (double)b[r];
            for (int64_t e = 0; e < E; e++)
                sum += (double)emb[ids->row[u] * E + e] * (double)W[r * E + e];
            if (!isfinite(sum))
                return at_fail(in->error, AT_FORMAT, "'%s': '%s_*' hold a number that is not finite", in->path, side);
            to[u * width + r] = (at_real)sum;
        }
    return true;
}

static bool put_cell(at_import *in, const char *side, const char *theirs)
{
    char ours[40], name[40];
    at_import_name(ours, sizeof ours, "%s.U", side);
    at_import_name(name, sizeof name, "%s_w_hh", theirs);
    if (!at_import_put(in, &(at_import_part){.ours = ours, .theirs = name}))
        return false;
    at_import_name(ours, sizeof ours, "%s.recurrent.b", side);
    at_import_name(name, sizeof name, "%s_b_hh", theirs);
    return at_import_put(in, &(at_import_part){.ours = ours, .theirs = name});
}

static bool load_parts(at_translator *t, at_import *in, const json_t *vocabulary, const char *path)
{
    const at_array *source = at_import_need(in, "enc_emb", 2),
                   *target = source ? at_import_need(in, "dec_emb", 2) : NULL,
                   *U = target ? at_import_need(in, "enc_w_hh", 2) : NULL;
    at_row_ids from = {0}, to = {0};
    bool done = U && read_side(vocabulary, "graphemes", NULL, path, at_import_dim(source, 1), &from, in->error) &&
                read_side(vocabulary, "phonemes", "<s>", path, at_import_dim(target, 1), &to, in->error) &&
                at_import_set(in, "model", "rnn-plain") && at_import_set(in, "cell", "gru") &&
                at_import_set(in, "reset", "after-bias") &&
                at_import_set_number(in, "hidden", (double)at_import_dim(U, 0)) && at_import_set(in, "dropout", "0");
    if (done)
        t->model = at_import_model(in, from.units, to.units);
    done = done && t->model && put_table(in, "source.E", "enc", &from) && put_table(in, "target.E", "dec", &to) &&
           put_cell(in, "encoder", "enc") && put_cell(in, "decoder", "dec") &&
           at_import_rows(in, "output.W", "fc_w", &to, 0) && at_import_rows(in, "output.b", "fc_b", &to, AT_NEVER);
    if (from.vocabulary)
        at_vocabulary_frame(from.vocabulary, false, true);
    t->source = from.vocabulary;
    t->target = to.vocabulary;
    from.vocabulary = to.vocabulary = NULL;
    at_row_ids_free(&from);
    at_row_ids_free(&to);
    return done;
}

static bool load(at_translator *t, const char *path, at_error *error)
{
    at_bundle beside = {0};
    bool done = at_bundle_beside(&beside, path, error);
    json_t *vocabulary = done ? at_bundle_json(&beside, "vocabulary.json", error) : NULL;
    char *name = done ? at_bundle_path(&beside, "vocabulary.json", error) : NULL;
    if (done && name && !vocabulary)
        at_fail(error, AT_FILE, "'%s' is missing, which has the letters and phones of '%s'", name, path);
    at_tensors *arrays = vocabulary ? at_npz_read(path, error) : NULL;
    at_import in = {.path = path, .arrays = arrays, .error = error};
    done = arrays && load_parts(t, &in, vocabulary, name);
    if (done)
        at_params_changed(t->model->params);
    t->origin = strdup("g2p_en");
    at_tensors_free(arrays);
    json_decref(vocabulary);
    at_bundle_close(&beside);
    free(name);
    return done;
}

const at_reader at_reader_g2p = {
    .name = "g2p_en", .formats = ".npz with vocabulary.json", .knows = knows, .load = load};
