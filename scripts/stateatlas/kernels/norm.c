/* Root-mean-square norm of every token and its gradient, for the batch rows `start` to `stop`.

     y = x r weight        r = 1 / sqrt(mean(x^2) + eps)

   The gradient of `weight` is given per row, so that its sum does not depend on the number of threads, and is added to
   what is there. */

#include <math.h>

#include "vectors.h"

int norm_forward(long start, long stop, long length, long channels, double eps, tokens x, const REAL *weight,
                 tokens y) {
    for (long token = start * length; token < stop * length; token++) {
        const REAL *xt = x.start + token * x.stride;
        vec squares = {0};
        for (long d = 0; d < channels; d += LANES) {
            vec v = load(xt + d, least(LANES, channels - d));
            squares += v * v;
        }
        REAL r = (REAL)(1 / sqrt(total(squares) / channels + eps));
        for (long d = 0; d < channels; d += LANES) {
            long width = least(LANES, channels - d);
            store(y.start + token * y.stride + d, load(xt + d, width) * r * load(weight + d, width), width);
        }
    }
    return 0;
}

int norm_backward(long start, long stop, long length, long channels, double eps, tokens x, const REAL *weight,
                  tokens gy, tokens gx, REAL *gweight) {
    for (long token = start * length; token < stop * length; token++) {
        const REAL *xt = x.start + token * x.stride, *gt = gy.start + token * gy.stride;
        REAL *gw = gweight + token / length * channels;
        vec squares = {0}, products = {0};
        for (long d = 0; d < channels; d += LANES) {
            long width = least(LANES, channels - d);
            vec v = load(xt + d, width);
            squares += v * v;
            products += v * load(gt + d, width) * load(weight + d, width);
        }
        REAL r = (REAL)(1 / sqrt(total(squares) / channels + eps));
        REAL along = r * r * total(products) / channels;
        for (long d = 0; d < channels; d += LANES) {
            long width = least(LANES, channels - d);
            vec v = load(xt + d, width), g = load(gt + d, width);
            store(gx.start + token * gx.stride + d, r * (g * load(weight + d, width) - v * along), width);
            store(gw + d, load(gw + d, width) + g * v * r, width);
        }
    }
    return 0;
}
