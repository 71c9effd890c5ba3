/* silu of a causal convolution of every channel with its own `size` weights, and its gradient, for the batch rows
   `start` to `stop`.

     y_t = silu(bias + sum over k of weight_k x_(t - size + 1 + k))

   `weight` is (size, channels). Gradients of parameters are given per row, so that their sum does not depend on the
   number of threads. Functions return 0, or 1 where memory is short. */

#include "vectors.h"

int conv_forward(long start, long stop, long length, long channels, long size, tokens x, const REAL *weight,
                 const REAL *bias, tokens y) {
    vec *w = vectors(size + length + size), *past = w + size; /* past[t + size - 1] = x_t, after zeros */
    if (!w)
        return 1;
    memset(past, 0, (size - 1) * sizeof(vec));
    for (long row = start; row < stop; row++)
        for (long d = 0; d < channels; d += LANES) {
            long width = least(LANES, channels - d);
            for (long k = 0; k < size; k++)
                w[k] = load(weight + k * channels + d, width);
            vec offset = load(bias + d, width);
            for (long t = 0; t < length; t++) {
                long token = row * length + t;
                past[t + size - 1] = load(x.start + token * x.stride + d, width);
                vec sum = offset;
                for (long k = 0; k < size; k++)
                    sum += w[k] * past[t + k];
                store(y.start + token * y.stride + d, sum * sigmoid(sum), width);
            }
        }
    free(w);
    return 0;
}

int conv_backward(long start, long stop, long length, long channels, long size, tokens x, const REAL *weight,
                  const REAL *bias, tokens gy, tokens gx, REAL *gweight, REAL *gbias) {
    vec *w = vectors(2 * size + 2 * (length + size)), *gw = w + size;
    if (!w)
        return 1;
    vec *past = gw + size, *gsum = past + length + size; /* gsum[t], followed by zeros */
    memset(past, 0, (size - 1) * sizeof(vec));
    memset(gsum + length, 0, (size - 1) * sizeof(vec));
    for (long row = start; row < stop; row++)
        for (long d = 0; d < channels; d += LANES) {
            long width = least(LANES, channels - d);
            for (long k = 0; k < size; k++)
                w[k] = load(weight + k * channels + d, width);
            memset(gw, 0, size * sizeof(vec));
            vec offset = load(bias + d, width), goffset = {0};
            for (long t = 0; t < length; t++) {
                long token = row * length + t;
                past[t + size - 1] = load(x.start + token * x.stride + d, width);
                vec sum = offset;
                for (long k = 0; k < size; k++)
                    sum += w[k] * past[t + k];
                vec g = gsum[t] = load(gy.start + token * gy.stride + d, width) * silu_slope(sum, sigmoid(sum));
                for (long k = 0; k < size; k++)
                    gw[k] += g * past[t + k];
                goffset += g;
            }
            for (long t = 0; t < length; t++) {
                vec g = {0};
                for (long k = 0; k < size; k++)
                    g += w[k] * gsum[t + size - 1 - k];
                store(gx.start + (row * length + t) * gx.stride + d, g, width);
            }
            for (long k = 0; k < size; k++)
                store(gweight + (row * size + k) * channels + d, gw[k], width);
            store(gbias + row * channels + d, goffset, width);
        }
    free(w);
    return 0;
}
