/* fused16.h - what tensor cores of NVIDIA's Hopper and Blackwell compute in bf16, on the host: a
 * model.
 *
 * An element of a product is a chain over k of links of 16: c = link(c, 16 products). A link
 *  - multiplies exactly; a number below 2^-126 has the exponent -126 and no leading 1;
 *  - takes the largest sum of exponents of its products, and the exponent of c, but at least -133;
 *    products of 0, and c if it is 0, have none;
 *  - cuts each product, and c, towards zero to 25 bits after the point of that exponent;
 *  - adds these exactly, and cuts the sum towards zero to f32, of which the least is 2^-149; what
 *    is too large is infinite, and a sum of 0 is +0.
 * Where an operand is not finite, it is as IEEE says of the sum; a NaN is 0x7fffffff.
 *
 * So the bits depend on where links begin, and on nothing else.
 *
 * Sources: X. Li et al., "FTTN: Feature-Targeted Testing for Numerical Properties of NVIDIA & AMD
 * Matrix Accelerators", CCGrid 2024; P. Xie et al., "MMA-Sim: Bit-Accurate Reference Model of
 * Tensor Cores and Matrix Cores", arXiv 2511.10909; F. A. Khattak & M. Mikaitis, "Accurate Models
 * of NVIDIA Tensor Cores", ACM TACO 2026, whose least exponent this is, and whose recorded results
 * of an H100, an H200 and a B200, 5,000 of each, it has. They do not settle what a link makes of
 * sums below 2^-126: the least exponent (MMA-Sim: -126 where something is 0), and the sign of a
 * negative sum that is cut to 0 (here -0).
 */
#ifndef LS_TENSOR_FUSED16_H
#define LS_TENSOR_FUSED16_H

#include <stdint.h>

enum { LS_FUSED16 = 16 };

/* link(c, products a[i] b[i]), all of them bf16: i < n, n at most 16. */
float ls_fused16_link(float c, int n, const uint16_t *a, const uint16_t *b);

/* The chain over k < K from c on: numbers of a are a_step apart, and so with b. */
float ls_fused16_dot(float c, int64_t K, const uint16_t *a, int64_t a_step, const uint16_t *b,
                     int64_t b_step);

#endif
