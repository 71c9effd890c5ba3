/* Short vectors of REAL (float or double) and the functions on them that the kernels share. A vector holds neighbouring
   channels of one token. GCC and Clang turn them into whatever the processor has. */

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__AVX512F__)
#define BYTES 64
#elif defined(__AVX__)
#define BYTES 32
#else
#define BYTES 16
#endif
#define LANES ((long)(BYTES / sizeof(REAL)))
#define INLINE static inline __attribute__((always_inline))

/* An array of (row, token, number): the numbers of a token lie side by side, the next token is `stride` further. */
typedef struct {
    REAL *start;
    long stride;
} tokens;

typedef REAL vec __attribute__((vector_size(BYTES)));

#if DOUBLE
typedef int64_t ivec __attribute__((vector_size(BYTES)));
#define MANTISSA 52
#define BIAS 1023
#define ROUND 6755399441055744.0 /* 1.5 * 2^52: adding it leaves the nearest integer in the low bits */
#define LOWEST -708.0
#define HIGHEST 709.0
#define LN2_HIGH 0.693147180369123816490
#define LN2_LOW 1.90821492927058770002e-10
#else
typedef int32_t ivec __attribute__((vector_size(BYTES)));
#define MANTISSA 23
#define BIAS 127
#define ROUND 12582912.0f /* 1.5 * 2^23 */
#define LOWEST -87.0f
#define HIGHEST 88.0f
#define LN2_HIGH 0.693359375f
#define LN2_LOW -2.12194440e-4f
#endif

INLINE vec fill(REAL x) { return x - (vec){0}; }

INLINE vec where(ivec mask, vec yes, vec no) { return (vec)((mask & (ivec)yes) | (~mask & (ivec)no)); }

/* Own exp: only some systems have a vector form of the C library's. Exponents are clipped to the range of normal
   numbers; NaN stays NaN. */
INLINE vec exponential(vec x) {
    x = where(x < LOWEST, fill(LOWEST), x);
    x = where(x > HIGHEST, fill(HIGHEST), x);
    vec shifted = x * (REAL)1.44269504088896340736 + ROUND;
    vec n = shifted - ROUND;
    vec r = x - n * LN2_HIGH - n * LN2_LOW; /* |r| <= ln(2) / 2: a Taylor series is as good as the type */
#if DOUBLE
    vec p = fill(1 / 479001600.0);
    p = p * r + 1 / 39916800.0;
    p = p * r + 1 / 3628800.0;
    p = p * r + 1 / 362880.0;
    p = p * r + 1 / 40320.0;
    p = p * r + 1 / 5040.0;
    p = p * r + 1 / 720.0;
#else
    vec p = fill((REAL)(1 / 720.0));
#endif
    p = p * r + (REAL)(1 / 120.0);
    p = p * r + (REAL)(1 / 24.0);
    p = p * r + (REAL)(1 / 6.0);
    p = p * r + (REAL)0.5;
    p = p * r + 1;
    p = p * r + 1;
    ivec exponent = (ivec)shifted - (ivec)fill(ROUND) + BIAS;
    return p * (vec)(exponent << MANTISSA);
}

INLINE vec sigmoid(vec x) { return 1 / (1 + exponential(-x)); }

/* The derivative of silu(x) = x sigmoid(x), given s = sigmoid(x). */
INLINE vec silu_slope(vec x, vec s) { return s * (1 + x * (1 - s)); }

INLINE vec load(const REAL *from, long width) {
    vec v = {0};
    if (width == LANES)
        memcpy(&v, from, sizeof v);
    else
        memcpy(&v, from, width * sizeof(REAL));
    return v;
}

INLINE void store(REAL *to, vec v, long width) {
    if (width == LANES)
        memcpy(to, &v, sizeof v);
    else
        memcpy(to, &v, width * sizeof(REAL));
}

INLINE REAL total(vec v) {
    REAL sum = 0;
    for (long i = 0; i < LANES; i++)
        sum += v[i];
    return sum;
}

/* One number per head, repeated for the channels d ... d + width - 1, `head` of which make a head. */
INLINE vec widen(const REAL *from, long d, long width, long head) {
    if (head == 1)
        return load(from + d, width);
    if (head % LANES == 0)
        return fill(from[d / head]);
    vec v = {0};
    for (long i = 0; i < width; i++)
        v[i] = from[(d + i) / head];
    return v;
}

/* The gradient of `widen`, added to `to`. */
INLINE void narrow(REAL *to, vec v, long d, long width, long head) {
    if (head == 1)
        store(to + d, v + load(to + d, width), width);
    else if (head % LANES == 0)
        to[d / head] += total(v);
    else
        for (long i = 0; i < width; i++)
            to[(d + i) / head] += v[i];
}

INLINE long least(long a, long b) { return a < b ? a : b; }

INLINE vec *vectors(long count) {
    void *memory = NULL;
    return posix_memalign(&memory, BYTES, count * sizeof(vec)) ? NULL : memory;
}
