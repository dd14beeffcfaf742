/* The attention operator on the tape: five axes, one short function.
 *
 *     rotate(q,k) -> e = score(q,k) -> e += position bias -> w = normalise(e over span) -> w *= window prior -> c = w v
 *     -> c += value positions
 *
 * attention.c holds that sequence; score.c, normaliser.c, span.c, position.c and heads.c one axis each. An axis is a
 * list of records (axes_internal.h), from which the parser, the catalogue and the tests' product of settings follow. */
#ifndef AT_ATTENTION_H
#define AT_ATTENTION_H

#include "attention/types.h"

bool at_attention_parse(const at_settings *settings, at_attention *attention, at_error *error);

/* Checks everything, then runs. NULLs in the result mean the tape has failed. */
at_attention_out at_attention_run(at_tape *tape, const at_attention *attention, const at_attention_in *in);

/* ---- What models ask of settings ---- */

/* The axis that has an entry of this name (not zero-terminated), or -1. */
int at_axis_of(const char *name, size_t length);
/* Does the normaliser choose one key per row (hard)? Then there is a log-probability, and no dropout. */
bool at_attention_samples(const at_attention *attention);
/* A normaliser that samples becomes the distribution it draws from; others stay. */
void at_attention_soften(at_attention *attention);
bool at_attention_rotates(const at_attention *attention);
/* Does the position add vectors to the values (shaw), so that they depend on the query's position? */
bool at_attention_moves_values(const at_attention *attention);
/* For a caller that rotates queries and keys itself: the position becomes 'none'. */
void at_attention_drop_position(at_attention *attention);
/* Does the window predict its centre as a fraction of the sequence's length (local-p)? */
bool at_attention_predicts(const at_attention *attention);
/* Does the score take prepared queries and keys (see at_attention_in)? */
bool at_attention_prepares(const at_attention *attention);
/* The shape of a declared parameter, one set for all heads; rank 0 if it has no use, because the settings exclude it or
 * because queries and keys come `prepared`. inner: A; size and value_size: D and Dv of a head. */
at_shape at_parameter_shape(const at_attention *attention, int axis, int index, bool prepared, int64_t inner,
                            int64_t size, int64_t value_size);

#endif
