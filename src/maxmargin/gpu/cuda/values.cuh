// SPDX-License-Identifier: BSD-3-Clause
// What two rows have in common, summed up over their columns, and tiles of such sums.
//
// A program begins with the definitions of REAL (the type of sums), STORED (that of values), USES_PRODUCT,
// USES_SQUARE, USES_ABSOLUTE, USES_HARMONIC (the sums that the kernel is a function of) and VALUE(sums): the
// kernel, a function of these sums and of its numbers. maxmargin/gpu/programs.py writes them.

typedef long long Index;
#define EVERY_LANE 0xffffffffu
#define INFINITE __int_as_float(0x7f800000)
#define TILE 64     // rows and columns of a tile; 256 threads compute 4 x 4 values each
#define DEPTH 16    // columns of the data that a tile reads at a time

struct Sums {
  REAL product, square, absolute, harmonic;
};

__device__ __forceinline__ void add(Sums& sums, REAL x, REAL z) {
  if (USES_PRODUCT) sums.product += x * z;
  if (USES_SQUARE || USES_HARMONIC) {
    REAL difference = x - z, square = difference * difference;
    if (USES_SQUARE) sums.square += square;
    if (USES_HARMONIC && square > 0) sums.harmonic += square / (x + z);
  }
  if (USES_ABSOLUTE) sums.absolute += fabs(x - z);
}

// In single precision the quick one: nothing is proven with it.
__device__ __forceinline__ float exponential(float x) { return __expf(x); }
__device__ __forceinline__ double exponential(double x) { return exp(x); }

__device__ __forceinline__ REAL power(REAL base, int degree) {
  REAL result = 1;
  for (int k = 0; k < degree; ++k) result *= base;
  return result;
}

// The sums of some rows with some others, at most TILE of each; their places are in shared memory.
__device__ __forceinline__ void tile_of_sums(const STORED* X, int columns, const Index* first, int first_count,
                                             const Index* second, int second_count, Sums (&out)[4][4],
                                             REAL (*a)[TILE + 4], REAL (*b)[TILE + 4]) {
  int thread = threadIdx.x, x = thread % 16, y = thread / 16;
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) out[i][j] = Sums{0, 0, 0, 0};
  for (int from = 0; from < columns; from += DEPTH) {
    int depth = min(DEPTH, columns - from);
    __syncthreads();
    for (int place = thread; place < TILE * DEPTH; place += 256) {
      int row = place / DEPTH, column = place % DEPTH;
      bool inside = column < depth;
      a[column][row] = inside && row < first_count ? (REAL)X[first[row] * columns + from + column] : (REAL)0;
      b[column][row] = inside && row < second_count ? (REAL)X[second[row] * columns + from + column] : (REAL)0;
    }
    __syncthreads();
    for (int column = 0; column < depth; ++column)
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) add(out[i][j], a[column][y * 4 + i], b[column][x * 4 + j]);
  }
}
