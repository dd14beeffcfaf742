/* attend_unstable.h: what the attend command shares with the library beyond attend.h.
 *
 * Everything here may change in any release, without notice and without a new soname. Programs should use attend.h.
 */
#ifndef ATTEND_UNSTABLE_H
#define ATTEND_UNSTABLE_H

#include "attend.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Settings ------------------------------------------------------------------------------------------------- */

/* A setting is one row of a table: its name, its type and limits, its default, its help and the field it is stored in.
 * Models, training and the commands declare rows; parsing, formatting, help, error messages and what a resumed run must
 * share all follow from the row. */

typedef enum at_setting_type {
    AT_SETTING_HEADING, /* no setting: `help` is the heading of the rows below it */
    AT_SETTING_SWITCH,  /* bool: true or false */
    AT_SETTING_TEXT,    /* const char *: points to the text that was parsed, which must stay there */
    AT_SETTING_NAME,    /* char[size]: a copy of the text */
    AT_SETTING_COUNT,   /* int64_t: a whole number */
    AT_SETTING_NUMBER,  /* double */
    AT_SETTING_SEED,    /* uint64_t */
    AT_SETTING_CHOICE,  /* an enum (int): the index of the text in `choices` */
    AT_SETTING_COLUMNS, /* at_columns: S,T or T */
    AT_SETTING_COUNTS,  /* at_counts: 5,3,8 */
    AT_SETTING_TEXTS,   /* at_texts: may be given several times */
    AT_SETTING_PAIRS    /* at_pairs: NAME=FILE, may be given several times; a later NAME replaces an earlier one */
} at_setting_type;

/* Whether a resumed run must have the same value. There is no default: a test fails for a row of at_training_setting
 * that has not decided. */
typedef enum at_resume {
    AT_RESUME_UNDECIDED,
    AT_RESUME_SAME, /* the value is part of the run's identity */
    AT_RESUME_DATA, /* what it names or makes of the data is compared (vocabularies, number of lines), not its text */
    AT_RESUME_FREE  /* may change from run to run */
} at_resume;

/* Further limits of a number. */
enum {
    AT_ABOVE_LEAST = 1, /* more than `least` */
    AT_BELOW_MOST = 2,  /* less than `most`, also when rounded to a float */
    AT_WHOLE = 4        /* a whole number, though its field is a double */
};

typedef struct at_columns {
    int source, target; /* from 1; source 0: one column, of a language model */
} at_columns;

typedef struct at_counts {
    int64_t *value;
    int64_t count; /* 0 if not given */
} at_counts;

typedef struct at_texts {
    const char **value;
    int count;
    bool settled; /* the next one replaces those there are */
} at_texts;

typedef struct at_pairs {
    char **name;
    const char **file;
    int count;
} at_pairs;

typedef struct at_setting {
    at_setting_type type;
    const char *name;           /* "kv-heads": in at_training_set, on the command line and in a --config file */
    const char *argument;       /* "N": what help calls its value; NULL for a switch that is given without one */
    size_t offset;              /* of its field in the struct of settings */
    const char *fallback;       /* the default as text; NULL: none */
    double least, most;         /* limits of a count or number; most 0: no upper limit */
    unsigned limits;            /* AT_ABOVE_LEAST, AT_BELOW_MOST, AT_WHOLE */
    const char *axis;           /* "score": its value is a name of this axis of at_catalogue; NULL: of none */
    const char *also[3];        /* names beside those of the axis, NULL after the last */
    const char *alias[2];       /* another name of a value, and that value, which is stored; NULL: none */
    const char *help;           /* names of settings stand in backquotes */
    const char *const *choices; /* AT_SETTING_CHOICE: NULL after the last; "" is a value that cannot be given: unset */
    size_t size;                /* AT_SETTING_NAME: of the field */
    bool (*known)(const char *text, at_error *error); /* checks the text; NULL: not needed */
    const char *(*value_at)(int index);               /* a text with known values: their names; NULL: not listed */
    const char *group;                                /* the heading it stands under in help */
    at_resume resume;
    char letter;         /* 'm' if -m is short for it on the command line, else 0 */
    const char *implied; /* what the name alone means on the command line; NULL: it needs its value */
} at_setting;

/* Parses `text` and stores the value in the row's field of `into`. `label` names the setting in an error message; NULL:
 * its name in backquotes. */
AT_API bool at_setting_parse(const at_setting *row, const char *label, const char *text, void *into, at_error *error);
/* The value as text that at_setting_parse reads back to the same bits; "" for an unset one and for lists. Returns
 * `text`. */
AT_API char *at_setting_text(const at_setting *row, const void *from, char *text, size_t size);
/* Releases the memory of a list; other types have none. */
AT_API void at_setting_release(const at_setting *row, void *from);

/* The rows of all settings of training, in the order of help, those of the model among them; NULL past the last. */
AT_API const at_setting *at_training_setting(int index);

/* What training chooses by name beyond at_catalogue: the axes "position" (added to embeddings), "optimiser", "schedule" and
 * "vocabulary"; NULL past the last. */
AT_API const at_entry *at_training_entry(int index);

/* The names nearest to a misspelt one, to end an error message: "; did you mean 'scaled'?", or "" if none is near. */
AT_API void at_suggest(const char *word, const char *const *names, int count, char *out, size_t size);
/* Fails with "no WHAT 'word'" and the names nearest to it, or with all of them if there are only a few. Always false. */
AT_API bool at_unknown(const char *what, const char *word, const char *const *names, int count, at_error *error);

/* ---- Kernels -------------------------------------------------------------------------------------------------- */

/* ---- Decoding ------------------------------------------------------------------------------------------------- */

/* How a model with the normaliser hard decodes that was trained with samples: with the likeliest source unit, as it does
 * by default, or with the expected context. All that is computed with the translator afterwards follows. AT_USAGE: no
 * model of the translator is one. */
AT_API bool at_translator_expect(at_translator *translator, bool expectation, at_error *error);

/* A glossary: what the terms of a source are called in its translation, and what they are not. In the file each line is a
 * source term, a tab and the target term, or a ! and the target term that is forbidden where the source term occurs
 * (doc/formats.md). A glossary of the search settings excludes sampling, language models and pictures. It is read only, so
 * that several threads may use one. AT_FORMAT: the file is no glossary, or it contradicts itself. */
AT_API at_glossary *at_glossary_load(const char *path, at_error *error);
AT_API void at_glossary_free(at_glossary *glossary);

/* What a target can go on with after a given start: as at_translate, but the `n_best` likeliest units after the start of a
 * line (`prefix`) are hypotheses of their own from there on, and each goes on greedily. They come in the order of the
 * probabilities of these units, whose logarithm is `penalised`, and have names. `beam` must be `n_best`; fails as
 * at_translate and at_translate_stream do. */
AT_API bool at_alternatives(at_translator *translator, const at_search_settings *settings, const at_line *lines,
                            int64_t count, at_on_result *on_result, void *context, at_error *error);
AT_API bool at_alternatives_stream(at_translator *translator, const at_search_settings *settings,
                                   at_next_line *next_line, at_on_result *on_result, void *context, at_error *error);
/* Of such a result with an `n_best` of 2 or more: the first unit that differs, as all begin with the start. */
AT_API int64_t at_alternatives_from(const at_result *result);

/* The queries and keys that the weights of a map come from, as they are multiplied: projected, and rotated if the model
 * does that. */
typedef struct at_map_vectors {
    int64_t size;         /* D of a head */
    const float *queries; /* [heads, rows, size] */
    const float *keys;    /* [heads, columns, size] */
    const float *norms;   /* [heads, columns] |v_j W_O|, the length of what a key's value adds at a weight of 1 */
} at_map_vectors;
/* Those of map `index` of at_maps_at; false if they are not known: of recurrent models, and between words. */
AT_API bool at_maps_vectors(const at_maps *maps, int index, at_map_vectors *vectors);

/* The words that the units of a map's rows and columns are part of, counted from 0 as in at_maps_words; -1: of none. */
AT_API const int64_t *at_maps_word_numbers(const at_maps *maps, int index, bool columns);

/* How relevant each unit is, by gradient x attention through all layers (Chefer, Gur, Wolf 2021; the rules are in
 * src/search/relevance_internal.h): a map of each kind, of one layer and one head, whose rows are shares. In `cross` and
 * `decoder` row t is about the logit of target unit t, in `encoder` about their sum. `maps` is what at_maps_new made with this
 * translator, of which the first member counts; one backward pass for each target unit. AT_UNSUPPORTED: the model is no
 * Transformer. at_maps_relevance_cost: about how many multiplications and additions that takes. */
AT_API at_maps *at_maps_relevance(const at_maps *maps, at_translator *translator, at_error *error);
AT_API double at_maps_relevance_cost(const at_maps *maps, const at_translator *translator);

/* The search of one line, step by step. */
typedef struct at_beam_unit {
    int64_t step;           /* from 0 */
    int64_t parent;         /* among the units of the step before that were kept and are not the end, from 0 */
    const char *name;       /* UTF-8 */
    double score, log_prob; /* of the hypothesis so far, and of this unit */
    bool kept, ended;       /* kept: the hypothesis went on, or ended with this unit */
    bool best;              /* part of the result */
} at_beam_unit;
typedef struct at_beams {
    const at_beam_unit
        *unit; /* [count] in the order of the steps; in each those that were kept first, in their order */
    int64_t count, steps;
    const int64_t *looks; /* [steps] where the hypotheses of a step begin in `weights` */
    const float *weights; /* [hypotheses, source_units] where they looked, by step and parent; NULL: no attention */
    int64_t source_units;
    const char *const *source_names; /* [source_units] */
    void *memory;                    /* the library's */
} at_beams;
/* As at_translate searches one line, by the same settings; the units that were not kept are those the search compared. For a
 * model that reads text. */
AT_API at_beams *at_beams_new(at_translator *translator, const at_search_settings *settings, const at_line *source,
                              at_error *error);
AT_API void at_beams_free(at_beams *beams);

/* One head of a Transformer, as the pairs of a text show it. */
typedef struct at_head {
    at_attention_kind kind;
    int layer, head; /* both from 1 */
    double
        importance; /* mean over the pairs of |dL/dxi|: L = -log p(target | source), and xi, 1, a factor of what the head
                          adds (Michel et al. 2019) */
    double share;   /* importance / the L2 norm of the importances of its layer's heads of this kind */
    double entropy; /* mean over the rows of the weights' entropy, in nats */
} at_head;

/* The heads in the order of kinds, layers and heads, and the pairs they were measured by. */
typedef struct at_head_list {
    at_head *head; /* [count] */
    int count;
    int64_t pairs;              /* that were used: */
    int64_t empty, first_empty; /* those with a side without a unit were not; the first one's line, from 1 */
} at_head_list;
/* Measures all heads by one forward and one backward pass; for a language model `sources` is NULL. Of an ensemble the first
 * member. Of the settings it uses batch and stop only; the results have the same bits for any batch size and number of
 * threads. AT_UNSUPPORTED: the model is no Transformer. */
AT_API at_head_list *at_heads_measure(at_translator *translator, const at_search_settings *settings,
                                      const at_line *sources, const at_line *targets, int64_t count, at_error *error);
AT_API void at_head_list_free(at_head_list *list);
/* Removes heads from the model: their parts of the output projection become 0, so that they add nothing. The parameters stay
 * where they are. AT_UNSUPPORTED: the model has no such head, is an ensemble, or is shared with a clone. */
AT_API bool at_translator_prune(at_translator *translator, const at_head *heads, int count, at_error *error);
/* The confidence of a translation: the share of its units that a person's translation has, too, as it is expected from the
 * model's own probabilities: 1 / (1 + exp(-(offset + slope x))), where x is the translation's log-probability divided by
 * its units and the end. Calibration fits the two numbers to pairs of lines, so that the mean confidence of all their
 * units is the share that was measured. */
enum { AT_CONFIDENCE_BINS = 10 };
typedef struct at_confidence_bin { /* translations with a confidence from i/10 to (i + 1)/10 */
    int64_t pairs, units;
    double confidence, share; /* mean over the units; what was measured */
} at_confidence_bin;
typedef struct at_calibration {
    double offset, slope;
    int64_t pairs, units;
    int64_t empty, first_empty; /* pairs with a side without a unit are left out; the first one's line, from 1 */
    double confidence, share;   /* of all units */
    double error; /* expected calibration error: the mean over all units of |confidence - share| of their bin */
    at_confidence_bin bin[AT_CONFIDENCE_BINS];
} at_calibration;
/* Translates the sources and compares with the targets. With `fit` the translator gets the curve that fits them, else
 * the curve that it has is measured; use other pairs for that. The settings are those of at_translate: a confidence holds
 * for the search that it was calibrated with. Same bits for any batch size and number of threads.
 * AT_UNSUPPORTED: a language model, or no calibration to measure; AT_FORMAT: no pair with a unit on both sides. */
AT_API bool at_translator_calibrate(at_translator *translator, const at_search_settings *settings,
                                    const at_line *sources, const at_line *targets, int64_t count, bool fit,
                                    at_calibration *report, at_error *error);
/* Of a hypothesis by its score and count, in [0, 1]; not a number if the model was not calibrated. */
AT_API double at_translator_confidence(const at_translator *translator, double score, int64_t units);
/* The number type of the matrices from now on, in memory and in the file that at_translator_write writes: "f32", "bf16",
 * "f16" or "int8" (doc/formats.md); biases, norms and positions stay float32. Fewer bits are for using a model: it can be
 * converted back to f32, but its numbers stay rounded. AT_USAGE: there is no such type; AT_UNSUPPORTED: the model is shared
 * with a clone, or has a number that f16 cannot hold. */
AT_API bool at_translator_convert(at_translator *translator, const char *weights, at_error *error);
/* Without a calibration: exp(score / (units + 1)) = (p_1 p_2 ... p_n)^(1/n), the geometric mean of the probabilities of the
 * units and the end. It orders translations, but 0.9 does not mean that nine of ten units are right. */
AT_API double at_confidence(double score, int64_t units);
/* Writes the model file, complete or not at all. AT_UNSUPPORTED: it is an ensemble. */
AT_API bool at_translator_write(const at_translator *translator, const char *path, at_error *error);
/* The same as a folder of another program: "ctranslate2" or "hf-marian" (doc/formats.md), complete or not at all, with the
 * number type that at_translator_convert chose. `path` is a new or an empty folder; "attend" is at_translator_write.
 * AT_USAGE: there is no such format; AT_UNSUPPORTED: the model does not fit it, and the message says which setting. */
AT_API bool at_translator_export(const at_translator *translator, const char *format, const char *path,
                                 at_error *error);

/* The picture that a line names, as the model reads it: uint8 [height,width,channels]; and the grid of its cells. For a
 * model that reads pictures; AT_UNSUPPORTED if it reads features. */
AT_API at_array *at_translator_picture(const at_translator *translator, at_line line, int64_t *rows, int64_t *columns,
                                       at_error *error);

/* How many units of a line attend translate and attend serve read unless told otherwise: a line somewhat longer than those
 * of training is translated whole, 5 times as long or 1000 units; one that would take minutes is not. */
AT_API int64_t at_translator_most_units(const at_translator *translator);

/* Uses the kernels of that name from now on; to be called before anything is computed, since weights are packed for one
 * set. AT_USAGE: there are none of that name; AT_UNSUPPORTED: this processor does not have them. */
AT_API bool at_kernels_set(const char *name, at_error *error);

/* ---- Files ---------------------------------------------------------------------------------------------------- */

/* Whether two paths are the same existing file. */
AT_API bool at_file_same(const char *one, const char *other);

/* An atomic write: the bytes go to a new temporary file beside `path`, which _commit syncs and renames over it, then the
 * directory is synced. A write that fails or is killed leaves the file that was there. The next writer of the same path
 * removes what a killed one left. A device or a pipe is written to and not replaced. */
typedef struct at_writer at_writer;
AT_API at_writer *at_writer_open(const char *path, at_error *error);
AT_API int at_writer_file(const at_writer *writer); /* its descriptor, for a child process to write to */
AT_API bool at_writer_add(at_writer *writer, const void *bytes, size_t size, at_error *error);
AT_API bool at_npy_add(at_writer *writer, const at_array *array, at_error *error);
/* Before several files are renamed together: after it only the rename itself can fail. */
AT_API bool at_writer_sync(at_writer *writer, at_error *error);
AT_API bool at_writer_commit(at_writer *writer, at_error *error); /* releases the writer either way */
AT_API void at_writer_cancel(at_writer *writer);
/* All of that at once. */
AT_API bool at_file_write(const char *path, const void *bytes, size_t size, at_error *error);

/* ---- JSON ----------------------------------------------------------------------------------------------------- */

/* The value of a JSON text, made of Jansson's values; release it with json_decref. Refused are names that occur twice in
 * an object, NUL characters, bytes that are not UTF-8, numbers beyond int64_t or double, and more than 100 nested
 * brackets. `what` names the text in the error message: "WHAT is not JSON: ..." or "out of memory for WHAT". (json_loads
 * of Jansson 2.14 does not check every allocation: it may lose characters, or crash.) */
struct json_t;
AT_API struct json_t *at_json_read(const char *text, size_t size, const char *what, at_error *error);
/* As json_dumps, but NULL whenever it is out of memory: json_dumps may leave out names then. */
AT_API char *at_json_text(const struct json_t *value, size_t flags);

/* ---- Vocabularies --------------------------------------------------------------------------------------------- */

/* Units of text and their ids; those from 0 to 3 are special: padding, unknown, begin, end. */
typedef struct at_vocabulary at_vocabulary;
/* How lines are cleaned before they are cut into units: as the options of attend train of these names. */
typedef struct at_vocabulary_text {
    const char *normalise; /* "none", "nfc", "nfkc"; NULL: none */
    bool lowercase;
    const char *tokenise; /* "none", "moses-like"; NULL: none */
} at_vocabulary_text;
/* From the lines of files ("-": the standard input); `kind` as --source-vocab of attend train takes it. */
AT_API at_vocabulary *at_vocabulary_make(const char *kind, const at_vocabulary_text *text, const char *const *paths,
                                         int count, at_error *error);
/* From a vocabulary file: FILE.spm, FILE.model or a text file with a unit in each line and, after a tab, its count; or
 * from a model file, the vocabulary of `side` ("source" or "target"; NULL: the only one there is) with the cleaning of
 * the model. */
AT_API at_vocabulary *at_vocabulary_load(const char *path, const char *side, const at_vocabulary_text *text,
                                         at_error *error);
AT_API void at_vocabulary_free(at_vocabulary *vocabulary);
/* Writes a vocabulary file: the bytes of a SentencePiece model, otherwise text. */
AT_API bool at_vocabulary_save(const at_vocabulary *vocabulary, const char *path, at_error *error);
AT_API bool at_vocabulary_has_subwords(const at_vocabulary *vocabulary);
AT_API int64_t at_vocabulary_size(const at_vocabulary *vocabulary);                 /* with the special ones */
AT_API const char *at_vocabulary_unit(const at_vocabulary *vocabulary, int32_t id); /* "<unk>" for special ones */
AT_API int64_t at_vocabulary_frequency(const at_vocabulary *vocabulary, int32_t id);
/* The units of a line with blanks between, also those that the vocabulary does not have; U+2581 stands for a blank among
 * characters. And back. Release with at_text_free. */
AT_API char *at_vocabulary_segment(const at_vocabulary *vocabulary, at_line line, at_error *error);
AT_API char *at_vocabulary_join(const at_vocabulary *vocabulary, at_line line, at_error *error);

/* ---- Drawings ------------------------------------------------------------------------------------------------- */

/* A link between a row and a column of a map, laid over it. */
typedef struct at_drawing_link {
    int64_t row, column;
    bool possible; /* drawn dashed; false: a sure link */
} at_drawing_link;

/* The links of a text such as "0-0 1-2 2?1": source-target pairs, from 0, the source a column and the target a row; ? is a
 * possible link. Release with free. */
AT_API bool at_drawing_links(const char *text, at_drawing_link **links, int64_t *count, at_error *error);

/* What is drawn follows the viewer between light and dark, and is light where there is none, as on paper; or is one of
 * them. */
typedef enum at_theme { AT_THEME_AUTO, AT_THEME_LIGHT, AT_THEME_DARK } at_theme;

/* A drawing of heat maps. Zero the struct, then fill in what you want. */
typedef struct at_drawing {
    const char *title;                    /* above the maps; NULL: none */
    const char *row_title, *column_title; /* what rows and columns are; NULL: not said */
    const at_heatmap *maps;    /* [count] of one size, the names those of the first; `colour` and the width in
                                            the terminal are not used */
    const char *const *titles; /* [count] above each map; NULL: none */
    int count;
    int across;                   /* maps beside each other; 0: as many as look well */
    bool sums;                    /* of the rows and of the columns, of a single map */
    const at_drawing_link *links; /* [link_count] over every map */
    int64_t link_count;
    at_theme theme;
    const at_array
        *picture; /* uint8 [height,width,1 or 3]: one map is drawn over it, a frame for each row, without sums
                                and links; NULL: none */
    int64_t grid_rows, grid_columns; /* of the cells of the picture, which the map's columns are */
} at_drawing;
/* The drawing as an SVG file: the same bytes for the same drawing, without scripts or other files. Values from 0 to 1 have
 * colours from 0 on, others from the smallest to the largest; the scale is drawn below. Release with at_text_free. */
AT_API char *at_drawing_svg(const at_drawing *drawing, at_error *error);

/* ---- The explorer --------------------------------------------------------------------------------------------- */

/* A page that shows all attention weights of a line. Zero the struct, then fill in what you want. */
typedef struct at_explorer {
    const char *title;
    const char *source, *target; /* the texts, above the weights; NULL: none */
    const at_map *const
        *maps; /* [count] between units, as at_maps_at returns them; or of an array, one for each layer */
    int count;
    const at_map_vectors *vectors;  /* [count] queries NULL: not known; NULL: of none */
    const at_map *const *word_maps; /* [word_count] the same between words; none if the units are words or cells */
    int word_count;
    const int64_t *const
        *row_words; /* [count] of at_maps_word_numbers, or NULL: a large page then makes the weights between */
    const int64_t *const *column_words; /* words of those between units */
    const at_map *const *relevance;     /* [relevance_count] of at_maps_relevance, between units, and */
    int relevance_count;
    const at_map *const *word_relevance; /* [word_relevance_count] between words */
    int word_relevance_count;
    const at_head *heads; /* [head_count] measured by this line alone */
    int head_count;
    const at_beams *beams; /* how the target was found; NULL: not shown */
    const char *other;     /* the name of another model, to compare with; NULL: none */
    const at_map *const
        *other_maps; /* [other_count] its maps, of which those between the same rows and columns count */
    int other_count;
    const at_map *const *other_word_maps; /* [other_word_count] */
    int other_word_count;
    bool of_array;                /* the maps are those of an array and not of a model */
    const at_drawing_link *links; /* [link_count] of an array, or of the words of cross-attention */
    int64_t link_count;
    const at_array *picture; /* as in at_drawing */
    int64_t grid_rows, grid_columns;
} at_explorer;
/* The page as one HTML file that needs no other and asks for none. Weights are rounded to 65535 steps of the largest in
 * their row, or to 255 in a page with more than 131072 of them; of rows of more than 256 it holds the 8 largest. Release with
 * at_text_free. AT_SHAPE: a link joins words that are not there. */
AT_API char *at_explorer_html(const at_explorer *explorer, at_error *error);
/* The page of a line: what stands beside the weights (title, source, links, picture, heads, beams, `other`), the maps between
 * units, to which it adds those between words, the maps of another model and those of relevance, or NULL. */
AT_API char *at_explorer_line(const at_explorer *explorer, const at_maps *maps, const at_maps *other,
                              const at_maps *relevance, at_error *error);

/* ---- Listings ------------------------------------------------------------------------------------------------- */

/* What the listings of textbooks do: a handful of pairs of equal length, ids of one small alphabet on both sides, one
 * batch of all of them, Adam at 0.001, teacher forcing with inputs of the caller's own. For demonstrations; training on
 * text is at_training. */
typedef struct at_listing at_listing;
typedef struct at_listing_task {
    int64_t symbols; /* ids are 0 .. symbols - 1 */
    int64_t pairs, source_length, target_length;
    const int32_t *source; /* [pairs, source_length] */
    const int32_t *input;  /* [pairs, target_length] what the decoder is fed */
    const int32_t *target; /* [pairs, target_length] what it shall say */
} at_listing_task;
/* Copies the ids. */
AT_API at_listing *at_listing_new(const at_listing_task *task, uint64_t seed, at_error *error);
AT_API void at_listing_free(at_listing *listing);
/* Sets what the model is, by an option of attend train such as "model" or "hidden"; before the first training. */
AT_API bool at_listing_set(at_listing *listing, const char *name, const char *value, at_error *error);
/* Trains for so many epochs more, an update each; *loss is the last one's, per target symbol. */
AT_API bool at_listing_train(at_listing *listing, int64_t epochs, double *loss, at_error *error);
/* Whether its model has attention; known once it was trained. */
AT_API bool at_listing_attends(const at_listing *listing);
/* The likeliest symbol at each target position, output [target_length], for one source [source_length] and the inputs
 * [target_length] that the decoder is fed; weights, if not NULL, [target_length, source_length]. */
AT_API bool at_listing_read(at_listing *listing, const int32_t *source, const int32_t *input, int32_t *output,
                            float *weights, at_error *error);

/* The tasks that the lesson and attend demo give to listings, "antonyms" and "beer". Their texts are symbols: letters, or
 * words with a blank between. S begins, E ends, P fills up. */
enum { AT_TEXTBOOKS = 2, AT_TEXTBOOK_PAIRS = 6, AT_TEXTBOOK_LENGTH = 6, AT_TEXTBOOK_WORDS = 5 };
typedef struct at_textbook {
    const char *name;
    const char *symbols; /* all there are; their ids count from 0 */
    bool letters;
    const char *pairs[AT_TEXTBOOK_PAIRS][3]; /* source, what the decoder is fed, what it shall say; NULL: no more */
    const char *fed;                      /* when it is used, to the model of the listing: nothing but the beginning */
    const char *words[AT_TEXTBOOK_WORDS]; /* to be read then; NULL: no more */
} at_textbook;
/* By their numbers from 0 to AT_TEXTBOOKS - 1; NULL: there is none. And by name; NULL: there is none. */
AT_API const at_textbook *at_textbook_at(int index);
AT_API const at_textbook *at_textbook_find(const char *name);
/* The ids of a text, and of P up to `least`, at most AT_TEXTBOOK_LENGTH; ids [AT_TEXTBOOK_LENGTH]. Returns how many there
 * are; -1: the text is longer, or has another symbol. */
AT_API int64_t at_textbook_ids(const at_textbook *task, const char *text, int64_t least, int32_t *ids);
/* The symbol of an id; without text if there is none. */
AT_API at_line at_textbook_symbol(const at_textbook *task, int32_t id);
/* All pairs as ids, for at_listing_new; zero the struct, whose `task` points into it. */
typedef struct at_textbook_pairs {
    int32_t ids[3][AT_TEXTBOOK_PAIRS * AT_TEXTBOOK_LENGTH];
    at_listing_task task;
} at_textbook_pairs;
AT_API void at_textbook_read(const at_textbook *task, at_textbook_pairs *pairs);

/* ---- Scaled scores -------------------------------------------------------------------------------------------- */

/* Random queries of size d, each looking at random keys, all of mean 0 and variance 1: what the softmax makes of a score,
 * "dot" or "scaled", as means over the queries. */
enum { AT_SCALING_TRIALS = 64, AT_SCALING_KEYS = 8, AT_SCALING_DEEPEST = 1024 };
typedef struct at_scaling {
    double largest;  /* weight of a row */
    double entropy;  /* of a row, in nats */
    double gradient; /* the norm of the softmax's Jacobian */
    double weights[AT_SCALING_TRIALS * AT_SCALING_KEYS];
} at_scaling;
AT_API bool at_scaling_probe(const char *score, int64_t d, uint64_t seed, at_scaling *result, at_error *error);

/* ---- Several processes ----------------------------------------------------------------------------------------- */

/* How many processes mpirun or srun started together, and the number of this one among them; 1 and 0 if it is alone. */
AT_API int at_processes(void);
AT_API int at_process_rank(void);
/* Whether it is this process that reports errors: rank 0, or rank 1 if rank 0 is lost. */
AT_API bool at_process_speaks(void);

/* The group of these processes, the ranks 0 to size - 1; *group is NULL, a group of one, if this one is alone. It lasts as long
 * as the process; later calls change the limits. A rank that does not answer for `seconds` is an error of the others; so it
 * is after a second once *stop is not 0. Only one thread may call these functions, and all ranks make the same calls. */
typedef struct at_group at_group;
AT_API bool at_group_join(at_group **group, double seconds, const volatile int *stop, at_error *error);
AT_API int at_group_rank(const at_group *group);
AT_API int at_group_size(const at_group *group);
/* If a rank has an error, all have it then, with the number of that rank in the message; of several, the first one's. */
AT_API bool at_group_agree(at_group *group, at_error *error);
/* The bytes of rank 0, for all. The others wait for them without a limit. */
AT_API bool at_group_tell(at_group *group, void *bytes, size_t size, at_error *error);
/* For a process that fails before it joins its group, whose first call is at_group_agree, and the last one if that fails:
 * joins and agrees. */
AT_API bool at_processes_agree(at_error *error);

/* From now on at_translate, at_translate_stream, at_align and at_encode with this translator are computed by all ranks of the
 * group, which make the same calls. The lines are those that rank 0 passes, and it alone gets the results. AT_USAGE: a rank
 * has another model or other settings. All ranks fail together, as by at_group_agree. */
AT_API void at_translator_share(at_translator *translator, at_group *group);

/* ---- A recurrent layer ----------------------------------------------------------------------------------------- */

/* One layer h_t = cell(x_t, h_{t-1}) with initial weights drawn from the seed, to be compared with attention; `cell` is
 * "rnn", "gru" or "lstm", and x_t has as many numbers as h_t, `size`. Models are trained by at_training. */
typedef struct at_recurrent at_recurrent;
AT_API at_recurrent *at_recurrent_new(const char *cell, int64_t size, uint64_t seed, at_error *error);
AT_API void at_recurrent_free(at_recurrent *layer);
/* x [length, size] to the states [length, size]; the state before the first is zeros. */
AT_API bool at_recurrent_run(at_recurrent *layer, const float *x, int64_t length, float *states, at_error *error);

#ifdef __cplusplus
}
#endif
#endif
