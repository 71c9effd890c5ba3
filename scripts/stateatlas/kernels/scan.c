/* The recurrences of Mamba and Mamba-2 and their gradients, for the batch rows `start` to `stop`.

     h_t = exp(delta_t A) h_(t-1) + delta_t u_t B_t        y_t = (C_t h_t + D u_t) silu(gate_t)

   The `head` channels of a head share delta and A. Mamba: head = 1, and A is (states, channels). Mamba-2 (`shared`): A
   has one number per head, the same for all its states. `skip` is D, one number per channel.

   Gradients of parameters are given per row, so that their sum does not depend on the number of threads; those of
   delta and A are added to what is there. Functions return 0, or 1 where memory is short. */

#include "vectors.h"

INLINE int forward(const int shared, long start, long stop, long length, long channels, long states, long head,
                   tokens u, tokens delta, const REAL *a, tokens b, tokens c, const REAL *skip, tokens gate, tokens y) {
    const long heads = channels / head, decays = shared ? 1 : states;
    vec *at = vectors(2 * states), *h = at + states;
    if (!at)
        return 1;
    for (long row = start; row < stop; row++)
        for (long d = 0; d < channels; d += LANES) {
            long width = least(LANES, channels - d);
            for (long n = 0; n < decays; n++)
                at[n] = widen(a + n * heads, d, width, head);
            vec skipped = load(skip + d, width), decay;
            memset(h, 0, states * sizeof(vec));
            for (long token = row * length; token < (row + 1) * length; token++) {
                const REAL *bt = b.start + token * b.stride, *ct = c.start + token * c.stride;
                vec step = widen(delta.start + token * delta.stride, d, width, head);
                vec x = load(u.start + token * u.stride + d, width);
                vec z = load(gate.start + token * gate.stride + d, width);
                vec input = step * x, output = skipped * x;
                if (shared)
                    decay = exponential(step * at[0]);
                for (long n = 0; n < states; n++) {
                    if (!shared)
                        decay = exponential(step * at[n]);
                    h[n] = decay * h[n] + input * bt[n];
                    output += h[n] * ct[n];
                }
                store(y.start + token * y.stride + d, output * z * sigmoid(z), width);
            }
        }
    free(at);
    return 0;
}

INLINE int backward(const int shared, long start, long stop, long length, long channels, long states, long head,
                    tokens u, tokens delta, const REAL *a, tokens b, tokens c, const REAL *skip, tokens gate,
                    tokens gout, tokens gu, tokens gdelta, REAL *ga, tokens gb, tokens gc, REAL *gskip, tokens ggate) {
    const long all = length * states, heads = channels / head, decays = shared ? 1 : states;
    vec *at = vectors(4 * states + 3 * all + length * decays + length);
    if (!at)
        return 1;
    vec *g = at + states, *gat = g + states, *sum_b = gat + states, *sum_c = sum_b + all, *decay = sum_c + all;
    vec *gy = decay + length * decays, *h = gy + length; /* h[0] is the zero state before the first token */
    memset(h, 0, states * sizeof(vec));
    for (long row = start; row < stop; row++) {
        memset(sum_b, 0, 2 * all * sizeof(vec));
        for (long d = 0; d < channels; d += LANES) {
            long width = least(LANES, channels - d);
            for (long n = 0; n < decays; n++)
                at[n] = widen(a + n * heads, d, width, head);
            vec skipped = load(skip + d, width), gskipped = {0}, k;
            for (long t = 0; t < length; t++) { /* once more forward, to have every state */
                long token = row * length + t;
                const REAL *bt = b.start + token * b.stride, *ct = c.start + token * c.stride;
                vec step = widen(delta.start + token * delta.stride, d, width, head);
                vec x = load(u.start + token * u.stride + d, width);
                vec z = load(gate.start + token * gate.stride + d, width);
                vec input = step * x, output = skipped * x;
                if (shared)
                    k = decay[t] = exponential(step * at[0]);
                for (long n = 0; n < states; n++) {
                    long i = t * states + n;
                    if (!shared)
                        k = decay[i] = exponential(step * at[n]);
                    vec next = h[i + states] = k * h[i] + input * bt[n];
                    output += next * ct[n];
                }
                vec go = load(gout.start + token * gout.stride + d, width), s = sigmoid(z);
                gy[t] = go * z * s;
                gskipped += gy[t] * x;
                store(ggate.start + token * ggate.stride + d, go * output * silu_slope(z, s), width);
            }
            store(gskip + row * channels + d, gskipped, width);
            memset(g, 0, 2 * states * sizeof(vec));
            for (long t = length - 1; t >= 0; t--) {
                long token = row * length + t;
                const REAL *bt = b.start + token * b.stride, *ct = c.start + token * c.stride;
                vec step = widen(delta.start + token * delta.stride, d, width, head);
                vec x = load(u.start + token * u.stride + d, width), gyt = gy[t];
                vec input = step * x, through_b = {0}, through_a = {0};
                if (shared)
                    k = decay[t];
                for (long n = 0; n < states; n++) {
                    long i = t * states + n;
                    if (!shared)
                        k = decay[i];
                    vec gh = g[n] + gyt * ct[n]; /* gradient of h_t */
                    sum_c[i] += gyt * h[i + states];
                    sum_b[i] += gh * input;
                    through_b += gh * bt[n];
                    g[n] = gh * k;
                    vec exponent = g[n] * h[i]; /* gradient of delta_t A */
                    if (shared) {
                        through_a += exponent;
                    } else {
                        through_a += exponent * at[n];
                        gat[n] += exponent * step;
                    }
                }
                if (shared) {
                    gat[0] += through_a * step;
                    through_a *= at[0];
                }
                store(gu.start + token * gu.stride + d, through_b * step + skipped * gyt, width);
                narrow(gdelta.start + token * gdelta.stride, through_b * x + through_a, d, width, head);
            }
            for (long n = 0; n < decays; n++)
                narrow(ga + (row * decays + n) * heads, gat[n], d, width, head);
        }
        for (long i = 0; i < all; i++) {
            long token = row * length + i / states;
            gb.start[token * gb.stride + i % states] = total(sum_b[i]);
            gc.start[token * gc.stride + i % states] = total(sum_c[i]);
        }
    }
    free(at);
    return 0;
}

#define INPUTS                                                                                                        \
    long start, long stop, long length, long channels, long states, long head, tokens u, tokens delta, const REAL *a, \
        tokens b, tokens c, const REAL *skip, tokens gate
#define GRADIENTS tokens gy, tokens gu, tokens gdelta, REAL *ga, tokens gb, tokens gc, REAL *gskip, tokens ggate
#define GIVEN start, stop, length, channels, states, head, u, delta, a, b, c, skip, gate

int mamba_forward(INPUTS, tokens y) { return forward(0, GIVEN, y); }
int mamba2_forward(INPUTS, tokens y) { return forward(1, GIVEN, y); }
int mamba_backward(INPUTS, GRADIENTS) { return backward(0, GIVEN, gy, gu, gdelta, ga, gb, gc, gskip, ggate); }
int mamba2_backward(INPUTS, GRADIENTS) { return backward(1, GIVEN, gy, gu, gdelta, ga, gb, gc, gskip, ggate); }
