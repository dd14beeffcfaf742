/* The benches. */
#ifndef BENCH_CASES_H
#define BENCH_CASES_H

void bench_gemm(void);
void bench_attention(void);
void bench_conv(void);
void bench_train(void);
void bench_decode(void);
void bench_rnn_vs_attention(void);

#endif
