// SPDX-License-Identifier: BSD-3-Clause
// What the choice of working sets and the moves inside them share: see solvers/gpu_working_sets.py.
//
// A part is a set of rows that the kernel does not couple with others. Its rows have one place after the
// other in all arrays, from begins[part] to begins[part + 1]; places are counted from the part's first one.
// beta_i = alpha_i y_i, and v_i = y_i - f_i is the slope of the dual by beta_i, f being the scores without b.

#define SET 1024  // rows of a working set
#define FACTS 8   // numbers that are told of each part

__device__ __forceinline__ unsigned ordered(float value) {
  unsigned bits = __float_as_uint(value);
  return (bits & 0x80000000u) ? ~bits : (bits | 0x80000000u);
}
__device__ __forceinline__ float unordered(unsigned bits) {
  return __uint_as_float((bits & 0x80000000u) ? (bits & 0x7fffffffu) : ~bits);
}
#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ unsigned largest_of_warp(unsigned value) { return __reduce_max_sync(EVERY_LANE, value); }
#else
__device__ __forceinline__ unsigned largest_of_warp(unsigned value) {
  for (int step = 16; step; step >>= 1) value = max(value, __shfl_xor_sync(EVERY_LANE, value, step));
  return value;
}
#endif
